"""A robot that stands still and says so, for graphs in tests."""

from __future__ import annotations

from runtime import Node, Publisher, every
from runtime.msgs import RobotState
from tests.standing import HOME


class StillRobot(Node):
    """Says every 20 ms where it stands."""

    state = Publisher(RobotState, "robot/state")

    @every(hz=50)
    def tick(self) -> None:
        zeros = (0.0,) * 8
        self.state.publish(
            RobotState(
                read_ns=self.clock.now_ns(), position=HOME, velocity=zeros, effort=zeros, base_x_m=0.0, base_y_m=0.0,
                base_heading_rad=0.0, base_v_mps=0.0, base_w_radps=0.0,
            )
        )  # fmt: skip
