"""Where the robot was when an image was taken, from the states before and after it, and only where that is certain."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.msgs import Image, RobotState
from nodes.policy.sight import state_between
from nodes.robot.protocol import Body
from runtime import Stamped

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


class Images:
    """The images that eyes have not looked at yet."""

    def __init__(self) -> None:
        self.looked_ns = -1  # when the newest image was taken that was looked at
        self._unposed: Stamped[Image] | None = None  # the image of the last tick

    def posed(
        self, newest: Stamped[Image] | None, states: Sequence[RobotState], body: Body
    ) -> tuple[Stamped[Image], RobotState] | None:
        """The newest image that was not looked at yet and of whose moment the robot's state is known.

        A real robot's state comes later than the image of its moment: then that of the tick before is looked at. None
        where the head moved too fast in both.
        """
        before, self._unposed = self._unposed, newest
        for stamped in (newest, before) if newest is not None else ():
            if stamped is not None and stamped.message.captured_ns > self.looked_ns:
                state = pose_at(states, stamped.message.captured_ns, body)
                if state is not None:
                    self.looked_ns = stamped.message.captured_ns
                    return stamped, state
        return None
