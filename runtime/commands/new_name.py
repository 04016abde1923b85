"""Names for what a command leaves behind where nobody named it: those that carry the second may be taken already."""

from __future__ import annotations

from pathlib import Path


def new_name(path: Path) -> Path:
    """This path, or the next free one (NAME-2, NAME-3...) where another command was started in the same second."""
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free
