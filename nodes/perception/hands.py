"""An open hand that is held out over the table, from one image with depth: where its palm is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nodes.perception.colors import is_skin
from nodes.perception.point_cloud import Floats, back_project, is_own
from nodes.robot.protocol import Capsule

ABOVE_TABLE_M = (0.08, 0.35)
"""A hand that waits for something is held so high."""
LEAST_PX = 30
PALM_M = 0.12
"""No part of a palm is farther from its middle."""
MOST_STRAY = 0.2
"""Where a larger share of the skin lies elsewhere, it is no single hand."""


NEAR_M = 0.10
"""Skin so near to the middle of a thing is a hand on it, or a hand that is taken for it."""
RISES_M = 0.05
"""Anything so near to a place, above what it stands on, is a thing there."""
MOST_SPREAD_PX = 0.5
"""Of a picture: where more of it has the hue of skin, the light or a wall has it, and nothing is told by it."""


def skin_near(
    rgb: NDArray[np.uint8],
    depth_m: NDArray[np.float32],
    focal_px: float,
    camera_rotation: Floats,
    camera_position: Floats,
    place_m: tuple[float, float],
    heights_m: tuple[float, float],
    *,
    own: Sequence[Capsule] = (),
) -> bool:
    """Whether at least `LEAST_PX` pixels of skin lie within `NEAR_M` of a place, between two heights, m.

    The robot's own parts do not count.
    """
    skin = np.flatnonzero(is_skin(rgb.reshape(-1, 3)) & (depth_m.reshape(-1) > 0.0))
    if not LEAST_PX <= len(skin) <= MOST_SPREAD_PX * depth_m.size:
        return False
    points = back_project(depth_m, focal_px, camera_rotation, camera_position).reshape(-1, 3).take(skin, axis=0)
    return _is_something(points, place_m, NEAR_M, heights_m, own, camera_position)


def rises_near(
    depth_m: NDArray[np.float32],
    focal_px: float,
    camera_rotation: Floats,
    camera_position: Floats,
    place_m: tuple[float, float],
    heights_m: tuple[float, float],
    *,
    own: Sequence[Capsule] = (),
) -> bool:
    """Whether at least `LEAST_PX` pixels of anything but the robot lie within `RISES_M` of a place, between heights."""
    points = back_project(depth_m, focal_px, camera_rotation, camera_position).reshape(-1, 3)
    known = points[depth_m.reshape(-1) > 0.0]
    return _is_something(known, place_m, RISES_M, heights_m, own, camera_position)


def _is_something(
    points: NDArray[np.float32], place_m: tuple[float, float], within_m: float, heights_m: tuple[float, float],
    own: Sequence[Capsule], camera_position: Floats,
) -> bool:  # fmt: skip
    is_near = np.hypot(points[:, 0] - place_m[0], points[:, 1] - place_m[1]) < within_m
    near = points[is_near & (points[:, 2] > heights_m[0]) & (points[:, 2] < heights_m[1])]
    if len(near) < LEAST_PX:
        return False
    columns = np.ascontiguousarray(near.T, dtype=np.float32)
    others = ~is_own(columns, tuple(own), np.asarray(camera_position))
    return int(np.count_nonzero(others)) >= LEAST_PX


def find_palm(
    rgb: NDArray[np.uint8],
    depth_m: NDArray[np.float32],
    focal_px: float,
    camera_rotation: Floats,
    camera_position: Floats,
    *,
    table_z_m: float,
) -> tuple[float, float, float] | None:
    """The middle of the palm's upper side, in the frame of the camera pose, m; None where no hand is held out."""
    skin = np.flatnonzero(is_skin(rgb.reshape(-1, 3)) & (depth_m.reshape(-1) > 0.0))
    if len(skin) < LEAST_PX:
        return None
    points = back_project(depth_m, focal_px, camera_rotation, camera_position).reshape(-1, 3).take(skin, axis=0)
    low, high = (np.float32(table_z_m + above_m) for above_m in ABOVE_TABLE_M)
    points = points[(points[:, 2] > low) & (points[:, 2] < high)]
    if len(points) < LEAST_PX:
        return None
    middle = np.median(points, axis=0)
    is_near = np.hypot(*(points[:, :2] - middle[:2]).T) < PALM_M
    if np.count_nonzero(~is_near) > MOST_STRAY * len(points):
        return None
    x, y, z = middle[0], middle[1], np.quantile(points[is_near, 2], 0.9)
    return float(x), float(y), float(z)
