"""`mesh_problem`: what is wrong with the file of a mesh, told before a viewer or a simulator meets it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

LEAST_OBJ_CORNERS = 3


def mesh_problem(place: Path) -> str:
    """Why that STL or OBJ cannot be whole, with a remedy; "" where it can, and for other formats."""
    try:
        status = place.stat()
        return _problem(place, status.st_size, status.st_mtime_ns)
    except OSError as problem:
        return f"cannot be read ({problem.strerror}); make it readable"


@lru_cache(maxsize=1024)
def _problem(place: Path, size: int, stamp_ns: int) -> str:
    if size == 0:
        return "is empty; copy it anew"
    with place.open("rb") as file:
        begin = file.read(512)
    if begin.startswith(b"version https://git-lfs"):
        return "is only git-lfs's pointer to the mesh; fetch it with: git lfs pull"
    match place.suffix.lower():
        case ".stl":
            return _stl_problem(place, size, begin)
        case ".obj":
            return _obj_problem(place)
    return ""


def _stl_problem(place: Path, size: int, begin: bytes) -> str:
    number = int.from_bytes(begin[80:84], "little")
    expected = 84 + 50 * number
    if number and size == expected:
        return ""
    if begin.lstrip().startswith(b"solid") and b"facet" in (text := place.read_bytes()):
        if b"endsolid" not in text:
            return "ends in the middle, an ASCII STL without its endsolid; copy or export it anew"
        return "" if b"vertex" in text else "has no triangle; export it anew"
    if _is_text(begin):
        return "is a text, not an STL; put the mesh there"
    if size < 84:
        return f"ends after {size} bytes, before its triangles; copy or export it anew"
    if number == 0:
        return "has no triangle; export it anew"
    return (
        f"is no whole STL: for its {number} triangles it should have {expected} bytes, and it has {size}; "
        "copy or export it anew"
    )


def _obj_problem(place: Path) -> str:
    corners = faces = 0
    with place.open("rb") as file:
        for line in file:
            words = line.split()
            if not words:
                continue
            if words[0] == b"v":
                corners += 1
                if len(words) < 1 + LEAST_OBJ_CORNERS:
                    return "ends in the middle of a corner; copy or export it anew"
            elif words[0] == b"f":
                faces += 1
                try:
                    named = [int(word.split(b"/")[0]) for word in words[1:]]
                except ValueError:
                    return f"has a face {line.decode(errors='replace').strip()!r}; export it anew"
                last = max(named, default=0)
                if len(named) < LEAST_OBJ_CORNERS or last > corners:
                    return f"is not whole: a face names corner {last} of {corners}; copy or export it anew"
    if corners == 0:
        return "is no OBJ: it has no corner (no line that begins with v); put the mesh there"
    return "" if faces else "has no triangle (no line that begins with f); copy or export it anew"


def _is_text(begin: bytes) -> bool:
    try:
        return begin[:256].decode("ascii").isprintable() or b"\n" in begin[:256]
    except UnicodeDecodeError:
        return False
