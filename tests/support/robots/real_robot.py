"""A robot that says it is a real one: what is latched on it is kept for the machine, under a name that no other has."""

from __future__ import annotations

from dataclasses import replace

from nodes.sim.kinematic import KinematicRobot
from nodes.stretch.limits import STRETCH_3

LIMITS = replace(STRETCH_3)
LAUNCH = """
[run]
robot = "tests.support.robots.real_robot:LIMITS"

[nodes.driver]
use     = "nodes.robot.driver:Driver"
process = "robot"
params  = { robot = "tests.support.robots.real_robot:RealRobot" }

[nodes.guard]
use     = "nodes.guard.node:Guard"
process = "robot"
params  = { arm = "manual", memory = "run" }

[nodes.policy]
use = "bench.faults.nodes:SteadyPolicy"
"""


class RealRobot(KinematicRobot):
    """A kinematic Stretch that is nobody's toy."""

    is_hardware = True
