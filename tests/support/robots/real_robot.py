"""A robot that says it is a real one: what is latched on it is kept for the machine, under a name that no other has."""

from __future__ import annotations

from dataclasses import replace

from nodes.sim.kinematic import KinematicRobot
from nodes.stretch.limits import STRETCH_3
from tests.support.guard.driving import driven, driver_and_guard

LIMITS = replace(STRETCH_3)
LAUNCH = f"""
[run]
robot = "tests.support.robots.real_robot:LIMITS"
{driver_and_guard(driven("tests.support.robots.real_robot:RealRobot"), 'arm = "manual", memory = "run"')}
[nodes.policy]
use = "bench.faults.nodes:SteadyPolicy"
"""


class RealRobot(KinematicRobot):
    """A kinematic Stretch that is nobody's toy."""

    is_hardware = True
