"""A policy that drives ahead, and a launch file of it with a watchdog, for tests of what stops it."""

from __future__ import annotations

from nodes.msgs import JointCommand
from nodes.stretch.limits import STOW
from runtime import Node, Publisher, every


def driven(robot: str, robot_params: str = "") -> str:
    """The keys of a driver's table: of the driver that takes this class of robots, with these parameters in TOML."""
    more = f", robot_params = {{ {robot_params} }}" if robot_params else ""
    return f'use = "nodes.robot.driver:Driver"\nparams = {{ robot = "{robot}"{more} }}'


KINEMATIC = driven("nodes.sim.kinematic:KinematicRobot")
SIMULATED = 'use = "nodes.sim.driver:SimDriver"'


def driver_and_guard(driver: str = KINEMATIC, guard: str = 'arm = "auto", memory = "run"') -> str:
    """The tables of both in a launch file, in one process; `guard` are the guard's parameters in TOML."""
    return f"""
[nodes.driver]
{driver}
process = "robot"

[nodes.guard]
use     = "nodes.guard.node:Guard"
process = "robot"
params  = {{ {guard} }}
"""


DRIVING = f"""
{driver_and_guard()}
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
