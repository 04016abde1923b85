"""People in the way of a robot in a room: when its arm or its base waits for somebody, and how long."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nodes.msgs import RobotState, SeenPerson
from nodes.policy.skill_phases import Spot
from nodes.sim.messages import Obstacles

NEAR_HAND_M = 0.24
"""A hand this near to where the arm goes is in its way."""
AHEAD_M, WIDE_M = 0.75, 0.38
"""Somebody this far ahead of a base that drives, and this far beside its way, is in its way."""
PATIENCE_S = 8.0
"""A base waits this long for somebody to step aside; then it looks for another way."""


def is_hand_near(spot: Spot, people: Sequence[SeenPerson]) -> bool:
    """Whether somebody's hand is where the arm goes."""
    hands = [one.hand_m for one in people if one.hand_m is not None]
    return any(math.dist((x, y), (spot.x_m, spot.y_m)) < NEAR_HAND_M for x, y, _ in hands)


def is_somebody_ahead(spot: Spot, state: RobotState, near: Obstacles | None) -> bool:
    """Whether somebody stands before a base that drives there."""
    bearing = math.atan2(spot.y_m - state.base_y_m, spot.x_m - state.base_x_m)
    for x, y, radius in near.people if near is not None else ():
        dx, dy = x - state.base_x_m, y - state.base_y_m
        ahead = dx * math.cos(bearing) + dy * math.sin(bearing)
        beside = abs(dy * math.cos(bearing) - dx * math.sin(bearing))
        if -0.2 < ahead < AHEAD_M and beside < WIDE_M + radius / 2:
            return True
    return False
