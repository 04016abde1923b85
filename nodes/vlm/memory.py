"""What was seen lately and is probably still there: survives being hidden, forgets what is seen to be gone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec

from nodes.msgs import SeenObject

SAME_M, SAME_BOX_M, SAME_GUESS_M = 0.07, 0.30, 0.60
"""Two sightings this near are of one thing; of one box; of one place of that name, where one is only pointed at."""
FALLEN_M = 0.2
"""What is so much lower than it was has fallen, and is told as another thing."""
BLEND = 0.5
SIGHTINGS_TO_BELIEVE = 2
MISSES_TO_FORGET = 3
VOTES_KEPT = 9
VOTES_TO_BE_CERTAIN = 6
SURE = 0.5


@dataclass(frozen=True, slots=True)
class Known:
    """One thing, and how often it was seen and looked for in vain."""

    thing: SeenObject
    sightings: int
    misses: int
    votes: tuple[tuple[str, str], ...]  # label and colour of the last clear sightings

    @property
    def is_believed(self) -> bool:
        """Seen more than once: a single sighting may be a shadow of the robot's own arm."""
        return self.sightings >= SIGHTINGS_TO_BELIEVE

    @property
    def is_certain(self) -> bool:
        """Clearly seen so often that it really stood there: a part of the robot that passes by never is."""
        return len(self.votes) >= VOTES_TO_BE_CERTAIN


def update(
    known: Sequence[Known], seen: Sequence[SeenObject], is_empty: Callable[[SeenObject], bool]
) -> tuple[Known, ...]:
    """The memory after one more image; `is_empty` says whether that image looks right through a thing's place."""
    left = list(known)
    after: list[Known] = []
    for thing in sorted(seen, key=lambda one: -one.confidence):
        match = min(
            (one for one in left if _is_same(one.thing, thing)), key=lambda one: _apart(one.thing, thing), default=None
        )
        if match is None:
            if not any(_is_same(one.thing, thing) for one in after):
                after.append(Known(thing, 1, 0, ((thing.label, thing.colour),)))
            continue
        left.remove(match)
        after.append(_seen_again(match, thing))
    for one in left:
        misses = one.misses + 1 if is_empty(one.thing) else one.misses
        if misses < MISSES_TO_FORGET:
            after.append(replace(one, misses=misses))
    return tuple(sorted(after, key=lambda one: (one.thing.label, one.thing.colour, one.thing.x_m)))


def with_ids(known: Sequence[Known], first: int) -> tuple[tuple[Known, ...], int]:
    """The memory with an id for everything new, and the next number: an id that is gone never comes back."""
    after = []
    for one in known:
        if not one.thing.id:
            one = replace(one, thing=_changed(one.thing, id=f"{one.thing.label}-{first}"))
            first += 1
        after.append(one)
    return tuple(after), first


def number_of(thing: SeenObject) -> int:
    """The number in the id of a thing, which later ones have higher; 0 where it has none."""
    number = thing.id.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def without(known: Sequence[Known], thing: SeenObject) -> tuple[Known, ...]:
    """The memory after the robot took a thing away."""
    return tuple(one for one in known if not (_is_same(one.thing, thing) and one.thing.label == thing.label))


def believed(known: Sequence[Known]) -> tuple[SeenObject, ...]:
    """The things taken to be there."""
    return tuple(one.thing for one in known if one.is_believed)


def _seen_again(known: Known, thing: SeenObject) -> Known:
    is_clear = thing.confidence >= SURE
    old = known.thing
    votes = (*known.votes, (thing.label, thing.colour))[-VOTES_KEPT:] if is_clear else known.votes
    if is_clear and old.confidence >= SURE:
        moved = _changed(
            thing,
            id=old.id,
            x_m=old.x_m + BLEND * (thing.x_m - old.x_m),
            y_m=old.y_m + BLEND * (thing.y_m - old.y_m),
            z_m=old.z_m + BLEND * (thing.z_m - old.z_m),
        )
    elif is_clear or thing.confidence >= old.confidence:
        moved, votes = _changed(thing, id=old.id), (*votes[-1:],) if is_clear else votes
    else:  # half hidden now: what was known is better, only its place in the picture is new
        moved = _changed(old, u_px=thing.u_px, v_px=thing.v_px)
    (label, colour), _ = Counter(votes).most_common(1)[0]
    return Known(_changed(moved, label=label, colour=colour), known.sightings + 1, 0, votes)


def _changed(thing: SeenObject, **fields: float | str) -> SeenObject:
    return msgspec.structs.replace(thing, **fields)  # type: ignore[type-var]  # a Struct, but not to type checkers


def _is_same(one: SeenObject, other: SeenObject) -> bool:
    if one.is_place != other.is_place:
        return False
    if not one.is_place:
        return _apart(one, other) < SAME_M and abs(one.z_m - other.z_m) < FALLEN_M
    is_guess = min(one.confidence, other.confidence) < SURE and one.label == other.label
    return _apart(one, other) < (SAME_GUESS_M if is_guess else SAME_BOX_M)


def _apart(one: SeenObject, other: SeenObject) -> float:
    return math.hypot(one.x_m - other.x_m, one.y_m - other.y_m)
