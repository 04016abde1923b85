"""Real runs that print addresses of pages, for tests: started as a user starts them, gone at the end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType

from tests.support.running import eventually

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 120.0
"""Half a dozen processes end, or load their models, on a machine that is busy with others."""
ADDRESS = re.compile(r"(\w+): (\w+): (https?://\S+/[\w-]*#[0-9a-f]{32})")


class PageRun:
    """A command that prints addresses as `NODE: ROLE: ADDRESS`, once that many are there."""

    def __init__(self, *arguments: str | Path, pages: int = 1) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "runtime", *map(str, arguments)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        try:
            eventually(
                lambda: len(self.addresses) >= pages or self.process.poll() is not None, "pages open", PATIENCE_S
            )
            assert self.process.poll() is None, "\n".join(self.lines)
        except AssertionError:
            self.__exit__(None, None, None)
            raise

    @property
    def addresses(self) -> dict[tuple[str, str], str]:
        """(node, role) -> address."""
        found = [ADDRESS.search(line) for line in list(self.lines)]
        return {(one[1], one[2]): one[3] for one in found if one}

    def kill(self) -> None:
        """SIGKILL for the command and all of its processes at once."""
        pids = {int(pid) for line in list(self.lines) for pid in re.findall(r"\[pid (\d+)\] started", line)}
        for pid in (self.process.pid, *pids):
            os.kill(pid, signal.SIGKILL)
        self._end()

    def wait(self) -> int:
        """The exit code, once it has ended by itself."""
        self.process.wait(PATIENCE_S)
        self._end()
        return self.process.returncode

    def _end(self) -> None:
        self.process.wait(PATIENCE_S)
        self._reader.join(60.0)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def __enter__(self) -> PageRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self._end()
