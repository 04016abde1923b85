"""A policy that drives in a circle and looks ahead."""

from nodes.msgs import JointCommand, RobotState
from runtime import Node, Publisher, QoS, Subscription, every


class Circle(Node):
    """20 Hz; silent while nothing is known of the base."""

    seat = "policy"

    state = Subscription(RobotState, "robot/state", qos=QoS(lifespan_s=0.25))
    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        if self.state.latest() is not None:
            self.command.publish(JointCommand(position=(0.0,), base_v_mps=0.1, base_w_radps=0.3))
