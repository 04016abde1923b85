"""`ReaderProcess`: a recording is read in a process of its own, so that whoever drives at the same server is not
held up."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from bridges.web.recordings.recording import Recorded, read_recording
from runtime.errors import PolyrhythmError

NICE = 10


class ReaderProcess:
    """One recording on its way in."""

    def __init__(self, path: Path) -> None:
        self._out = tempfile.TemporaryFile()  # noqa: SIM115  # the reader fills it; `result` and `stop` close it
        self._told = tempfile.TemporaryFile()  # noqa: SIM115
        self._child = subprocess.Popen(
            [sys.executable, "-m", __name__, str(path)],
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._told,
        )

    def result(self) -> Recorded | str | None:
        """What was read, or why it cannot be; None as long as it goes on."""
        if self._child.poll() is None:
            return None
        try:
            if self._child.returncode != 0:
                self._told.seek(0)
                lines = self._told.read().decode(errors="replace").strip().splitlines()
                return lines[-1] if lines else f"the reader ended with {self._child.returncode}"
            self._out.seek(0)
            return msgspec.msgpack.decode(self._out.read(), type=Recorded)
        finally:
            self._out.close()
            self._told.close()

    def stop(self) -> None:
        """Nobody wants it any more."""
        if self._child.poll() is None:
            self._child.kill()
            self._child.wait()
        self._out.close()
        self._told.close()


def main(path: str) -> int:
    """Write what is shown of a recording to standard output."""
    os.nice(NICE)
    try:
        recorded = read_recording(Path(path))
    except (PolyrhythmError, OSError) as problem:
        print(problem, file=sys.stderr)
        return 1
    sys.stdout.buffer.write(msgspec.msgpack.encode(recorded))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
