"""Whether two recordings are of one run, by what the head of each says of its run."""

from __future__ import annotations

from collections.abc import Mapping

_KEYS = ("folder", "seed", "launch_file", "git", "clock", "parameters")
_OF_PROCESSES = ("supervisor_pid", "started_ns")
"""Of a run in real time; without a supervisor each file says when it was begun itself."""
_LONGEST = 80


def what_differs(first: Mapping[str, str], other: Mapping[str, str]) -> str:
    """What tells the two runs apart, as "key is X, not Y"; empty where they are one."""
    is_told = all(_OF_PROCESSES[0] in head for head in (first, other))
    for key in (*_KEYS, *(_OF_PROCESSES if is_told else ())):
        one, two = first.get(key, ""), other.get(key, "")
        if one != two:
            return f"{key} is {_short(two)!r}, not {_short(one)!r}"
    return ""


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
