"""What a finger or a gaze points at, and whether a head nods: lines in the room, and angles over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from nodes.msgs import SeenObject

PointM = tuple[float, float, float]

POINT_AT_M, LOOK_AT_M = 0.11, 0.25
"""How far beside the line of a finger, or of a gaze, a thing may be."""
POINTS_DOWN = 0.25
"""A line that goes down more steeply points; a palm is level."""
GESTURE_S = 1.9
"""A head nods, or shakes, within this time."""
SWING_RAD = 0.12
"""A head that turns back by less has not changed its direction."""


def direction_of(yaw_rad: float, pitch_rad: float) -> PointM:
    """Ahead of something turned left by yaw and down by pitch."""
    flat = math.cos(pitch_rad)
    return flat * math.cos(yaw_rad), flat * math.sin(yaw_rad), -math.sin(pitch_rad)


def nearest_to_line(start: PointM, line: PointM, things: Iterable[SeenObject], within_m: float) -> str:
    """The id of the thing nearest to a line from the start on; "" where none is near."""
    best, best_m = "", within_m
    for one in things:
        offset = [a - b for a, b in zip((one.x_m, one.y_m, one.z_m), start, strict=True)]
        along = sum(a * b for a, b in zip(offset, line, strict=True))
        beside = math.sqrt(max(sum(a * a for a in offset) - along * along, 0.0))
        if along > 0.05 and beside < best_m:
            best, best_m = one.id, beside
    return best


def swings(angles: Sequence[float]) -> int:
    """How often a head has changed its direction by more than a little."""
    if not angles:
        return 0
    count, turned, extreme = 0, 0, angles[0]
    for angle in angles:
        if abs(angle - extreme) > SWING_RAD and (angle > extreme) != (turned > 0 if turned else angle <= extreme):
            count, turned, extreme = count + 1, 1 if angle > extreme else -1, angle
        elif turned and (angle - extreme) * turned > 0:
            extreme = angle
    return count
