"""Where the robot was when an image was taken, from the states before and after it, and only where that is certain."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.msgs import RobotState
from nodes.policy.sight import state_between
from nodes.robot.protocol import Body

CLOSE_NS = 30_000_000
"""Between states this near to each other any motion is even enough to interpolate."""


def pose_at(states: Sequence[RobotState], captured_ns: int, body: Body) -> RobotState | None:
    """The robot's state then, between two known ones, oldest first; None where it cannot be told well enough."""
    later = next((index for index, state in enumerate(states) if state.read_ns >= captured_ns), len(states))
    if later == len(states):
        return None
    two = states[later]
    if two.read_ns == captured_ns:
        return two
    if later == 0:
        return None
    one = states[later - 1]
    if two.read_ns - one.read_ns > CLOSE_NS and not body.is_steady(one, two):
        return None
    return state_between(one, two, captured_ns)
