"""Conformance tests of the `Robot` protocol: subclass `RobotConformance` and say how to make your robot.

    class TestMyRobot(RobotConformance):
        def make(self) -> Bench:
            return MyBench()

        limits = "my_robot.limits:LIMITS"  # as [run] robot of its launch file; left out for a Stretch's joints

A bench holds the robot and its time. Override the methods for what it can do, such as pressing a button; tests that
need the others are skipped, and pytest lists them. This module needs pytest.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.msgpack import encode

from nodes.msgs import JOINTS, JointCommand, RobotState
from nodes.robot.protocol import Robot, RobotError
from nodes.robot.robot_from_launch import joint_names, limits_problem, load_limits
from runtime.clock import NS_PER_S, to_ns, to_s

PERIOD_S = 0.02
FIRST = 0
"""The number of the joint that most tests move; on a Stretch it is the lift."""
REST = {"lift": 0.005, "arm": 0.005, "gripper": 0.005}
"""How far a joint that stands may be measured from where it was, m; for joints not listed, 0.02 rad."""


class Bench:
    """A robot under test, with a clock of its own that starts at one second; override what your robot needs."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.now_ns = NS_PER_S

    def pass_time(self, seconds: float) -> None:
        """Let this many seconds pass without a call to the robot."""
        self.now_ns += to_ns(seconds)

    def press_runstop(self, is_on: bool) -> None:
        """Press or release the robot's own button by hand."""
        pytest.skip("this bench presses no button")

    def unhome(self) -> None:
        """Make it a robot that was just switched on; called before `start`."""
        pytest.skip("this robot knows its zeros")

    def touch(self) -> str:
        """From now on, block the first joint on its way, or the base ahead; returns the joint's name, or "base"."""
        pytest.skip("this bench touches nothing")

    def settle_s(self) -> float:
        """How long the robot takes to come to rest after a stop, s."""
        return 2.0

    def close(self) -> None:
        """Stop the robot and release it."""
        self.robot.close()

    # what the tests do with it

    def run(self, seconds: float, command: JointCommand | None = None) -> RobotState:
        """Drive as a driver does, 50 times a second, with a command or with stop; returns the last state."""
        for _ in range(round(seconds / PERIOD_S)):
            if command is None:
                self.robot.stop()
            else:
                self.robot.command(command)
            self.pass_time(PERIOD_S)
            self.robot.advance(self.now_ns)
        return self.robot.read(self.now_ns)

    def drift(self, seconds: float) -> RobotState:
        """Let `seconds` pass for the robot without any command; returns the last state."""
        for _ in range(round(seconds / PERIOD_S)):
            self.pass_time(PERIOD_S)
            self.robot.advance(self.now_ns)
        return self.robot.read(self.now_ns)

    @property
    def mode(self) -> str:
        """The mode that the robot reports now."""
        return self.robot.status(self.now_ns).mode


class RobotConformance:
    """The tests; each starts a robot of its own. Override `make`, and name the `limits` of your robot.

    The numbers in the tests are those of a Stretch. Of another robot, the joints with the same numbers move as far as
    their range and speed permit.
    """

    limits: str = ""
    bench: Bench
    request: pytest.FixtureRequest

    def make(self) -> Bench:
        """A bench with a robot that is not started; get fixtures by `self.request.getfixturevalue`."""
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def _bench(self, request: pytest.FixtureRequest) -> Any:
        self.request = request
        self.bench = self.make()
        yield
        self.bench.close()

    @property
    def robot(self) -> Robot:
        """The robot under test."""
        return self.bench.robot

    def started(self) -> RobotState:
        """Start the robot as a driver does; returns its state."""
        self.robot.start(self.bench.now_ns)
        return self.bench.drift(0.1)

    @property
    def joints(self) -> tuple[str, ...]:
        """The names of the joints in order, as guard and driver know them."""
        return joint_names(load_limits(self.limits)) if self.limits else JOINTS

    def target(self, state: RobotState, **offset: float) -> tuple[float, ...]:
        """The present posture with some joints moved away from their nearer end, by half their range at most."""
        position = list(state.position)
        for name, by in offset.items():
            place = self.joints.index(name) if name in self.joints else JOINTS.index(name) % len(self.joints)
            limit = self.robot.limits.joints[place]
            is_high = state.position[place] > (limit.lowest + limit.highest) / 2
            by = min(by, (limit.highest - limit.lowest) / 2)
            position[place] = state.position[place] + (-by if is_high else by)
        return tuple(position)

    def seconds_to(self, state: RobotState, target: tuple[float, ...]) -> float:
        """How long the slowest joint needs to reach the target at its limit speed, s."""
        ways = zip(self.robot.limits.joints, state.position, target, strict=True)
        return max(abs(there - here) / limit.speed for limit, here, there in ways)

    def drives_at(self, most_mps: float) -> float:
        """A speed within the base's limits, at most `most_mps`; skips the test of a robot that does not drive."""
        if not self.robot.limits.base.wheel_speed_mps:
            pytest.skip("this robot does not drive")
        return min(most_mps, self.robot.limits.base.wheel_speed_mps / 2)

    def assert_stands(self, before: RobotState, after: RobotState) -> None:
        """Assert that neither the joints nor the base moved."""
        assert_stands(before, after, self.joints)

    # the tests

    def test_starting_never_moves(self) -> None:
        before = self.started()
        after = self.bench.run(1.0)
        self.assert_stands(before, after)
        assert not after.contact

    def test_its_class_says_whether_it_is_a_real_one(self) -> None:
        assert isinstance(type(self.robot).is_hardware, bool), "what is latched on a real one outlives every run"

    def test_limits_are_those_of_all_joints_in_order(self) -> None:
        self.started()
        limits = self.robot.limits
        assert joint_names(limits) == self.joints
        assert limits_problem(limits) == ""

    def test_a_state_is_whole_finite_and_not_of_the_future(self) -> None:
        state = self.started()
        for name in ("position", "velocity", "effort"):
            values = getattr(state, name)
            assert len(values) == len(self.joints), f"{name} has {len(values)} values"
            assert all(math.isfinite(value) for value in values), f"{name} is {values}"
        assert state.read_ns <= self.bench.now_ns
        assert to_s(self.bench.now_ns - state.read_ns) < 0.25, "older than a guard accepts"

    def test_a_joint_arrives_where_it_is_sent(self) -> None:
        state = self.started()
        target = self.target(state, lift=0.1, head_tilt=0.2, wrist_roll=0.2)
        seconds = max(4.0, 2.0 + 2.0 * self.seconds_to(state, target))
        state = self.bench.run(seconds, JointCommand(position=target))
        for limit, is_at, wanted in zip(self.robot.limits.joints, state.position, target, strict=True):
            wanted = min(max(wanted, limit.lowest), limit.highest)  # one that hung beyond its range is taken into it
            assert is_at == pytest.approx(wanted, abs=2 * REST.get(limit.name, 0.02)), limit.name
        assert max(abs(speed) for speed in state.velocity) < 0.05

    def test_the_gripper_opens_by_metres(self) -> None:
        if "gripper" not in self.joints:
            pytest.skip("this robot has no joint that is called gripper")
        place = self.joints.index("gripper")
        state = self.started()
        wide = self.robot.limits.joints[place].highest * 0.75
        position = (*state.position[:place], wide, *state.position[place + 1 :])
        state = self.bench.run(4.0, JointCommand(position=position))
        assert state.position[place] == pytest.approx(wide, abs=0.006)
        position = (*state.position[:place], 0.0, *state.position[place + 1 :])
        assert self.bench.run(4.0, JointCommand(position=position)).position[place] == pytest.approx(0.0, abs=0.006)

    def test_targets_beyond_a_joints_range_end_at_the_range(self) -> None:
        state = self.started()
        limit = self.robot.limits.joints[FIRST]
        command = JointCommand(position=(limit.highest + 1.0, *state.position[1:]))
        seconds = (limit.highest - state.position[FIRST]) / limit.speed + 4.0
        assert self.bench.run(seconds, command).position[FIRST] == pytest.approx(limit.highest, abs=0.01)

    def test_no_joint_is_faster_than_its_limit(self) -> None:
        state = self.started()
        command = JointCommand(position=self.target(state, lift=0.5, wrist_roll=1.5, head_pan=1.0))
        for _ in range(20):  # long enough for a robot that is read at 15 Hz
            before, state = state, self.bench.run(PERIOD_S * 15, command)
            seconds = max(PERIOD_S * 15, passed_s(before, state))
            for limit, was, now in zip(self.robot.limits.joints, before.position, state.position, strict=True):
                assert abs(now - was) / seconds < limit.speed * 1.25 + 0.02, limit.name

    def test_no_wheel_is_faster_than_its_limit(self) -> None:
        state = self.started()
        base = self.robot.limits.base
        for v_mps, w_radps in ((0.5, 1.0), (0.3, -2.0), (0.0, 4.0)):
            vy_mps = v_mps * base.is_omni
            command = JointCommand(position=state.position, base_v_mps=v_mps, base_w_radps=w_radps, base_vy_mps=vy_mps)
            for _ in range(100):
                now = self.bench.run(PERIOD_S, command)
                half_turn = now.base_w_radps * base.track_m / 2
                fastest = max(abs(now.base_v_mps - half_turn), abs(now.base_v_mps + half_turn))
                assert fastest + abs(now.base_vy_mps) < base.wheel_speed_mps * 1.1 + 0.01

    def test_driving_forward_goes_along_x_and_turning_left_is_positive(self) -> None:
        state = self.started()
        v_mps = self.drives_at(0.1)
        w_radps = min(0.3, self.robot.limits.base.wheel_speed_mps / self.robot.limits.base.track_m)
        moved = self.bench.run(2.0, JointCommand(position=state.position, base_v_mps=v_mps))
        most_s = max(2.0, passed_s(state, moved)) * 1.25
        assert v_mps < moved.base_x_m - state.base_x_m < most_s * v_mps
        assert abs(moved.base_y_m - state.base_y_m) < 0.02
        before = self.bench.run(self.bench.settle_s())
        turned = self.bench.run(2.0, JointCommand(position=state.position, base_w_radps=w_radps))
        most_s = max(2.0, passed_s(before, turned)) * 1.25
        assert w_radps / 1.5 < turned.base_heading_rad - state.base_heading_rad < most_s * w_radps

    def test_driving_to_the_left_is_positive_keeps_the_heading_and_ends_with_stop(self) -> None:
        state = self.started()
        if not self.robot.limits.base.is_omni:
            pytest.skip("this robot does not drive sideways")
        vy_mps = self.drives_at(0.1)
        moved = self.bench.run(2.0, JointCommand(position=state.position, base_vy_mps=vy_mps))
        assert moved.base_vy_mps > vy_mps / 1.5
        assert vy_mps < moved.base_y_m - state.base_y_m < max(2.0, passed_s(state, moved)) * 1.25 * vy_mps
        assert abs(moved.base_x_m - state.base_x_m) < 0.02
        assert moved.base_heading_rad == pytest.approx(state.base_heading_rad, abs=0.05)
        before = self.bench.run(self.bench.settle_s())
        assert abs(before.base_vy_mps) < 0.01
        self.assert_stands(before, self.bench.run(0.5))
        with pytest.raises(ValueError, match="finite"):
            self.robot.command(JointCommand(position=state.position, base_vy_mps=math.nan))

    def test_stop_brings_everything_to_rest(self) -> None:
        state = self.started()
        command = JointCommand(position=self.target(state, lift=0.5, head_pan=1.0), base_v_mps=0.15)
        way = abs(command.position[FIRST] - state.position[FIRST])
        self.bench.run(min(1.0, way / self.robot.limits.joints[FIRST].speed / 2), command)
        self.bench.run(self.bench.settle_s())
        before = self.robot.read(self.bench.now_ns)
        self.assert_stands(before, self.bench.run(1.0))
        left = abs(before.position[FIRST] - command.position[FIRST])
        assert left > min(0.05, way / 5), "stop went on to the target"

    def test_without_commands_the_base_stops_by_itself(self) -> None:
        state = self.started()
        v_mps = self.drives_at(0.15)
        moving = self.bench.run(1.5, JointCommand(position=state.position, base_v_mps=v_mps))
        assert moving.base_v_mps > v_mps / 1.5
        before = self.bench.drift(3.0)
        assert abs(before.base_v_mps) < 0.01
        self.assert_stands(before, self.bench.drift(0.5))

    def test_without_commands_no_joint_travels_far(self) -> None:
        state = self.started()
        limit = self.robot.limits.joints[FIRST]
        position = list(state.position)
        before = self.bench.run(0.0)
        for _ in range(50):  # a ramp at the joint's speed, as a guard sends it
            step = limit.speed * PERIOD_S
            position[FIRST] += step if state.position[FIRST] < (limit.lowest + limit.highest) / 2 else -step
            before = self.bench.run(PERIOD_S, JointCommand(position=tuple(position)))
        rest = self.bench.drift(3.0)
        assert abs(rest.position[FIRST] - before.position[FIRST]) < limit.speed
        self.assert_stands(rest, self.bench.drift(0.5))

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_a_command_that_is_not_finite_is_refused(self, bad: float) -> None:
        state = self.started()
        with pytest.raises(ValueError, match="finite"):
            self.robot.command(JointCommand(position=(bad, *state.position[1:])))
        with pytest.raises(ValueError, match="finite"):
            self.robot.command(JointCommand(position=state.position, base_v_mps=bad))
        with pytest.raises(ValueError, match="finite"):
            self.robot.command(JointCommand(position=state.position, base_vy_mps=bad))
        self.assert_stands(state, self.bench.run(0.5))

    def test_a_command_of_the_wrong_length_is_refused(self) -> None:
        state = self.started()
        with pytest.raises(ValueError, match=f"{len(self.joints)} finite positions"):
            self.robot.command(JointCommand(position=state.position[:-1]))

    def test_a_state_does_not_change_after_it_was_read(self) -> None:
        state = self.started()
        kept = encode(state)
        self.bench.run(1.0, JointCommand(position=self.target(state, lift=0.1), base_v_mps=0.1))
        assert encode(state) == kept
        assert self.robot.read(self.bench.now_ns) != state

    def test_a_pressed_runstop_stops_and_releasing_it_moves_nothing(self) -> None:
        state = self.started()
        command = JointCommand(position=self.target(state, lift=0.4), base_v_mps=0.15)
        self.bench.run(1.0, command)
        self.robot.runstop(True)
        self.bench.run(self.bench.settle_s(), command)
        assert self.bench.mode == "runstopped"
        assert self.robot.status(self.bench.now_ns).is_runstopped
        assert self.robot.status(self.bench.now_ns).why
        before = self.robot.read(self.bench.now_ns)
        self.assert_stands(before, self.bench.run(1.0, command))
        self.robot.runstop(False)
        self.assert_stands(before, self.bench.run(1.0))
        assert self.bench.mode == "ready"

    def test_a_runstop_pressed_by_hand_counts_as_well_even_before_the_start(self) -> None:
        self.bench.press_runstop(True)
        self.started()
        assert self.bench.mode == "runstopped"
        state = self.bench.run(self.bench.settle_s())  # a joint whose torque the button takes sinks to its stop first
        command = JointCommand(position=self.target(state, lift=0.2), base_v_mps=0.1)
        self.assert_stands(state, self.bench.run(1.0, command))
        with pytest.raises(RobotError, match="runstop"):
            self.robot.home()
        self.bench.press_runstop(False)
        self.assert_stands(state, self.bench.run(1.0))
        assert self.bench.mode == "ready"

    def test_an_unhomed_robot_says_so_moves_nothing_and_can_be_homed(self) -> None:
        self.bench.unhome()
        state = self.started()
        status = self.robot.status(self.bench.now_ns)
        assert (status.mode, status.is_homed) == ("unhomed", False)
        assert status.why
        command = JointCommand(position=self.target(state, lift=0.2, head_tilt=0.2), base_v_mps=0.1)
        self.assert_stands(state, self.bench.run(1.0, command))
        with pytest.raises(RobotError, match="home"):
            self.robot.stow()
        self.robot.home()
        self.bench.drift(60.0)
        status = self.robot.status(self.bench.now_ns)
        assert (status.mode, status.is_homed) == ("ready", True)

    def test_a_stowed_robot_is_folded_and_follows_again(self) -> None:
        state = self.started()
        self.bench.run(2.0, JointCommand(position=self.target(state, arm=0.1)))
        self.bench.run(self.bench.settle_s())
        self.robot.stow()
        self.bench.drift(30.0)
        assert self.bench.mode == "ready"
        state = self.robot.read(self.bench.now_ns)
        if "arm" in self.joints:
            assert state.position[self.joints.index("arm")] == pytest.approx(0.0, abs=0.02)
        target = self.target(state, lift=0.1)
        seconds = max(3.0, 1.0 + 2.0 * self.seconds_to(state, target))
        moved = self.bench.run(seconds, JointCommand(position=target))
        assert moved.position[FIRST] == pytest.approx(target[FIRST], abs=0.02)

    @pytest.mark.parametrize("verb", ["home", "stow"])
    def test_a_runstop_ends_homing_and_stowing_within_100_ms(self, verb: str) -> None:
        state = self.started()
        self.bench.run(2.0, JointCommand(position=self.target(state, lift=0.2, arm=0.2)))
        self.bench.run(self.bench.settle_s())
        self.robot.home() if verb == "home" else self.robot.stow()
        self.bench.drift(0.1)
        if self.bench.mode not in ("homing", "stowing"):
            pytest.skip(f"{verb} is over when it returns")
        self.robot.runstop(True)
        before = self.bench.drift(0.1)
        assert self.bench.mode == "runstopped"
        self.assert_stands(before, self.bench.drift(1.0))
        self.robot.runstop(False)
        self.assert_stands(before, self.bench.run(1.0))
        assert self.bench.mode in ("ready", "unhomed")

    def test_contact_is_felt(self) -> None:
        state = self.started()
        assert state.contact == ()
        part = self.bench.touch()
        position = state.position if part == "base" else self.target(state, **{part: 0.3})
        command = JointCommand(position=position, base_v_mps=0.15 if part == "base" else 0.0)
        felt = (self.bench.run(PERIOD_S, command).contact for _ in range(150))
        assert any(part in contact for contact in felt)

    @pytest.mark.parametrize("when", ["before the start", "standing", "moving", "runstopped"])
    def test_close_leaves_it_stopped_whenever_it_comes(self, when: str) -> None:
        if when != "before the start":
            state = self.started()
            if when != "standing":
                command = JointCommand(position=self.target(state, lift=0.4), base_v_mps=0.15)
                self.bench.run(1.0, command)
            if when == "runstopped":
                self.robot.runstop(True)
        self.robot.close()
        self.robot.close()

    def test_it_can_be_told_to_stop_at_any_time(self) -> None:
        self.started()
        for _ in range(3):
            self.robot.stop()
        self.robot.close()
        self.robot.stop()


def passed_s(before: RobotState, after: RobotState) -> float:
    """Seconds between two states, by the robot's own stamps; on a busy machine, more than was asked for."""
    return to_s(after.read_ns - before.read_ns)


def assert_stands(before: RobotState, after: RobotState, joints: tuple[str, ...] = JOINTS) -> None:
    """Assert that neither the joints nor the base moved."""
    for name, was, now in zip(joints, before.position, after.position, strict=True):
        assert now == pytest.approx(was, abs=REST.get(name, 0.02)), f"{name} moved"
    was_at = (before.base_x_m, before.base_y_m, before.base_heading_rad)
    assert (after.base_x_m, after.base_y_m, after.base_heading_rad) == pytest.approx(was_at, abs=0.01), "it drove"
