"""Pages of the docs whose measured parts are written by the commands that measure: what stands between two markers."""

from __future__ import annotations

from pathlib import Path


def read(path: Path, begin: str, end: str) -> str:
    """What stands there now. Raises ValueError where the page has no such markers."""
    return _parts(path, begin, end)[1].strip("\n")


def write(path: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands there. Raises ValueError where the page has no such markers."""
    before, _, after = _parts(path, begin, end)
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def _parts(path: Path, begin: str, end: str) -> tuple[str, str, str]:
    before, first, rest = path.read_text().partition(begin)
    inside, last, after = rest.partition(end)
    if not first or not last:
        raise ValueError(f"{path} has no markers {begin!r} and {end!r}")
    return before, inside, after
