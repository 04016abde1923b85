"""The simulated robot and the kinematic one keep what the robot protocol promises."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import nodes.robot.conformance
from nodes.robot.conformance import Bench, RobotConformance
from nodes.sim.kinematic import KinematicRobot
from nodes.sim.robot import SimRobot
from nodes.stretch.limits import STRETCH_3


class SimBench(Bench):
    robot: SimRobot

    def __init__(self) -> None:
        super().__init__(SimRobot())

    def press_runstop(self, is_on: bool) -> None:
        self.robot.runstop(is_on)

    def touch(self) -> Literal["lift", "base"]:
        self.robot.move_person("foot", (0.28, 0.0, 0.04))
        return "base"


class KinematicBench(Bench):
    robot: KinematicRobot

    def __init__(self) -> None:
        super().__init__(KinematicRobot())

    def press_runstop(self, is_on: bool) -> None:
        self.robot.runstop(is_on)

    def unhome(self) -> None:
        self.robot = KinematicRobot(homed=False)

    def touch(self) -> Literal["lift", "base"]:
        self.robot.touch("lift")
        return "lift"


class OmniRobot(KinematicRobot):
    """A Stretch's joints on a base that drives sideways."""

    limits = replace(STRETCH_3, base=replace(STRETCH_3.base, is_omni=True))


class OmniBench(KinematicBench):
    def __init__(self) -> None:
        Bench.__init__(self, OmniRobot())

    def unhome(self) -> None:
        self.robot = OmniRobot(homed=False)


class TestOmniRobot(RobotConformance):
    def make(self) -> Bench:
        return OmniBench()


class TestSimRobot(RobotConformance):
    def make(self) -> Bench:
        return SimBench()


class TestKinematicRobot(RobotConformance):
    def make(self) -> Bench:
        return KinematicBench()


def test_a_claim_of_the_suite_that_fails_shows_its_values() -> None:
    assert "@pytest_ar" in vars(nodes.robot.conformance), "its assertions are plain: AssertionError, and no more"
