"""What is so of things as they are seen: what words mean, where a thing is, where there is room; pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from nodes.msgs import Reference, SeenObject
from nodes.vlm.choice.giving_up import given_up
from nodes.vlm.choice.situation import Situation

SURE = 0.5
ON_FLAT_M = 0.04
"""What stands on something flat begins at most so far above it."""
SPOT_STEP_M, ROOM_M = 0.08, 0.14
"""Where things are set down: points of a grid, this far from what stands there."""
CLEARLY_M = 0.04
"""A place to set something down is left for another that has so much more room; less is how eyes and hands waver."""
IN_BOX = 0.73
"""A thing nearer to the middle of a box than this share of its narrower side lies in it, or in a corner of it."""
FLOOR_M = 0.05
"""What begins below this, and in no box, lies on the floor, which is at 0 in the odometry frame."""
GAZES = ((0.0, -0.65, 0.5), (0.65, -0.55, 0.4), (-0.55, -0.60, 0.4), (0.9, 0.1, 0.3))
"""Where to look for things, base frame, m: where the arm reaches, then ahead and behind of it, then straight ahead."""
HAND = "hand"
"""What a hand is called that is held out."""


def is_excluded(now: Situation, thing: SeenObject) -> bool:
    """Whether it is not to be touched: the planner's word, or what was said since."""
    planned = now.subtask.excluding if now.subtask is not None else ()
    return is_one_of((*planned, *now.vetoed), thing)


def is_one_of(references: Iterable[Reference], thing: SeenObject) -> bool:
    """Whether any of them means it."""
    return any(is_meant_by(one, thing) for one in references)


def is_meant_by(one: Reference, thing: SeenObject) -> bool:
    """Whether the reference means the thing: by its id, else by what it is and its colour."""
    if one.id and thing.id:
        return one.id == thing.id
    return one.label in ("", "*", thing.label) and one.colour in ("", thing.colour)


def as_reference(thing: SeenObject) -> Reference:
    """This thing alone."""
    return Reference(id=thing.id, label=thing.label, colour=thing.colour)


def is_same(one: SeenObject, other: SeenObject) -> bool:
    """Whether both are one thing."""
    return one.id == other.id if one.id and other.id else (one.colour, one.label) == (other.colour, other.label)


def destination(now: Situation) -> SeenObject | None:
    """Where the subtask wants things, the surest one, or None while it is not seen."""
    where = now.subtask.place if now.subtask is not None else ""
    places = (one for one in now.objects if one.is_place and one.label == where)
    return max(places, key=lambda one: one.confidence, default=None)


def is_in(thing: SeenObject, place: SeenObject) -> bool:
    """Whether a thing is in, or on, a place."""
    away_m = math.hypot(thing.x_m - place.x_m, thing.y_m - place.y_m)
    if place.height_m == 0.0:  # something flat: what stands on it is as high as it; without a width it has no end
        is_level = abs(thing.z_m - thing.height_m / 2 - place.z_m) < ON_FLAT_M
        return is_level and (place.width_m == 0.0 or away_m < place.width_m / 2)
    return away_m < IN_BOX * place.width_m


def is_on_floor(thing: SeenObject) -> bool:
    """Whether it lies there, where it is in no box."""
    return not thing.is_place and thing.z_m - thing.height_m / 2 < FLOOR_M


def place_of(thing: SeenObject, objects: Iterable[SeenObject]) -> SeenObject | None:
    """What it is in, else what it is on."""
    around = [one for one in objects if one.is_place and one is not thing and is_in(thing, one)]
    return min(around, key=lambda one: (one.height_m == 0.0, one.width_m == 0.0), default=None)


def wanted(now: Situation) -> tuple[SeenObject, ...]:
    """Things the subtask is about that may be taken now, best first: asked for, clearly seen, near."""
    task = now.subtask
    if task is None:
        return ()
    places = [one for one in now.objects if one.is_place]
    there = [one for one in places if one.label == task.place]
    moved = [sum(is_meant_by(one, thing) for thing in now.moved) for one in task.things]
    open_ones = [one for one, done in zip(task.things, moved, strict=True) if one.count == 0 or one.count > done]
    found = [
        thing
        for thing in now.objects
        if not thing.is_place
        and any(is_meant_by(one, thing) and is_from(one, thing, places) for one in open_ones)
        and not is_excluded(now, thing)
        and thing.name not in given_up(now)
        and not (
            task.relation != "beside"
            and any(is_in(thing, one) for one in there)
            and not _is_elsewhere(thing, there, places)
        )
    ]
    x, y, _ = now.base

    def rank(thing: SeenObject) -> tuple[bool, bool, int, float]:
        distance = math.hypot(thing.x_m - x, thing.y_m - y)
        tries = now.failures.get(thing.name, 0)
        return thing.colour != now.preferred, thing.confidence < SURE, tries, distance

    return tuple(sorted(found, key=rank))


def is_from(reference: Reference, thing: SeenObject, places: Iterable[SeenObject]) -> bool:
    """Whether it stands where the order says; an id says enough by itself."""
    return not reference.source or any(is_in(thing, one) for one in places if one.label == reference.source)


def _is_elsewhere(thing: SeenObject, there: Sequence[SeenObject], places: Iterable[SeenObject]) -> bool:
    """Whether it is in a box that stands beside the flat place."""
    return any(is_in(thing, one) for one in places if one.height_m > 0.0 and one not in there)


def free_spot(now: Situation, place: SeenObject) -> SeenObject:
    """Where on a flat place there is room: the free point nearest to its middle."""
    taken = [(one.x_m, one.y_m) for one in now.objects if one is not place]
    steps = [number * SPOT_STEP_M for number in range(-4, 5)]
    points = [(place.x_m + dx, place.y_m + dy) for dx in steps for dy in steps[2:7]]
    free = [point for point in points if all(math.dist(point, other) > ROOM_M for other in taken)]
    return moved_to(place, min(free or points, key=lambda point: math.dist(point, (place.x_m, place.y_m))))


def is_still_good(chosen: tuple[float, float], best: tuple[float, float], taken: Iterable[tuple[float, float]]) -> bool:
    """Whether a point chosen before is kept: the best one now is not clearly further from what stands there."""
    others = list(taken)

    def room_m(at: tuple[float, float]) -> float:
        return min((math.dist(at, other) for other in others), default=ROOM_M)

    return room_m(chosen) > min(room_m(best), ROOM_M) - CLEARLY_M


def moved_to(place: SeenObject, at_m: tuple[float, float]) -> SeenObject:
    """The same at another point."""
    moved: SeenObject = msgspec.structs.replace(place, x_m=at_m[0], y_m=at_m[1])  # type: ignore[type-var]  # a Struct
    return moved


def arm_side(base: tuple[float, float, float]) -> tuple[float, float, float]:
    """Where the arm reaches, odometry frame, m: things are there if anywhere."""
    return before(base, GAZES[0])


def before(base: tuple[float, float, float], at: tuple[float, float, float]) -> tuple[float, float, float]:
    """A point of the base's frame in the odometry frame, m."""
    (x, y, heading), (ahead, left, up) = base, at
    c, s = math.cos(heading), math.sin(heading)
    return x + c * ahead - s * left, y + s * ahead + c * left, up


def spot(label: str, x_m: float, y_m: float, z_m: float, *, ident: str = "", is_place: bool = True) -> SeenObject:
    """A place by where it is alone: to look at, or to set a thing onto."""
    return SeenObject(
        id=ident, label=label, colour="", x_m=x_m, y_m=y_m, z_m=z_m, width_m=0.0, height_m=0.0, u_px=0.0, v_px=0.0,
        is_place=is_place,
    )  # fmt: skip
