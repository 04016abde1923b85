"""A real run of the console for tests: the simulated robot's graph in processes, and the addresses that it prints."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType

from tests.support.running import eventually

ROOT = Path(__file__).resolve().parents[3]
ADDRESS = re.compile(r"console: (operator|viewer|participant): (https?://\S+/)#([0-9a-f]{32})")

CLOSES_S = 90.0


def without_report(launch: Path, folder: Path) -> Path:
    """The same launch file, which draws no pictures of the run at its end."""
    plain = folder.parent / f"{folder.name}-{launch.name}"
    lines = [line for line in launch.read_text().splitlines(True) if not line.startswith("report ")]
    plain.write_text("".join(lines).replace("[run]\n", "[run]\nfrozen_s = 60.0\n", 1))  # tests freeze for longer
    return plain


class ConsoleRun:
    """`polyrhythm run` of a launch file with a console, from its start to its end."""

    def __init__(self, launch: Path, folder: Path, *settings: str) -> None:
        command = [sys.executable, "-m", "runtime", "run", str(without_report(launch, folder)), "--out", str(folder)]
        for setting in ("console.port=0", *settings):
            command += ["--set", setting]
        self.folder = folder
        self.lines: list[str] = []
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        try:
            eventually(lambda: self._is_running() or self._process.poll() is not None, "the console runs", 90.0)
            assert self._process.poll() is None, "\n".join(self.lines)
        except AssertionError:
            self.close()
            raise
        found = [ADDRESS.search(line) for line in self.lines]
        self.tokens = {one[1]: one[3] for one in found if one}
        self.url = next(one[2] for one in found if one)

    def page(self, role: str = "operator") -> str:
        """The address for that role."""
        return f"{self.url}#{self.tokens[role]}"

    @property
    def supervisor_pid(self) -> int:
        """Of the run as a whole."""
        return self._process.pid

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rsplit(":", 1)[1].strip("/"))

    def pid(self, process: str) -> int:
        """Of one process of the run."""
        return next(
            int(one[1]) for line in self.lines if (one := re.search(rf" {process} \[pid (\d+)\] running", line))
        )

    def _is_running(self) -> bool:
        return any("console [pid" in line and "] running" in line for line in self.lines) and any(
            "driver: commands arrive" in line or ("console" in line and "] running" in line) for line in self.lines
        )

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))

    def close(self) -> None:
        """End the run as Ctrl-C does."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(CLOSES_S)
        except subprocess.TimeoutExpired:
            self._process.kill()  # its processes end with it
            self._process.wait(CLOSES_S)
        self._reader.join(60.0)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def __enter__(self) -> ConsoleRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self.close()
