"""A robot that stands still and says so, for graphs in tests."""

from __future__ import annotations

from runtime import Node, Publisher, every
from runtime.msgs import RobotState
from tests.support.standing import ZEROS, standing


class StillRobot(Node):
    """Says every 20 ms where it stands, and what it feels; says nothing while it is silent."""

    state = Publisher(RobotState, "robot/state")
    contact: tuple[str, ...] = ()
    effort = 0.0
    is_silent = False

    @every(hz=50)
    def tick(self) -> None:
        if not self.is_silent:
            effort = (self.effort, *ZEROS[1:])
            self.state.publish(standing(self.clock.now_ns(), effort=effort, contact=self.contact))
