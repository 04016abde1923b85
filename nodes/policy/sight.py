"""The scripted policy's own look: where the robot was when an image was taken, and whether a thing is in that image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from nodes.kinematics import from_odometry, head_camera_pose
from nodes.policy.skills import Spot
from runtime.msgs import Image, RobotState, SeenObject

MATCH_M = 0.10
"""A thing of the right name this near the place in mind is the one meant."""
BORDER_PX = 8
IN_FRONT_M = 0.10
"""Depth this much shorter than expected: something else stands before the thing, which may still be there."""

Sighting = Literal["seen", "gone", "hidden"]


def state_at(states: Sequence[RobotState], captured_ns: int) -> RobotState | None:
    """Where the robot was then, between two known states, oldest first; the nearest one outside of them."""
    if not states:
        return None
    later = next((index for index, state in enumerate(states) if state.read_ns >= captured_ns), len(states))
    if later in (0, len(states)):
        return states[min(later, len(states) - 1)]
    one, two = states[later - 1], states[later]
    share = (captured_ns - one.read_ns) / (two.read_ns - one.read_ns)
    return RobotState(
        read_ns=captured_ns,
        position=tuple(a + share * (b - a) for a, b in zip(one.position, two.position, strict=True)),
        velocity=two.velocity,
        effort=two.effort,
        base_x_m=one.base_x_m + share * (two.base_x_m - one.base_x_m),
        base_y_m=one.base_y_m + share * (two.base_y_m - one.base_y_m),
        base_heading_rad=one.base_heading_rad + share * (two.base_heading_rad - one.base_heading_rad),
        base_v_mps=two.base_v_mps,
        base_w_radps=two.base_w_radps,
        contact=two.contact,
        is_grasping=two.is_grasping,
    )


def spot_of(thing: SeenObject) -> Spot:
    """A seen thing as something to go to."""
    name = f"{thing.colour} {thing.label}".strip()
    return Spot(name if thing.label != "bin" else "bin", thing.x_m, thing.y_m, thing.z_m, thing.height_m)


def match(spot: Spot, things: Sequence[SeenObject]) -> Spot | None:
    """The nearest thing of that name, if it is near enough to be the same."""
    same = [other for other in map(spot_of, things) if other.name == spot.name]
    near = [(math.dist((other.x_m, other.y_m), (spot.x_m, spot.y_m)), other) for other in same]
    distance, nearest = min(near, key=lambda pair: pair[0], default=(math.inf, None))
    return nearest if distance < MATCH_M else None


def blend(spot: Spot, seen: Spot, share: float) -> Spot:
    """The spot moved by a share of the way to where it was seen: noise of single images evens out."""
    return replace(
        spot,
        x_m=spot.x_m + share * (seen.x_m - spot.x_m),
        y_m=spot.y_m + share * (seen.y_m - spot.y_m),
        z_m=spot.z_m + share * (seen.z_m - spot.z_m),
        height_m=spot.height_m + share * (seen.height_m - spot.height_m),
    )


def is_in_view(spot: Spot, image: Image, state: RobotState) -> bool:
    """Whether the spot's middle is inside the head image with nothing before it."""
    rotation, origin = head_camera_pose(state.position)
    place = np.array([spot.x_m, spot.y_m, spot.z_m])
    point = from_odometry(state.base_x_m, state.base_y_m, state.base_heading_rad, place)
    right, down, ahead = (float(part) for part in (point - origin) @ rotation)
    if ahead < 0.1 or image.focal_px <= 0.0:
        return False
    height, width = image.rgb.shape[:2]
    u = width / 2 + image.focal_px * right / ahead
    v = height / 2 + image.focal_px * down / ahead
    if not (BORDER_PX <= u < width - BORDER_PX and BORDER_PX <= v < height - BORDER_PX):
        return False
    if image.depth_m is None:
        return True
    depth = float(image.depth_m[int(v), int(u)])
    return depth == 0.0 or depth > ahead - IN_FRONT_M


def judge(spot: Spot, things: Sequence[SeenObject], image: Image, state: RobotState) -> tuple[Sighting, Spot | None]:
    """What one image says of a spot, and where the thing is in it."""
    found = match(spot, things)
    if found is not None:
        return "seen", found
    return ("gone" if is_in_view(spot, image, state) else "hidden"), None
