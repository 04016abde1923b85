"""The six-joint arm: it keeps the robot protocol, and clears cubes by the graph that a Stretch has."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import pytest

from nodes.msgs import GuardState, JointCommand, RobotState
from nodes.robot.conformance import Bench, RobotConformance
from nodes.robot.robot_from_launch import load_limits, outline_of
from nodes.sim.file_robot import FileRobot
from nodes.sim.messages import Truth
from runtime import Node, Publisher, QoS, Subscription, UserError, every
from runtime.launch.file import find, load
from runtime.virtual.simulation import Simulation
from tests.support.guard.driving import SIMULATED, driver_and_guard

ARM = "nodes.arm:arm.toml"
ROVER = str(Path(__file__).with_name("rover.toml"))


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


class TestRover(RobotConformance):
    """The arm on a base: what drives keeps the protocol too."""

    limits = ROVER

    def make(self) -> Bench:
        return Bench(FileRobot(ROVER))


class DrivesOn(Node):
    """Ahead, far faster than its wheels may."""

    seat = "policy"

    state = Subscription(RobotState, "robot/state", qos=QoS(lifespan_s=0.25))
    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        if (state := self.state.latest()) is not None:
            self.command.publish(JointCommand(position=state.position, base_v_mps=3.0, base_w_radps=0.0))


def test_the_guard_keeps_the_wheels_of_a_robot_from_a_file_to_their_speed_and_its_body_in_its_box(
    tmp_path: Path,
) -> None:
    (tmp_path / "drive.toml").write_text(
        f"""[run]
robot = "{ROVER}"

[nodes]
reflex = {{ use = "nodes.interrupts.reflex:Reflex", process = "robot" }}
policy = {{ use = "tests.nodes.sim.test_file_robot:DrivesOn" }}

{driver_and_guard(SIMULATED, 'arm = "auto", memory = "run", keep_in = [-1.5, 1.5, -1.5, 1.5, -0.1, 2.5]')}"""
    )
    simulation = Simulation(load(tmp_path / "drive.toml").graph)
    states, guard = (
        simulation.record_topic("robot/state", RobotState),
        simulation.record_topic("guard/state", GuardState),
    )
    try:
        simulation.run(5.0)
    finally:
        simulation.close()
    wheels = [abs(state.base_v_mps) + abs(state.base_w_radps) * 0.25 for state in states]
    assert 0.35 < max(wheels) < 0.41, "m/s"
    cartesian = load_limits(ROVER).cartesian
    assert cartesian is not None
    outline = outline_of(cartesian)
    furthest = max(
        state.base_x_m + math.cos(state.base_heading_rad) * x - math.sin(state.base_heading_rad) * y + radius
        for state in states
        for x, y, _, radius in outline(state.position)
    )
    assert 1.0 < furthest < 1.5, "it went as far as its box allows, and no ball of its body left it"
    assert any("keep_in" in state.reason for state in guard)
    assert abs(states[-1].base_v_mps) < 0.01


@pytest.mark.long
def test_the_arm_clears_cubes_and_holds_when_it_is_told_to() -> None:
    launch = load(find("arm"))  # its person says "Stop!" as soon as the red block moved, and "go on" later
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
        FileRobot(ARM, scenario="moon")
