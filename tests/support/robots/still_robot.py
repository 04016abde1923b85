"""A robot whose joints are where they are told to be and that otherwise stands still, for graphs in tests."""

from __future__ import annotations

from runtime import ALONE, Node, Publisher, QoS, Subscription, every
from runtime.msgs import JointCommand, RobotState
from tests.support.standing import HOME, ZEROS, standing


class StillRobot(Node):
    """Says every 20 ms where it stands, and what it feels; says nothing while it is silent."""

    command = Subscription(JointCommand, "robot/command", qos=QoS(required=False))
    state = Publisher(RobotState, "robot/state", qos=ALONE)
    is_blocked = False
    contact: tuple[str, ...] = ()
    effort = 0.0
    is_silent = False
    position: tuple[float, ...] = HOME

    def devices(self) -> tuple[str, ...]:
        """None."""
        return ()

    @every(hz=50)
    def tick(self) -> None:
        if not self.is_silent:
            effort = (self.effort, *ZEROS[1:])
            if not self.is_blocked and (command := self.command.latest()) is not None:
                self.position = command.position
            now_ns = self.clock.now_ns()
            self.state.publish(standing(now_ns, self.position, effort=effort, contact=self.contact))
