"""Files of JSON lines that only grow: each line is on the disk before anybody is told, a torn last one is left out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

import msgspec

from bridges.web.http.private_files import open_private
from runtime.errors import UserError

T = TypeVar("T")


class LineFile:
    """Appends to one file. Raises OSError where it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self._encode = msgspec.json.Encoder().encode
        self.file = open_private(path, adds=True)  # what failed to be written must not follow later

    def mend(self, path: Path) -> None:
        """Take away the half line that a process may leave that was killed; nobody was told of it."""
        data = path.read_bytes()
        if data and not data.endswith(b"\n"):
            os.truncate(path, data.rfind(b"\n") + 1)

    def write(self, line: object) -> None:
        """Return once it is on the disk. Raises OSError where it cannot be; then nothing of it is in the file."""
        rest = memoryview(self._encode(line) + b"\n")
        end = os.fstat(self.file.fileno()).st_size
        try:
            while rest:
                rest = rest[self.file.write(rest) or 0 :]
            os.fsync(self.file.fileno())
        except OSError:
            os.ftruncate(self.file.fileno(), end)
            raise

    def close(self) -> None:
        """No more is to come."""
        self.file.close()


def read_lines(path: Path, kind: type[T], what: str) -> list[T]:
    """The lines of a file. Raises UserError with the line that is none: "no `what`"."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as problem:
        raise UserError(f"{path}: cannot be read ({problem.strerror})") from problem
    decoder = msgspec.json.Decoder(kind)
    found = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            found.append(decoder.decode(line))
        except msgspec.MsgspecError as problem:
            raise UserError(f"{path}:{number}: no {what}: {problem}") from problem
    return found
