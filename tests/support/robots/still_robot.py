"""A robot whose joints are where they are told to be and whose base drives as it is told, for graphs in tests."""

from __future__ import annotations

from math import cos, sin

import msgspec

from nodes.msgs import JointCommand, RobotState
from runtime import ALONE, Node, Publisher, QoS, Subscription, every
from tests.support.standing import HOME, ZEROS, moving


class StillRobot(Node):
    """Says every 20 ms where it stands, and what it feels; says nothing while it is silent."""

    command = Subscription(JointCommand, "robot/command", qos=QoS(required=False))
    state = Publisher(RobotState, "robot/state", qos=ALONE)
    is_blocked = False
    contact: tuple[str, ...] = ()
    effort = 0.0
    is_silent = False
    position: tuple[float, ...] = HOME
    x_m = y_m = heading_rad = v_mps = w_radps = 0.0

    def devices(self) -> tuple[str, ...]:
        """None."""
        return ()

    @every(hz=50)
    def tick(self) -> None:
        self.x_m += self.v_mps * cos(self.heading_rad) * 0.02
        self.y_m += self.v_mps * sin(self.heading_rad) * 0.02
        self.heading_rad += self.w_radps * 0.02
        if not self.is_silent:
            effort = (self.effort, *ZEROS[1:])
            if not self.is_blocked and (command := self.command.latest()) is not None:
                self.position, self.v_mps, self.w_radps = command.position, command.base_v_mps, command.base_w_radps
            felt = moving(
                self.clock.now_ns(), self.position, ZEROS, self.v_mps, self.w_radps,
                (self.x_m, self.y_m, self.heading_rad),
            )  # fmt: skip
            self.state.publish(msgspec.structs.replace(felt, effort=effort, contact=self.contact))  # type: ignore[type-var]  # a Struct
