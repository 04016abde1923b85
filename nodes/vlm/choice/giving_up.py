"""How often or how long something is tried before it is left, and the planner told: a thing, a way, a look, a hand."""

from __future__ import annotations

from nodes.vlm.choice.situation import Situation

MOST_TRIES = 3
"""After so many failures a thing is left: the policy makes one try of each action."""
MOST_DRIVES = 4
HAND_WITHIN_S = 20.0
"""For how long a thing is held for a person's open hand."""
LOOKS_TO_BE_SURE = 2
"""How many gazes must show nothing more to do before the subtask counts as finished."""


def tried(now: Situation) -> tuple[str, ...]:
    """What failed and was not made good since, and why: "red cup, 2 times: ..."."""
    return tuple(
        f"{name}, {times} {'time' if times == 1 else 'times'}: {now.reasons.get(name, '')}"
        for name, times in now.failures.items()
    )


def given_up(now: Situation) -> list[str]:
    """Names of what is left by now."""
    return sorted(name for name, tries in now.failures.items() if tries >= MOST_TRIES)
