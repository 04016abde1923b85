"""A policy for an SO-101: the hand goes around a square, pointing down; the jaw opens on every other side."""

from __future__ import annotations

import math

import numpy as np

from nodes.msgs import JointCommand, RobotState
from nodes.robot_file.body import body_of_file
from nodes.robot_file.inverse_kinematics import Pose
from runtime import Node, Publisher, QoS, Subscription, every

CORNERS_M = ((0.20, -0.08, 0.10), (0.28, -0.08, 0.10), (0.28, 0.08, 0.10), (0.20, 0.08, 0.10))
SIDE_S = 2.0
"""How long it goes along one side."""
OPEN_M, CLOSED_M = 0.05, 0.005


class DrawSquare(Node):
    """Twenty times a second a target for each joint, searched from where the arm was sent before."""

    seat = "policy"

    state = Subscription(RobotState, "robot/state", qos=QoS(lifespan_s=0.25))
    command = Publisher(JointCommand, "command")

    def __init__(self) -> None:
        self.body = body_of_file("robot/so101.toml")
        self.sent = self.body.robot.folded

    @every(hz=20)
    def tick(self) -> None:
        if self.state.latest() is None:
            return
        side, share = divmod(self.clock.now_s() / SIDE_S, 1.0)
        here, there = (np.array(CORNERS_M[(int(side) + step) % 4]) for step in (0, 1))
        self.sent, _, _ = self.body.towards(pointing_down(here + share * (there - here)), self.sent)
        opening_m = OPEN_M if int(side) % 2 else CLOSED_M
        self.command.publish(JointCommand(position=(*self.sent[:-1], opening_m)))


def pointing_down(place: np.ndarray) -> Pose:
    """The hand at that place (m, odometry frame): its x down, its z sideways as seen from the shoulder."""
    around = math.atan2(place[1], place[0])
    down, sideways = np.array([0.0, 0.0, -1.0]), np.array([-math.sin(around), math.cos(around), 0.0])
    return Pose(np.stack([down, np.cross(sideways, down), sideways], axis=1), place)
