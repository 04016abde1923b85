"""A policy that drives ahead, and a launch file of it with a watchdog, for tests of what stops it."""

from __future__ import annotations

from nodes.msgs import JointCommand
from nodes.stretch.limits import STOW
from runtime import Node, Publisher, every

DRIVING = """
[nodes.driver]
use     = "nodes.robot.driver:Driver"
process = "robot"
params  = { robot = "nodes.sim.kinematic:KinematicRobot" }

[nodes.guard]
use     = "nodes.guard.node:Guard"
process = "robot"
params  = { arm = "auto", memory = "run" }

[nodes.reflex]
use     = "nodes.interrupts.reflex:Reflex"
process = "robot"

[nodes.policy]
use = "tests.support.guard.driving:Ahead"

[watchdog]
"""


class Ahead(Node):
    """Asks for 0.2 m/s, 20 times a second."""

    seat = "policy"
    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def drive(self) -> None:
        self.command.publish(JointCommand(position=STOW, base_v_mps=0.2))
