"""Where the robot was when an image was taken, from the states before and after it, and only where that is certain."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nodes.robot.protocol import Body
from runtime.msgs import RobotState

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
