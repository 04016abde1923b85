"""`Wave`: a policy that turns the waist to and fro."""

from math import sin

from nodes.msgs import JointCommand, RobotState
from runtime import Node, Publisher, QoS, Subscription, every
from runtime.clock import NS_PER_S


class Wave(Node):
    """Asks for a waist angle 20 times a second; how much of it is followed is the guard's decision."""

    seat = "policy"

    state = Subscription(RobotState, "robot/state", qos=QoS(lifespan_s=0.25))
    command = Publisher(JointCommand, "command")

    def __init__(self, reach_rad: float = 0.6) -> None:
        self.reach_rad = reach_rad

    @every(hz=20)
    def tick(self) -> None:
        if self.state.latest() is None:
            return  # nothing is known of the robot: silence, and the guard holds
        waist_rad = self.reach_rad * sin(self.clock.now_ns() / NS_PER_S)
        self.command.publish(JointCommand(position=(waist_rad, 0.0, 1.0, 0.04)))
