"""A robot state that is not so never lets the robot move on: both simulated robots, each with what may be wrong."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

import msgspec
import pytest

from nodes.guard.node import Guard
from nodes.msgs import GuardState, JointCommand, RobotState, RobotStatus
from nodes.robot.driver import Driver
from nodes.stretch.limits import STOW
from runtime import Node, Publisher, Simulation, every
from runtime.clock import to_ns
from runtime.launch.graph import NodeSpec
from tests.support.standing import ZEROS

ROBOTS = ("nodes.sim.kinematic:KinematicRobot", "nodes.sim.robot:SimRobot")
False_ = Callable[[RobotState, int], RobotState]


class Policy(Node):
    """Drives ahead slowly with the arm as it is."""

    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        self.command.publish(JointCommand(position=STOW, base_v_mps=0.1))


class Lying:
    """A robot whose measurements are false from some moment on."""

    def __init__(self, robot: Any) -> None:
        self.robot = robot
        self.lie: False_ | None = None
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.robot, name)

    def read(self, now_ns: int) -> RobotState:
        self.reads += 1
        state: RobotState = self.robot.read(now_ns)
        return self.lie(state, self.reads) if self.lie is not None else state


def but(**shows: Any) -> False_:
    return lambda state, number: msgspec.structs.replace(state, **shows)  # type: ignore[type-var]  # a Struct


def jumping(state: RobotState, number: int) -> RobotState:
    lift = state.position[0] + (0.3 if number % 2 else 0.0)
    return but(position=(lift, *state.position[1:]))(state, number)


def leaping(state: RobotState, number: int) -> RobotState:
    return but(base_x_m=state.base_x_m + (1.0 if number % 2 else 0.0))(state, number)


class Repeating:
    """The first state that it sees, for ever."""

    def __init__(self) -> None:
        self.first: RobotState | None = None

    def __call__(self, state: RobotState, number: int) -> RobotState:
        self.first = self.first or state
        return self.first


ROWS: list[tuple[str, Callable[[], False_], float, str]] = [
    # what is false, how, held within so many seconds, stopped by
    ("jumping joint", lambda: jumping, 0.25, "unknown"),
    ("jumping base", lambda: leaping, 0.25, "unknown"),
    ("repeated", Repeating, 0.25, "driver"),
    ("from the future", lambda: lambda state, _: but(read_ns=state.read_ns + to_ns(1.0))(state, 0), 0.05, "driver"),
    ("effort is no number", lambda: but(effort=(nan, *ZEROS[1:])), 0.2, "unknown"),
    ("no effort", lambda: but(effort=()), 0.2, "unknown"),
    ("no velocity", lambda: but(velocity=()), 0.2, "unknown"),
    ("no posture", lambda: but(position=()), 0.25, "driver"),
    ("moves too fast", lambda: but(base_v_mps=0.6), 0.4, "motion"),
]


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize(("lie", "held_s", "by"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_false_state_brakes_the_robot_and_then_stops_it(
    name: str, lie: Callable[[], False_], held_s: float, by: str
) -> None:
    driver = Driver(robot=name)
    sim = Simulation(
        NodeSpec("driver", Driver, instance=driver), NodeSpec("guard", Guard, params={"arm": "auto"}),
        NodeSpec("policy", Policy),
    )  # fmt: skip
    said: list[GuardState] = sim.record_topic("guard/state", GuardState)
    sim.run(seconds=0.2)
    driver.robot = robot = Lying(driver.robot)
    sim.run(seconds=0.8)
    assert said[-1].mode == "moving"
    robot.lie, at_ns = lie(), sim.clock.now_ns()
    sim.run(seconds=1.5)
    held_ns = min(state.held_ns for state in said if state.held_ns >= at_ns)
    assert held_ns - at_ns <= to_ns(held_s)
    assert (said[-1].mode, said[-1].stopped_by) == ("stopped", by)
    assert abs(robot.robot.read(sim.clock.now_ns()).base_v_mps) < 0.01


@pytest.mark.parametrize("name", ROBOTS)
def test_a_robot_that_moves_while_it_is_stopped_has_its_runstop_pressed_within_1_5_s(name: str) -> None:
    driver = Driver(robot=name)
    sim = Simulation(NodeSpec("driver", Driver, instance=driver), NodeSpec("guard", Guard, params={"arm": "auto"}))
    statuses: list[RobotStatus] = sim.record_topic("robot/status", RobotStatus)
    sim.run(seconds=0.5)
    driver.robot = robot = Lying(driver.robot)
    robot.lie = but(velocity=(0.3, *ZEROS[1:]))
    sim.run(seconds=1.0)
    assert not statuses[-1].is_runstopped
    sim.run(seconds=0.5)
    assert statuses[-1].is_runstopped
