"""Whether the table is cleared as ordered, by where things really are, and which things are where, in words."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nodes.sim.messages import ObjectTruth

ON_TABLE_M = 0.35
"""A thing higher than this and not in the bin stands on the table or is in the gripper; lower, it fell."""


class Verdict(msgspec.Struct, frozen=True):
    """Done as ordered or not, and where everything is."""

    ok: bool
    reason: str


def judge(objects: Sequence[ObjectTruth], *, kind: str, spares: str) -> Verdict:
    """Every thing of the kind is in the bin but those of the spared colour, which are not."""
    mine = [thing for thing in objects if thing.label == kind]
    binned = [thing.colour for thing in mine if thing.is_in_bin]
    left = [thing.colour for thing in mine if not thing.is_in_bin and thing.z_m > ON_TABLE_M]
    fallen = [thing.colour for thing in mine if not thing.is_in_bin and thing.z_m <= ON_TABLE_M]
    ok = bool(mine) and all(thing.is_in_bin == (thing.colour != spares) for thing in mine) and not fallen
    places = (("in the bin", binned), ("on the table", left), ("on the floor", fallen))
    parts = [
        f"{list_words(colours)} {kind}{'s' if len(colours) > 1 else ''} {where}" for where, colours in places if colours
    ]
    return Verdict(ok, "; ".join(parts) or f"there is no {kind}")


def list_words(words: Sequence[str]) -> str:
    """ "a, b and c", in alphabetical order."""
    ordered = sorted(words)
    return ordered[0] if len(ordered) == 1 else f"{', '.join(ordered[:-1])} and {ordered[-1]}"
