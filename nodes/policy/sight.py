"""The scripted policy's own look: where the robot was when an image was taken, and whether a thing is in that image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import msgspec

from nodes.msgs import Image, RobotState, SeenObject
from nodes.perception.shapes import shape_names
from nodes.policy.skill_phases import Spot
from nodes.robot.protocol import Body

MATCH_M = 0.13
"""A thing of the right name this near the place in mind is the one meant."""
SAME_PLACE_M = 0.06
"""What stands this near to where it was pointed at is the one meant, whatever these eyes call it."""
SURE = 0.5
"""A thing that the image's edge or the robot's own arm cuts is less sure than this: it is there, but not to the cm."""

ABOVE_M, ABOVE_TOP_M = 0.02, 0.10
"""Skin counts from so much above what the thing stands on, where the table may have its colour, to above its top."""

BELOW_TOP_M, BEHIND_M = 0.02, 0.04
"""A place is empty when the camera sees this far behind the point this far below the thing's top."""

Sighting = Literal["seen", "glimpsed", "gone", "hidden"]


def state_at(states: Sequence[RobotState], captured_ns: int) -> RobotState | None:
    """Where the robot was then, between two known states, oldest first; the nearest one outside of them."""
    if not states:
        return None
    later = next((index for index, state in enumerate(states) if state.read_ns >= captured_ns), len(states))
    if later in (0, len(states)):
        return states[min(later, len(states) - 1)]
    return state_between(states[later - 1], states[later], captured_ns)


def state_between(one: RobotState, two: RobotState, captured_ns: int) -> RobotState:
    """Where the robot was between two known states."""
    share = (captured_ns - one.read_ns) / (two.read_ns - one.read_ns)

    def between(before: float, after: float) -> float:
        return before + share * (after - before)

    blended: RobotState = msgspec.structs.replace(  # type: ignore[type-var]  # a Struct, but not to type checkers
        two,
        read_ns=captured_ns,
        position=tuple(between(a, b) for a, b in zip(one.position, two.position, strict=True)),
        base_x_m=between(one.base_x_m, two.base_x_m),
        base_y_m=between(one.base_y_m, two.base_y_m),
        base_heading_rad=between(one.base_heading_rad, two.base_heading_rad),
    )
    return blended


def spot_of(thing: SeenObject) -> Spot:
    """A seen thing as something to go to."""
    return Spot(thing.name, thing.x_m, thing.y_m, thing.z_m, thing.height_m, label=thing.label)


def knows(label: str) -> bool:
    """Whether these eyes have a word for a kind: what has none they can only see to be there."""
    return label.lower() in (*shape_names().kinds, *shape_names().places)


def match(spot: Spot, things: Sequence[SeenObject]) -> SeenObject | None:
    """The nearest thing of that name, if it is near enough to be the same.

    Where these eyes have no word for it, the nearest of any name that stands where it was pointed at.
    """
    same = [thing for thing in things if spot.name in (thing.name, thing.label)]
    found = _nearest(spot, same, MATCH_M)
    if found is None and spot.label and not knows(spot.label):
        found = _nearest(spot, [thing for thing in things if not thing.is_place], SAME_PLACE_M)
    return found


def _nearest(spot: Spot, things: Sequence[SeenObject], within_m: float) -> SeenObject | None:
    near = [(math.dist((thing.x_m, thing.y_m), (spot.x_m, spot.y_m)), thing) for thing in things]
    distance, nearest = min(near, key=lambda pair: pair[0], default=(math.inf, None))
    return nearest if distance < within_m else None


def blend(spot: Spot, seen: Spot, share: float) -> Spot:
    """The spot moved by a share of the way to where it was seen: noise of single images evens out."""
    return replace(
        spot,
        x_m=spot.x_m + share * (seen.x_m - spot.x_m),
        y_m=spot.y_m + share * (seen.y_m - spot.y_m),
        z_m=spot.z_m + share * (seen.z_m - spot.z_m),
        height_m=spot.height_m + share * (seen.height_m - spot.height_m),
    )


def judge(spot: Spot, image: Image, state: RobotState, *, body: Body, finds: bool) -> tuple[Sighting, Spot | None]:
    """What one image, taken when the robot was so, says of a spot; with `finds` also where the thing is in it."""
    from nodes.perception.hands import rises_near
    from nodes.perception.objects import find_objects, place_is_empty  # OpenCV, only in a process that looks
    from nodes.perception.point_cloud import Shot

    if image.depth_m is None:
        return "hidden", None
    shot = Shot(image.depth_m, image.focal_px, *body.head_camera(state))
    middle = (spot.x_m, spot.y_m, spot.top_m - BELOW_TOP_M)
    found = match(spot, find_objects(image.rgb, shot, own=body.own_parts(state))) if finds else None
    is_unknown = found is None and finds and spot.label and not knows(spot.label)
    if is_unknown and rises_near(shot, (spot.x_m, spot.y_m), _heights(spot), own=body.own_parts(state)):
        return "seen", None
    if found is not None:
        return ("seen", spot_of(found)) if found.confidence >= SURE else ("glimpsed", None)
    return ("gone" if place_is_empty(shot, middle, margin_m=BEHIND_M) else "hidden"), None


def is_hand_at(spot: Spot, image: Image, state: RobotState, *, body: Body) -> bool:
    """Whether one image, taken when the robot was so, shows a hand or a face there: skin above what the thing stands
    on, which is not the robot's own.
    """
    if image.depth_m is None:
        return False
    from nodes.perception.hands import skin_near  # OpenCV, only in a process that looks
    from nodes.perception.point_cloud import Shot

    shot = Shot(image.depth_m, image.focal_px, *body.head_camera(state))
    return skin_near(image.rgb, shot, (spot.x_m, spot.y_m), _heights(spot), own=body.own_parts(state))


def _heights(spot: Spot) -> tuple[float, float]:
    """From above what the thing stands on to above its top."""
    return spot.z_m - spot.height_m / 2 + ABOVE_M, spot.top_m + ABOVE_TOP_M
