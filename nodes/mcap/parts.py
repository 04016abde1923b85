"""Which files form one recording: its parts, by their names and by what the head of each says of its run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from nodes.mcap.file import head_of

_KEYS = ("folder", "seed", "launch_file", "git", "clock", "parameters")
_OF_PROCESSES = ("supervisor_pid", "started_ns")
"""What identifies a run in real time; without a supervisor each file says by itself when it was begun."""
_LONGEST = 80

ZERO, BEGIN = "zero_ns", "begin_ns"
"""What a head says of time where a recording is a piece of a run: run time zero, and where the piece begins."""


def part_of(path: Path, number: int) -> Path:
    """The file of a part of a recording: run.mcap, run-2.mcap, run-3.mcap..."""
    return path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")


def parts_of(path: Path) -> list[Path]:
    """The files of a recording in order; several where it was split, or its recorder was restarted.

    A file with a fitting name that records another run is no part.
    """
    number, numbered = 2, []
    while (following := part_of(path, number)).is_file():
        numbered.append(following)
        number += 1
    first = head_of(path) if numbered else None
    if first is None:
        return [path, *numbered]
    heads = {part: head_of(part) for part in numbered}
    return [path, *(part for part, head in heads.items() if head is None or (head and not what_differs(first, head)))]


def zero_ns_of(metadata: Mapping[str, Mapping[str, str]]) -> int | None:
    """Run time zero of a recording, as a monotonic stamp; None where it does not say.

    It is then that of the recording's first message.
    """
    if metadata.get("run", {}).get("clock") == "virtual":
        return 0
    return _stamp(metadata.get("run", {}).get(ZERO)) or _stamp(metadata.get("start", {}).get(ZERO))


def begin_ns_of(metadata: Mapping[str, Mapping[str, str]]) -> int | None:
    """When its content begins, for a recording that is a piece of its run; None where it begins with the run."""
    return _stamp(metadata.get("run", {}).get(BEGIN))


def _stamp(text: str | None) -> int | None:
    stamp_ns = int(text) if text is not None and text.isdecimal() and len(text) < 20 else None
    return stamp_ns if stamp_ns is not None and stamp_ns < 1 << 63 else None


def noted(key: str, end: Mapping[str, str], start: Mapping[str, str]) -> Any:
    """A value noted at the end of a recording, or else at its start; None where there is none."""
    text = end.get(key, start.get(key))
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def what_differs(first: Mapping[str, str], other: Mapping[str, str]) -> str:
    """What distinguishes the two runs, as "key is X, not Y"; empty where they are one run."""
    is_told = all(_OF_PROCESSES[0] in head for head in (first, other))
    for key in (*_KEYS, *(_OF_PROCESSES if is_told else ())):
        one, two = first.get(key, ""), other.get(key, "")
        if one != two:
            return f"{key} is {_short(two)!r}, not {_short(one)!r}"
    return ""


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
