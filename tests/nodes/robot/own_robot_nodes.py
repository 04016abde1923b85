"""A policy for a robot of any number of joints."""

from __future__ import annotations

from runtime import Node, Publisher, Subscription, every
from runtime.msgs import JointCommand, RobotState


class Far(Node):
    """Asks every joint to go far beyond its range."""

    state = Subscription(RobotState, "robot/state")
    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        state = self.state.latest()
        if state is not None:
            self.command.publish(JointCommand(position=(100.0,) * len(state.position)))
