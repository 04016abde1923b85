"""The six-joint arm: it keeps the robot protocol, and clears cubes by the graph that a Stretch has."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from nodes.robot.conformance import Bench, RobotConformance
from nodes.robot.robot_from_launch import load_limits
from nodes.sim.file_robot import FileRobot
from nodes.sim.messages import Truth
from runtime import UserError
from runtime.launch.file import find, load
from runtime.msgs import GuardState, JointCommand, RobotState
from runtime.virtual.simulation import Simulation

ARM = "nodes.arm:arm.toml"


class ArmBench(Bench):
    robot: FileRobot

    def __init__(self) -> None:
        super().__init__(FileRobot(ARM))

    def press_runstop(self, is_on: bool) -> None:
        self.robot.runstop(is_on)


class TestArm(RobotConformance):
    limits = ARM

    def make(self) -> Bench:
        return ArmBench()


def test_the_arm_clears_cubes_and_holds_when_it_is_told_to() -> None:
    launch = load(find("arm"), ["person.cues=['lifted:red_block | 0.3 | Sam | Stop!', 'then | 2 | Sam | Go on']"])
    kept = [spec for name, spec in launch.graph.nodes.items() if name not in ("recorder", "room_camera")]
    simulation = Simulation(*kept, seed=1, seats=launch.seats, links=launch.links)
    states = simulation.record_topic("robot/state", RobotState)
    commands = simulation.record_topic("robot/command", JointCommand)
    guard = simulation.record_topic("guard/state", GuardState)
    try:
        simulation.run(60.0)
        truth = simulation.latest("sim/truth")
    finally:
        simulation.close()
    assert simulation.outcome is not None
    assert simulation.outcome[0], simulation.outcome[1]
    assert isinstance(truth, Truth)
    assert {thing.name for thing in truth.objects if thing.is_in_bin} == {"red_block", "green_block", "yellow_block"}
    # The stop held: while the guard was stopped, and once it had braked, no joint went anywhere.
    assert any(state.stopped_by == "Sam" for state in guard)
    still = longest_stand(states)
    assert still > 1.0, f"it stood for {still:.2f} s at most"
    # No command was beyond the file's limits.
    period_s = 0.02
    for joint, place in zip(load_limits(ARM).joints, range(7), strict=True):
        asked = [command.position[place] for command in commands]
        assert joint.lowest - 1e-9 <= min(asked) <= max(asked) <= joint.highest + 1e-9
        fastest = max(abs(after - before) for before, after in pairwise(asked)) / period_s
        assert fastest <= joint.speed * 1.01, f"{joint.name} at {fastest:.2f}"


def longest_stand(states: list[RobotState]) -> float:
    """For how long the arm stood with the first cube in its hand, s."""
    longest = begin = 0
    for state in states:
        if not state.is_grasping or math.hypot(*state.velocity) > 0.02:
            begin = state.read_ns
        longest = max(longest, state.read_ns - begin if begin else 0)
    return longest / 1e9


def test_an_unknown_scene_is_told() -> None:
    with pytest.raises(UserError, match="cubes"):
        FileRobot(ARM, scene="moon")
