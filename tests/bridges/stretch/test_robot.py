"""The Stretch bridge keeps the robot protocol over a stretch_body that behaves as documented, and does it no harm."""

from __future__ import annotations

import copy
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from bridges.stretch.robot import StretchRobot
from bridges.stretch.units import StatusReading, reading_of, to_opening_m, to_percent, wheel_clamped
from nodes.robot.conformance import Bench, RobotConformance, assert_stands
from nodes.robot.protocol import BaseLimit, RobotError
from runtime.commands.doctor import examine_robot
from runtime.errors import ParameterError, UserError
from runtime.msgs import JOINTS, JointCommand
from tests.bridges.stretch.fake_stretch_body import World, install


class StretchBench(Bench):
    def __init__(self, world: World) -> None:
        super().__init__(StretchRobot())
        self.world = world

    def pass_time(self, seconds: float) -> None:
        super().pass_time(seconds)
        self.world.advance(seconds)

    def press_runstop(self, is_on: bool) -> None:
        self.world.is_runstopped = is_on

    def unhome(self) -> None:
        self.world.is_homed = False

    def touch(self) -> Literal["lift", "base"]:
        self.world.obstacle_m["lift"] = 0.5
        return "lift"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    before = signal.getsignal(signal.SIGTERM), threading.excepthook
    world = install(monkeypatch)
    yield world
    assert (signal.getsignal(signal.SIGTERM), threading.excepthook) == before
    assert world.complaints == []
    assert not world.is_held


@pytest.fixture
def bench(world: World) -> Iterator[StretchBench]:
    bench = StretchBench(world)
    bench.robot.start(bench.now_ns)
    bench.drift(0.1)
    yield bench
    bench.close()


class TestStretchRobot(RobotConformance):
    def make(self) -> Bench:
        return StretchBench(self.request.getfixturevalue("world"))


def up(bench: StretchBench, by_m: float = 0.3, v_mps: float = 0.0) -> JointCommand:
    position = list(bench.robot.read(bench.now_ns).position)
    position[0] += by_m
    return JointCommand(position=tuple(position), base_v_mps=v_mps)


def test_percent_of_gripper_and_metres_of_opening_are_the_librarys_model() -> None:
    assert to_percent(0.09) == pytest.approx(70.0)
    assert to_opening_m(35.0) == pytest.approx(0.045)
    assert to_opening_m(-100.0) == 0.0


def test_each_wheel_is_clamped_by_itself() -> None:
    base = BaseLimit(wheel_speed_mps=0.3, acceleration_mps2=0.3, track_m=0.3)
    assert wheel_clamped(0.3, 1.0, base) == pytest.approx((0.225, 0.5))
    assert wheel_clamped(0.1, 0.2, base) == pytest.approx((0.1, 0.2))


def test_limits_are_read_from_the_robot_at_hand(world: World) -> None:
    bench = StretchBench(world)
    with pytest.raises(RobotError, match="once it is started"):
        _ = bench.robot.limits
    bench.robot.start(bench.now_ns)
    world.robots[0].lift.soft_motion_limits["current"] = [0.2, 0.9]
    bench.close()
    bench = StretchBench(world)
    bench.robot.start(bench.now_ns)
    assert (bench.robot.limits.joints[0].lowest, bench.robot.limits.joints[0].highest) == (0.0, 1.10)
    assert bench.robot.limits.base.wheel_speed_mps == 0.12  # of the default profile
    bench.close()


def test_commands_are_pushed_in_batches_at_25_hz(bench: StretchBench) -> None:
    pushes = bench.world.pushes
    bench.run(2.0, up(bench, v_mps=0.1))
    assert 35 <= bench.world.pushes - pushes <= 51


def test_a_process_that_hangs_or_dies_leaves_a_robot_that_comes_to_rest(bench: StretchBench) -> None:
    """Nobody calls the bridge any more: no advance, no stop, no close."""
    bench.run(1.5, up(bench, by_m=0.6, v_mps=0.1))
    body = bench.world.robots[0]
    lift, x = body.lift.pos, body.base.pose[0]
    bench.world.advance(10.0)
    assert abs(body.lift.vel) < 1e-6
    assert body.base.wheels == [0.0, 0.0]
    assert body.lift.pos - lift < 0.08  # of the 0.6 m that were asked for
    assert body.base.pose[0] - x < 0.16


def test_lift_and_arm_stop_by_our_watchdog(bench: StretchBench, caplog: pytest.LogCaptureFixture) -> None:
    bench.run(1.0, up(bench))
    assert_stands(bench.drift(3.0), bench.drift(0.5))
    assert "no command for 0.5 s" in caplog.text


def test_a_lift_that_met_resistance_does_not_push_on_but_goes_back(bench: StretchBench) -> None:
    lift = bench.world.robots[0].lift
    bench.world.obstacle_m["lift"] = lift.pos + 0.03
    command = up(bench, by_m=0.2)
    bench.run(3.0, command)
    assert lift.guarded == 1
    assert "lift" in bench.robot.read(bench.now_ns).contact
    bench.run(2.0, up(bench, by_m=-0.1))
    assert bench.robot.read(bench.now_ns).contact == ()
    assert lift.guarded == 1


def test_commands_held_through_a_runstop_are_not_followed_after_it(bench: StretchBench) -> None:
    command = up(bench)
    bench.run(1.0, command)
    bench.press_runstop(True)
    bench.run(1.0, command)
    bench.press_runstop(False)
    before = bench.run(0.2, command)
    assert_stands(before, bench.run(2.0, command))
    assert "arm again" in bench.robot.status(bench.now_ns).why
    bench.run(0.1)  # a pause
    assert bench.run(1.0, command).position[0] > before.position[0] + 0.05


def test_a_runstop_ends_homing_which_says_so(world: World) -> None:
    world.is_homed = False
    bench = StretchBench(world)
    bench.robot.start(bench.now_ns)
    world.during_homing = lambda: bench.robot.runstop(True)
    with pytest.raises(RobotError, match="not homed after homing"):
        bench.robot.home()
    bench.drift(0.1)
    assert bench.mode == "runstopped"
    bench.close()


def test_while_homing_no_command_and_no_stop_reaches_the_motors(world: World) -> None:
    world.is_homed = False
    bench = StretchBench(world)
    bench.robot.start(bench.now_ns)
    bench.drift(0.1)
    modes = set()

    def a_driver_goes_on() -> None:
        bench.robot.advance(bench.now_ns)
        bench.robot.stop()
        bench.robot.command(up(bench))
        modes.add(bench.mode)

    world.during_homing = a_driver_goes_on
    bench.robot.home()
    assert modes == {"homing"}
    bench.close()  # the fixture looks at the complaints


def test_closing_while_it_homes_presses_the_runstop(world: World) -> None:
    world.is_homed = False
    bench = StretchBench(world)
    bench.robot.start(bench.now_ns)
    world.during_homing = bench.robot.close
    with pytest.raises(RobotError, match="not started"):
        bench.robot.home()
    assert world.is_runstopped


def test_a_status_that_stands_still_is_no_status(bench: StretchBench) -> None:
    bench.world.is_asleep = True
    state = bench.drift(0.5)
    assert bench.now_ns - state.read_ns > 0.4e9  # a guard holds at 0.25 s
    bench.drift(1.0)
    assert bench.mode == "lost"
    before = bench.world.robots[0].lift.pos
    bench.run(1.0, up(bench))
    assert bench.world.robots[0].lift.pos == before
    bench.world.is_asleep = False
    bench.drift(0.1)
    assert bench.mode == "ready"


@pytest.mark.parametrize("gap", [None, float("nan")])
def test_a_joint_that_does_not_say_where_it_is_is_where_it_was(bench: StretchBench, gap: float | None) -> None:
    """Thought to be at zero, the lift would be driven down there."""
    body = bench.world.robots[0]
    before = bench.robot.read(bench.now_ns)
    assert before.position[0] > 0.1
    status = copy.deepcopy(body.get_status())
    status["lift"]["pos"] = gap
    status["end_of_arm"]["stretch_gripper"]["pos_pct"] = gap
    read = reading_of(status, reading_of(body.get_status(), StatusReading()))
    assert read.position == pytest.approx(before.position)


def test_battery_and_alerts_are_told(bench: StretchBench) -> None:
    assert bench.robot.status(bench.now_ns).alerts == ()
    assert bench.robot.status(bench.now_ns).battery_v == 12.4
    bench.world.battery_v = 10.2
    bench.world.at_cliff = [False, True, False, False]
    bench.drift(0.1)
    body = bench.world.robots[0]
    body.head.motors["head_pan"].status["overload_error"] = True
    assert bench.robot.status(bench.now_ns).alerts == ("low voltage", "cliff", "overloaded head_pan")


def test_a_gripper_that_closes_on_something_grasps_it(bench: StretchBench) -> None:
    gripper = JOINTS.index("gripper")
    position = list(bench.robot.read(bench.now_ns).position)
    position[gripper] = 0.08
    bench.run(3.0, JointCommand(position=tuple(position)))
    assert not bench.robot.read(bench.now_ns).is_grasping
    bench.world.robots[0].end_of_arm.motors["stretch_gripper"].soft_motion_limits["current"] = [40.0, 178.0]  # a cup
    position[gripper] = 0.0
    state = bench.run(3.0, JointCommand(position=tuple(position)))
    assert state.is_grasping
    assert state.position[gripper] == pytest.approx(to_opening_m(40.0), abs=1e-3)
    assert bench.run(1.0).is_grasping  # stop lets nothing fall


def test_a_robot_that_another_program_holds_is_not_fought_over(bench: StretchBench) -> None:
    with pytest.raises(RobotError, match="another program holds it"):
        StretchRobot().start(0)
    assert bench.world.is_held


def test_without_stretch_body_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stretch_body.robot", None)
    with pytest.raises(RobotError, match=r"pip install 'polyrhythm\[stretch\]'"):
        StretchRobot().start(0)


def test_a_library_that_exits_at_import_is_a_sentence(world: World) -> None:
    def leave() -> None:
        sys.exit(1)

    sys.modules["stretch_body.robot"].Robot = leave  # type: ignore[attr-defined]
    with pytest.raises(RobotError, match="HELLO_FLEET_ID"):
        StretchRobot().start(0)


def test_a_robot_whose_limits_cannot_be_read_is_let_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = sys.modules["stretch_body.robot"].Robot
    made = robot.__init__

    def without_limits(self: object) -> None:
        made(self)
        del self.lift.params["motion"]  # type: ignore[attr-defined]

    monkeypatch.setattr(robot, "__init__", without_limits)
    with pytest.raises(RobotError, match="limits cannot be read"):
        StretchRobot().start(0)


def test_the_doctor_looks_at_the_robot_and_lets_it_go(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "stretch-se3-0000").mkdir()
    monkeypatch.setenv("HELLO_FLEET_PATH", str(tmp_path))
    monkeypatch.setenv("HELLO_FLEET_ID", "stretch-se3-0000")
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.7.31")
    findings = {finding.subject: finding for finding in examine_robot("stretch")}
    assert (findings["robot"].level, findings["robot"].text) == ("ok", "ready")
    assert findings["battery"].text == "12.4 V"
    assert findings["lift"].text.startswith("0.000 to 1.100")
    world.is_homed = False
    findings = {finding.subject: finding for finding in examine_robot("stretch")}
    assert findings["robot"].level == "problem"
    assert "home it" in findings["robot"].text
    world.starts = False
    assert "another program holds it" in examine_robot("stretch")[-1].text


def test_the_doctor_names_what_a_laptop_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HELLO_FLEET_PATH", raising=False)
    texts = [finding.text for finding in examine_robot("stretch")]
    assert any("HELLO_FLEET_PATH" in text for text in texts)
    with pytest.raises(UserError, match="there is no module"):
        examine_robot("submarine")


def test_an_unknown_speed_is_refused() -> None:
    with pytest.raises(ParameterError, match="slow, default, fast, max"):
        StretchRobot(speed="ludicrous")


@pytest.mark.parametrize(("danger", "name"), [("at_cliff", "cliff"), ("is_tilted", "tilt")])
def test_an_edge_or_a_slope_counts_as_contact_for_the_guard(bench: StretchBench, danger: str, name: str) -> None:
    assert bench.robot.read(bench.now_ns).contact == ()
    setattr(bench.world, danger, [True, False, False, False] if danger == "at_cliff" else True)
    bench.drift(0.1)
    assert bench.robot.read(bench.now_ns).contact == (name,)


def test_the_robots_own_collision_management_is_switched_on_where_it_can_be(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    for wanted, has, expected in ((True, True, True), (False, True, False), (True, False, False)):
        world.avoids_collisions, world.has_collision_management = False, has
        robot = StretchRobot(avoid_collisions=wanted)
        robot.start(0)
        robot.close()
        assert world.avoids_collisions is expected
    assert "does not avoid collisions with itself" in caplog.text
