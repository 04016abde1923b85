"""`polyrhythm memory`: what people taught a planner, shown and forgotten.

polyrhythm run kitchen --set planner.memory=kitchen-memory.json
polyrhythm memory kitchen-memory.json --forget mug
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from runtime.command_line.arguments import answered
from runtime.errors import UserError
from runtime.operating_system.whole_file import write_whole
from runtime.serialization.toml_errors import read_text


def remembered(path: Path) -> dict[str, str]:
    """The place of each kind that was taught; {} where there is no file yet. Raises UserError where it is none."""
    try:
        found = json.loads(read_text(path)) if path.exists() else {}
    except (OSError, UserError, ValueError) as problem:
        raise UserError(f"memory {path}: {problem}") from problem
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise UserError(f"memory {path}: expected a JSON object with a place for each kind")
    return {str(kind): str(place) for kind, place in found.items()}


def keep(path: Path, habits: Mapping[str, str]) -> None:
    """Write all of it, whole or not at all. Raises UserError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (json.dumps(dict(habits), indent=1, sort_keys=True) + "\n").encode())
    except OSError as problem:
        raise UserError(f"memory {path}: {problem}") from problem


def main(argv: list[str]) -> int:
    """0; 2 where it was asked wrongly."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm memory",
        description="What people taught the planner, from the file that its parameter `memory` names.",
        epilog="example: polyrhythm memory kitchen-memory.json --forget mug. A run that goes on keeps what it knows.",
    )
    parser.add_argument("file", type=Path, metavar="FILE.json")
    parser.add_argument("--forget", action="append", default=[], metavar="KIND", help="no longer know where it goes")
    parser.add_argument("--forget-all", action="store_true", help="begin anew")
    asked = parser.parse_args(argv)
    return answered("polyrhythm memory", lambda: _show(asked.file, asked.forget, is_all=asked.forget_all))


def _show(path: Path, forget: list[str], *, is_all: bool) -> int:
    if not path.is_file():
        raise UserError(f"memory {path}: there is no such file; a run writes it once somebody has taught it something")
    known = remembered(path)
    for kind in known if is_all else forget:
        if kind not in known:
            raise UserError(f"memory {path}: knows nothing of {kind!r}; it knows {', '.join(known) or 'nothing'}")
    left = {} if is_all else {kind: place for kind, place in known.items() if kind not in forget}
    if left != known:
        keep(path, left)
    print("\n".join(f"{kind}: {place}" for kind, place in sorted(left.items())) or "nothing is remembered")
    return 0
