"""Real terminals for tests: a command in one of its own, which is closed, halted, or types to it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.running import PATIENCE_S, eventually, is_alive

POLYRHYTHM = (sys.executable, "-m", "runtime")
CTRL_C, CTRL_S, CTRL_Q = b"\x03", b"\x13", b"\x11"


class Terminal:
    """A command in a terminal window; what it prints is read at once, unless somebody has halted it."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
        """The terminal controls it, as one does that a shell runs in."""
        self._master, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.output = ""
        self.process = subprocess.Popen(
            command,
            stdin=inner, stdout=inner, stderr=inner,
            cwd=folder, env={**os.environ, "TERM": "xterm", **(environment or {})},
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(inner)
        self._end_reader, self._end = os.pipe()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while True:
            ready, _, _ = select.select((self._master, self._end_reader), (), ())
            if self._end_reader in ready:
                return
            try:
                self.output += os.read(self._master, 1 << 16).decode(errors="replace")
            except OSError:  # nobody writes there any more
                return

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._master, keys)

    def close(self) -> None:
        """Close the window: the kernel hangs up."""
        if self._master >= 0:
            os.write(self._end, b"e")
            self._reader.join()
            for descriptor in (self._master, self._end, self._end_reader):
                os.close(descriptor)
            self._master = -1

    def family(self) -> list[int]:
        """All processes that it has now: itself, its children, theirs."""
        parents = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError, ValueError):
                parents[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
        found = [self.process.pid]
        for one in found:
            found += [pid for pid, parent in parents.items() if parent == one]
        return found

    def says(self, text: str, within_s: float = PATIENCE_S) -> None:
        """Wait until it has printed that."""
        eventually(lambda: text in self.output or self.process.poll() is not None, f"it says {text!r}", within_s)
        assert text in self.output, self.output

    def end(self) -> None:
        """Whatever the test has left."""
        left = self.family()
        self.close()
        for pid in left:
            if is_alive(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.process.wait(PATIENCE_S)
