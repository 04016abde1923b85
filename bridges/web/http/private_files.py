"""Files of what people said, did and answered: readable by this user alone, in folders of theirs alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO


def private_folder(path: Path) -> None:
    """Make a folder of this user alone where there is none; one that is there stays as it is. Raises OSError."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)


def open_private(path: Path, *, adds: bool = False) -> IO[bytes]:
    """A file of this user alone, unbuffered: empty, or to add to. Raises OSError."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_APPEND if adds else os.O_TRUNC), 0o600)
    os.fchmod(number, 0o600)  # one that was there
    return os.fdopen(number, "ab" if adds else "wb", buffering=0)


def write_private(path: Path, text: str, encoding: str = "utf-8") -> None:
    """Write a whole file of this user alone. Raises OSError."""
    with open_private(path) as file:
        rest = memoryview(text.encode(encoding))
        while rest:
            rest = rest[file.write(rest) or 0 :]
