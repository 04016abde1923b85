"""Hands and heads in one image with depth: where a palm is, where a hand points, and where a face looks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from nodes.perception.colors import colour_codes, is_skin, name_colour
from nodes.perception.gestures import PointM
from nodes.perception.point_cloud import Bools, Floats, Points, Shot, back_project, is_own
from nodes.robot.products import least_squares, product
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
LEAST_SKIN_PX, LEAST_SLEEVE_PX = 20, 14
FACE_FROM_M = 1.25
FACE_RADIUS_M = 0.10
NOSE_M, NOSE_LEAST_PX = 0.008, 3
ARM_M, BELOW_PALM_M = 0.45, 0.05
"""What is so near to a palm, and no lower below it, is of its arm, or lies in it."""
IN_PALM_M, OVER_PALM_M, LEAST_HELD_PX = 0.05, 0.03, 8
ARM_RADIUS_M, HELD_M = 0.09, 0.25
TIP_M = 0.15
"""From the middle of a palm to the end of its finger."""


@dataclass(frozen=True, slots=True)
class HandPose:
    """The middle of a palm, and where its fingers point."""

    palm_m: PointM
    line: PointM

    @property
    def room(self) -> tuple[Capsule, Capsule]:
        """What hand and forearm take up, and what lies in the hand."""
        (x, y, z), (a, b, c) = self.palm_m, self.line
        tip, elbow = TIP_M - ARM_RADIUS_M, ARM_M
        return (
            Capsule(
                (x + tip * a, y + tip * b, z + tip * c), (x - elbow * a, y - elbow * b, z - elbow * c), ARM_RADIUS_M
            ),
            Capsule((x, y, z), (x, y, z + HELD_M), ARM_RADIUS_M),
        )


@dataclass(frozen=True, slots=True)
class Face:
    """A head, and where its nose points; None where no nose is seen."""

    middle_m: PointM
    line: PointM | None


def skin_near(
    rgb: NDArray[np.uint8],
    shot: Shot,
    place_m: tuple[float, float],
    heights_m: tuple[float, float],
    *,
    own: Sequence[Capsule] = (),
) -> bool:
    """Whether at least `LEAST_PX` pixels of skin lie within `NEAR_M` of a place, between two heights, m.

    The robot's own parts do not count.
    """
    skin = np.flatnonzero(is_skin(rgb.reshape(-1, 3)) & (shot.depth_m.reshape(-1) > 0.0))
    if not LEAST_PX <= len(skin) <= MOST_SPREAD_PX * shot.depth_m.size:
        return False
    points = back_project(shot).T.take(skin, axis=0)
    return _is_something(points, place_m, NEAR_M, heights_m, own, shot.position)


def rises_near(
    shot: Shot, place_m: tuple[float, float], heights_m: tuple[float, float], *, own: Sequence[Capsule] = ()
) -> bool:
    """Whether at least `LEAST_PX` pixels of anything but the robot lie within `RISES_M` of a place, between heights."""
    points = back_project(shot).T
    known = points[shot.depth_m.reshape(-1) > 0.0]
    return _is_something(known, place_m, RISES_M, heights_m, own, shot.position)


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


def find_palm(rgb: NDArray[np.uint8], shot: Shot, *, table_z_m: float) -> tuple[float, float, float] | None:
    """The middle of the palm's upper side, in the frame of the camera pose, m; None where no hand is held out."""
    skin = np.flatnonzero(is_skin(rgb.reshape(-1, 3)) & (shot.depth_m.reshape(-1) > 0.0))
    if len(skin) < LEAST_PX:
        return None
    points = back_project(shot).T.take(skin, axis=0)
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


def find_hand(
    rgb: NDArray[np.uint8], shot: Shot, *, table_z_m: float, own: Sequence[Capsule] = ()
) -> tuple[HandPose, str] | None:
    """The hand over a table with the colour of what lies in it ("": nothing); None where there is none."""
    palm = find_palm(rgb, shot, table_z_m=table_z_m)
    if palm is None:
        return None
    points = back_project(shot).T
    is_near = (shot.depth_m.reshape(-1) > 0.0) & (
        np.linalg.norm(points - np.array(palm, dtype=np.float32), axis=1) < ARM_M
    )
    near = np.flatnonzero(is_near & (points[:, 2] > palm[2] - BELOW_PALM_M))
    at = np.ascontiguousarray(points[near].T)
    kept = ~is_own(at, tuple(own), np.asarray(shot.position))
    near, at = near[kept], at[:, kept]
    skin = is_skin(rgb.reshape(-1, 3)[near])
    poses = hands_in(at, skin)
    is_over = (np.hypot(at[0] - palm[0], at[1] - palm[1]) < IN_PALM_M) & (at[2] > palm[2] + OVER_PALM_M) & ~skin
    held = ""
    if np.count_nonzero(is_over) >= LEAST_HELD_PX:
        hsv = np.asarray(cv2.cvtColor(rgb.reshape(-1, 1, 3)[near[is_over]], cv2.COLOR_RGB2HSV), dtype=np.uint8)[:, 0]
        held = name_colour(colour_codes(hsv), hsv[:, 2])
    return HandPose(palm, poses[0].line if poses else (0.0, 0.0, 0.0)), held


def find_faces(rgb: NDArray[np.uint8], shot: Shot) -> list[Face]:
    """The head of somebody who stands before the camera; none where skin is seen in several places so high up."""
    points = back_project(shot).T
    high = np.flatnonzero((shot.depth_m.reshape(-1) > 0.0) & (points[:, 2] > FACE_FROM_M))
    at = points[high[is_skin(rgb.reshape(-1, 3)[high])]].T
    if at.shape[1] < LEAST_SKIN_PX:
        return []
    is_far = np.linalg.norm(at - np.median(at, axis=1)[:, None], axis=0) > 2 * FACE_RADIUS_M
    if np.count_nonzero(is_far) > MOST_STRAY * at.shape[1]:
        return []
    return faces_in(at, np.ones(at.shape[1], dtype=np.bool_))


def hands_in(points: Points, is_skin_of: Bools) -> list[HandPose]:
    """The hand of an arm: the line from the sleeve to the fingers, and the palm on it."""
    low = points[2] < FACE_FROM_M
    skin, all_ = points[:, is_skin_of & low].astype(np.float64), points[:, low].astype(np.float64)
    if skin.shape[1] < LEAST_SKIN_PX:
        return []
    middle = np.median(skin, axis=1)
    near = all_[:, np.linalg.norm(all_ - middle[:, None], axis=0) < 0.45]
    sleeve = near[:, np.linalg.norm(near - middle[:, None], axis=0) > 0.16]
    if sleeve.shape[1] < LEAST_SLEEVE_PX:
        spread = skin - skin.mean(axis=1)[:, None]
        line = cv2.eigen(product(spread, spread.T))[2][0]
        line *= -math.copysign(1.0, line[0])  # both ways fit: the one towards -x
    else:
        line = middle - np.median(sleeve, axis=1)
    line /= math.hypot(*line.tolist())
    tip = float(np.quantile(product(line, skin), 0.99))
    palm = middle + line * (tip - TIP_M + 0.01 - float(product(line, middle)))
    palm[2] -= 0.01  # its upper side is seen
    x, y, z = palm.tolist()
    a, b, c = line.tolist()
    return [HandPose((x, y, z), (a, b, c))]


def faces_in(points: Points, is_skin_of: Bools) -> list[Face]:
    """The head of somebody who stands: a ball of skin, and its nose."""
    skin = points[:, is_skin_of & (points[2] > FACE_FROM_M)].astype(np.float64)
    if skin.shape[1] < LEAST_SKIN_PX:
        return []
    middle = _middle_of_ball(skin)
    away = np.linalg.norm(skin - middle[:, None], axis=0)
    nose = skin[:, away > FACE_RADIUS_M + NOSE_M]
    x, y, z = middle.tolist()
    if nose.shape[1] < NOSE_LEAST_PX:
        return [Face((x, y, z), None)]
    line = nose.mean(axis=1) - middle
    a, b, c = (line / math.hypot(*line.tolist())).tolist()
    return [Face((x, y, z), (a, b, c))]


def _middle_of_ball(points: Floats) -> Floats:
    """The middle of a ball of a head's radius through most of the points: a few steps of Gauss and Newton."""
    middle = points.mean(axis=1)
    toward = middle / max(math.hypot(*middle.tolist()), 1e-6)
    middle = middle + 0.05 * np.array([toward[0], toward[1], 0.0])
    kept = points
    for _ in range(8):
        offset = kept - middle[:, None]
        away = np.linalg.norm(offset, axis=0)
        error = away - FACE_RADIUS_M
        middle = middle + least_squares((offset / away).T, error)
        error = np.abs(np.linalg.norm(points - middle[:, None], axis=0) - FACE_RADIUS_M)
        kept = points[:, error < max(0.006, float(np.median(error)))]
        if kept.shape[1] < 8:
            break
    return np.asarray(middle)
