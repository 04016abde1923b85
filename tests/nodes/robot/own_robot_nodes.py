"""A policy for a robot of two joints."""

from __future__ import annotations

from nodes.msgs import JointCommand, RobotState
from runtime import Node, Publisher, Subscription, every


class Far(Node):
    """Asks every joint to go a little beyond its range."""

    state = Subscription(RobotState, "robot/state")
    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        state = self.state.latest()
        if state is not None:
            beyond = tuple(1.2 + number for number in range(len(state.position)))
            self.command.publish(JointCommand(position=beyond))
