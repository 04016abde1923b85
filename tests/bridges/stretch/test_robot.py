"""The Stretch bridge keeps the robot protocol over a stretch_body that behaves as documented, and does it no harm."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pytest

from bridges.stretch.doctor import examine
from bridges.stretch.onboard.body import BodyError, StretchHardware, wheel_clamped
from bridges.stretch.onboard.keeper import Keeper
from bridges.stretch.onboard.words import Goals, Hello, MotionOrder, Reading, Seal
from bridges.stretch.robot import CHAIN_WORDS, StretchRobot
from nodes.guard.motion_profile import limits_of
from nodes.guard.state_machine import GuardMachine
from nodes.msgs import JOINTS, JointCommand
from nodes.robot.conformance import PERIOD_S, Bench, RobotConformance, assert_stands
from nodes.robot.protocol import RobotError
from nodes.stretch.limits import STRETCH_3
from runtime.clock import SystemClock
from runtime.commands.doctor import examine_device
from runtime.errors import ParameterError, UserError
from runtime.launch.file import find, load
from tests.bridges.stretch.fake_stretch_body import DYNAMIXELS, PROFILES, STEPPERS, World, install
from tests.support.sentences import pattern, sentence


class InProcess:
    """The robot's side without its process: the same keeper and lanes, turned by whoever talks to them."""

    def __init__(self, bench: Bench | None = None, avoid_collisions: bool = True) -> None:
        self.bench, self.avoid_collisions = bench, avoid_collisions
        self.counter = 0
        self.body: StretchHardware | None = None
        self.reading = Reading()

    def now_ns(self) -> int:
        return self.bench.now_ns if self.bench is not None else SystemClock().now_ns()

    def open(self) -> Hello:
        body = StretchHardware(avoid_collisions=self.avoid_collisions)
        try:
            hello = body.open()
        except BodyError as problem:
            raise RobotError(str(problem)) from problem
        self.body, self.keeper = body, Keeper(body, lambda call: call(), self.now_ns())
        return hello

    def exchange(self, goals: Goals | None, lease: int, verb: str = "", verb_number: int = 0) -> Reading:
        self.counter += 1
        self.keeper.hear(MotionOrder(self.counter, lease, goals, verb, verb_number), self.now_ns())
        return self.turn()

    def turn(self) -> Reading:
        """What the process does all the time."""
        if self.body is not None:
            self.reading = self.keeper.told(self.body.read(self.now_ns()), 0)
            self.keeper.watch(self.now_ns())
            for lane in self.keeper.lanes:
                lane.turn(self.keeper.wanted, self.now_ns)
        return self.reading

    def ended(self) -> str:
        return ""

    def close(self) -> None:
        body = self.body
        if body is None:
            return
        if self.keeper.is_busy:
            body.runstop(True)
        if self.bench is not None:
            self.bench.pass_time(0.02)
        self.exchange(None, 0)
        self.body = None
        body.close()


class StretchBench(Bench):
    def __init__(self, world: World, avoid_collisions: bool = True) -> None:
        self.link = InProcess(self, avoid_collisions)
        super().__init__(StretchRobot(link=self.link))
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
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[World]:
    before = signal.getsignal(signal.SIGTERM), threading.excepthook
    world = install(monkeypatch)
    monkeypatch.setattr("bridges.stretch.robot.calibration_file", lambda: tmp_path / "polyrhythm.json")
    yield world
    signal.signal(signal.SIGTERM, before[0])
    threading.excepthook = before[1]
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


def test_percent_of_gripper_and_metres_of_opening_are_the_librarys_model(world: World) -> None:
    body = StretchHardware(grip_percent=-70.0)
    assert body.percent_of(0.09) == pytest.approx(70.0)
    assert body.percent_of(0.0) == -70.0, "to close is to grip, not to touch"
    assert StretchHardware(grip_percent=-300.0).percent_of(0.0) == -100.0


def test_each_wheel_is_clamped_by_itself() -> None:
    assert wheel_clamped(0.3, 1.0, 0.3, 0.3) == pytest.approx((0.225, 0.5))
    assert wheel_clamped(0.1, 0.2, 0.3, 0.3) == pytest.approx((0.1, 0.2))


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


def test_turning_to_the_right_goes_on_below_zero(bench: StretchBench) -> None:
    """The library tells a heading from 0 to 2 pi, which jumps at the first degree to the right."""
    position = bench.robot.read(bench.now_ns).position
    bench.run(0.5, JointCommand(position=position, base_w_radps=-0.5))
    headings = [bench.run(0.1, JointCommand(position=position, base_w_radps=-0.5)).base_heading_rad for _ in range(10)]
    assert headings[0] < 0.0
    assert all(-0.1 < after - before < 0.0 for before, after in pairwise(headings))


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
    with pytest.raises(RobotError, match=pattern("bridges.not_homed")):
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
    before = bench.robot.read(bench.now_ns)
    assert before.position[0] > 0.1
    status = bench.world.robots[0].status
    status["lift"]["pos"] = gap
    status["end_of_arm"]["stretch_gripper"]["pos_pct"] = gap
    assert bench.link.turn().position == pytest.approx(before.position)


@pytest.mark.parametrize("chain", ["lift", "right_wheel", "pimu", "end_of_arm", "head"])
def test_each_chain_has_its_own_stamp(bench: StretchBench, chain: str) -> None:
    """stretch_body swallows what kills a thread, and stamps a joint with the host's time whether its board answers."""
    bench.world.dead.add(chain)
    state = bench.drift(0.5)
    assert bench.now_ns - state.read_ns > 0.4e9  # a guard holds at 0.25 s
    bench.drift(0.7)
    assert bench.mode == "lost"
    assert CHAIN_WORDS[chain] in bench.robot.status(bench.now_ns).why
    bench.world.dead.clear()
    bench.drift(0.2)
    assert bench.mode == "ready"


def test_silence_of_the_driver_holds_and_its_lease_is_over(bench: StretchBench) -> None:
    bench.run(1.0, up(bench, by_m=0.6, v_mps=0.1))
    assert bench.link.reading.lease == 1
    for _ in range(100):  # the driver hangs, its process does not
        bench.pass_time(PERIOD_S)
        bench.link.turn()
        if bench.link.reading.lease == 0:
            break
    assert bench.world.now_s - 1001.1 < 0.2
    bench.pass_time(1.0)
    bench.link.turn()
    assert bench.world.robots[0].base.wheels == [0.0, 0.0]
    before = bench.run(0.1, up(bench, by_m=0.6, v_mps=0.1))
    assert_stands(before, bench.run(1.0, up(bench, by_m=0.6, v_mps=0.1)))
    bench.run(0.1)
    assert bench.run(1.0, up(bench)).position[0] > before.position[0] + 0.05
    assert bench.link.reading.lease > 1


@pytest.mark.parametrize("stands", [False, True])
def test_after_a_driver_that_hung_while_it_drove_nothing_goes_on_before_a_person_says_so(
    bench: StretchBench, stands: bool
) -> None:
    command = up(bench, by_m=0.0, v_mps=0.0 if stands else 0.1)
    guard = GuardMachine(STRETCH_3)
    guard.update_state(bench.run(1.0, command))
    assert guard.arm(bench.now_ns)
    for _ in range(25):  # the driver hangs, its process does not
        bench.pass_time(PERIOD_S)
        bench.link.turn()
    bench.robot.advance(bench.now_ns)
    before = bench.run(0.2, command)
    guard.update_status(bench.robot.status(bench.now_ns))
    assert guard.check_monitors(bench.now_ns) == ("" if stands else "driver")
    assert bench.mode == ("ready" if stands else "lost")
    assert_stands(bench.run(1.0, command), bench.run(1.0, command))
    bench.run(0.4)
    guard.update_status(bench.robot.status(bench.now_ns))
    assert (bench.mode, guard.mode) == ("ready", "armed" if stands else "stopped"), "a person lifts that"
    assert bench.run(1.0, up(bench)).position[0] > before.position[0] + 0.05


def test_an_order_that_comes_again_or_from_somebody_else_changes_nothing(bench: StretchBench) -> None:
    seal, other = (Seal(key, b"driver", b"body", Reading) for key in (b"k" * 32, b"x" * 32))
    ears: Seal[MotionOrder] = Seal(b"k" * 32, b"body", b"driver", MotionOrder)
    order = MotionOrder(7, 1, Goals((0.0,) * 8, 0.1, 0.0))
    assert ears.open(seal.close(order)) == order
    assert ears.open(other.close(order)) is None
    assert ears.open(ears.close(order)) is None, "its own words sent back"
    assert ears.open(b"") is None
    assert ears.refused == 3
    heard = bench.link.keeper
    heard.hear(MotionOrder(10_000, 1, None), bench.now_ns)
    heard.hear(order, bench.now_ns)
    assert heard.replayed == 1
    assert heard.wanted.goals is None


def test_an_answer_to_another_question_moves_nothing(bench: StretchBench) -> None:
    """Told by the real library above a bus that answered too late: all joints of the wrist at zero ticks."""
    wrist = bench.world.robots[0].end_of_arm.motors
    bench.run(0.5, up(bench))
    before = bench.robot.read(bench.now_ns)
    for name, where in (("wrist_yaw", 4.5), ("wrist_pitch", 1.57), ("wrist_roll", -3.1)):
        wrist[name].status.update(pos=where, timestamp_pc=bench.world.now_s + 0.001)
    assert bench.link.turn().position[2:5] == before.position[2:5]
    wrist["wrist_yaw"].pos, wrist["wrist_yaw"].goal = (
        3.0,
        None,
    )  # it was turned by hand: told again and again, it is believed
    after = bench.run(1.0)
    assert after.position[JOINTS.index("wrist_yaw")] == pytest.approx(3.0)


def test_a_stop_never_takes_the_torque_off_a_wrist(bench: StretchBench) -> None:
    wrist = bench.world.robots[0].end_of_arm.motors["wrist_pitch"]
    position = list(bench.robot.read(bench.now_ns).position)
    position[JOINTS.index("wrist_pitch")] -= 1.0
    bench.run(0.4, JointCommand(position=tuple(position)))
    assert abs(wrist.vel) > 0.5
    bench.run(1.0)
    assert wrist.vel == 0.0
    assert wrist.quick_stops == 0


def test_a_servo_whose_homing_failed_does_not_go_on_pushing(world: World) -> None:
    """The library leaves it with its homing current where its bus fails in the middle, as the twin showed."""
    bench = StretchBench(world)
    bench.robot.start(bench.now_ns)
    yaw = world.robots[0].end_of_arm.motors["wrist_yaw"]

    def fail() -> None:
        yaw.is_homing = yaw.is_pushing = True

    world.during_homing = fail
    bench.robot.home()
    assert not yaw.is_pushing
    bench.close()


def test_homing_and_stowing_leave_collision_management_as_it_was_set(world: World) -> None:
    for wanted in (True, False):
        bench = StretchBench(world, avoid_collisions=wanted)
        bench.robot.start(bench.now_ns)
        bench.robot.home()
        assert world.avoids_collisions is wanted
        bench.close()


def test_a_watchdog_that_fired_is_an_alert_and_not_for_ever(bench: StretchBench) -> None:
    bench.world.robots[0].head.motors["head_pan"].status["watchdog_errors"] = 3
    bench.drift(0.1)
    assert bench.robot.status(bench.now_ns).alerts == ("watchdog stopped head_pan",)
    bench.drift(6.0)
    assert bench.robot.status(bench.now_ns).alerts == ()


def test_a_stretch_without_a_dex_wrist_is_told_what_it_lacks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = sys.modules["stretch_body.robot"].Robot
    made = robot.__init__

    def older(self: object) -> None:
        made(self)
        del self.end_of_arm.motors["wrist_pitch"], self.end_of_arm.motors["wrist_roll"]  # type: ignore[attr-defined]

    monkeypatch.setattr(robot, "__init__", older)
    with pytest.raises(RobotError, match="has no wrist_pitch, wrist_roll: expected a dex wrist"):
        StretchRobot(link=InProcess()).start(0)


def test_wheels_that_push_a_moment_have_met_nothing(bench: StretchBench) -> None:
    effort = bench.world.wheel_effort
    effort[:] = [75.0, 75.0]
    assert bench.run(0.1).contact == ()
    assert bench.run(0.2).contact == ("base",)
    effort[:] = [5.0, 5.0]
    assert bench.run(0.1).contact == ()


def test_battery_and_alerts_are_told(bench: StretchBench) -> None:
    assert bench.robot.status(bench.now_ns).alerts == ()
    assert bench.robot.status(bench.now_ns).battery_v == 12.4
    bench.world.battery_v = 10.2
    bench.world.at_cliff = [False, True, False, False]
    bench.world.robots[0].head.motors["head_pan"].status["overload_error"] = True
    bench.drift(0.1)
    assert bench.robot.status(bench.now_ns).alerts == ("low voltage", "cliff", "overloaded head_pan")


def test_a_gripper_that_closes_on_something_grasps_it(bench: StretchBench) -> None:
    gripper = JOINTS.index("gripper")
    position = list(bench.robot.read(bench.now_ns).position)
    position[gripper] = 0.08
    bench.run(3.0, JointCommand(position=tuple(position)))
    assert not bench.robot.read(bench.now_ns).is_grasping
    bench.world.robots[0].end_of_arm.motors["stretch_gripper"].soft_motion_limits["current"] = [40.0, 178.0]  # a cup
    bench.world.between_fingers_percent = 40.0
    position[gripper] = 0.0
    state = bench.run(3.0, JointCommand(position=tuple(position)))
    assert state.is_grasping
    assert state.position[gripper] == pytest.approx(0.0514, abs=1e-3)
    assert bench.run(1.0).is_grasping  # stop lets nothing fall


def test_a_base_that_is_told_to_drive_slower_brakes_as_hard_as_the_guard_counts_on(bench: StretchBench) -> None:
    """The profile `default` speeds up by 0.12 m/s2; a guard lets the base brake by 0.30."""
    position = bench.robot.read(bench.now_ns).position
    base = bench.world.robots[0].base
    bench.run(0.4, JointCommand(position=position, base_v_mps=0.12))
    assert base.acceleration == pytest.approx(0.12)
    bench.run(1.2, JointCommand(position=position, base_v_mps=0.12))
    assert bench.run(0.5, JointCommand(position=position)).base_v_mps == pytest.approx(0.0, abs=0.01)
    assert base.acceleration == pytest.approx(0.30)


def test_a_grip_that_the_library_loosens_so_that_the_motor_stays_cool_is_not_tightened_again(
    bench: StretchBench,
) -> None:
    """stretch_body backs off by 2 % of the way for each half second in which a still gripper feels more than 20 %."""
    servo = bench.world.robots[0].end_of_arm.motors["stretch_gripper"]
    position = list(bench.robot.read(bench.now_ns).position)
    position[JOINTS.index("gripper")] = 0.08
    bench.run(3.0, JointCommand(position=tuple(position)))
    bench.world.between_fingers_percent = 55.0
    position[JOINTS.index("gripper")] = 0.0
    bench.run(3.0, JointCommand(position=tuple(position)))
    assert servo.pos < -40.0
    servo.pos, servo.goal = 20.0, None
    state = bench.run(3.0, JointCommand(position=tuple(position)))
    assert servo.pos == pytest.approx(20.0, abs=0.5)
    assert state.is_grasping


@pytest.mark.parametrize(
    ("chain", "motor", "joint"), [("end_of_arm", "stretch_gripper", "gripper"), ("head", "head_pan", "head_pan")]
)
def test_a_goal_whose_write_to_a_servo_was_lost_is_sent_anew(
    bench: StretchBench, monkeypatch: pytest.MonkeyPatch, chain: str, motor: str, joint: str
) -> None:
    servo = getattr(bench.world.robots[0], chain).motors[motor]
    move_to = servo.move_to
    lost: list[tuple[float, ...]] = []

    def drops_the_first(*where: float) -> None:
        lost.append(where) if not lost else move_to(*where)

    monkeypatch.setattr(servo, "move_to", drops_the_first)
    place = JOINTS.index(joint)
    position = list(bench.robot.read(bench.now_ns).position)
    position[place] += 0.04
    state = bench.run(2.0, JointCommand(position=tuple(position)))
    assert len(lost) == 1
    assert state.position[place] == pytest.approx(position[place], abs=0.006)


@pytest.mark.parametrize("launch", ["stretch", "stretch-gpu", "rehearsal"])
def test_no_joint_falls_behind_what_the_guard_lets_through(launch: str) -> None:
    """The guard stops a joint that does not follow: an arm of the profile `slow`, 0.05 m/s, under a guard of 0.09."""
    nodes = load(find(launch)).graph.nodes
    profile = PROFILES.index(nodes["driver"].params["robot_params"]["speed"])
    speeds = {
        name: joint[1][profile]
        for name, joint in {**STEPPERS, **DYNAMIXELS["end_of_arm"], **DYNAMIXELS["head"]}.items()
    }
    for joint in limits_of("stretch_3", nodes["guard"].params.get("speed_scale", 1.0)).joints:
        if joint.name in speeds:  # the gripper is meant to be behind
            assert speeds[joint.name] >= joint.speed, joint.name


def test_a_robot_that_another_program_holds_is_not_fought_over(bench: StretchBench) -> None:
    with pytest.raises(RobotError, match=pattern("bridges.another_program")):
        StretchRobot(link=InProcess()).start(0)
    assert bench.world.is_held


def test_without_stretch_body_the_page_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stretch_body.robot", None)
    with pytest.raises(RobotError, match=r"docs/stretch\.md"):
        StretchRobot(link=InProcess()).start(0)


def test_a_library_that_exits_at_import_is_a_sentence(world: World) -> None:
    def leave() -> None:
        sys.exit(1)

    sys.modules["stretch_body.robot"].Robot = leave  # type: ignore[attr-defined]
    with pytest.raises(RobotError, match="HELLO_FLEET_ID"):
        StretchRobot(link=InProcess()).start(0)


def test_a_robot_whose_limits_cannot_be_read_is_let_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = sys.modules["stretch_body.robot"].Robot
    made = robot.__init__

    def without_limits(self: object) -> None:
        made(self)
        del self.lift.params["motion"]  # type: ignore[attr-defined]

    monkeypatch.setattr(robot, "__init__", without_limits)
    with pytest.raises(RobotError, match=pattern("bridges.no_limits")):
        StretchRobot(link=InProcess()).start(0)


def test_the_doctor_looks_at_the_robot_and_lets_it_go(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "stretch-se3-0000").mkdir()
    monkeypatch.setenv("HELLO_FLEET_PATH", str(tmp_path))
    monkeypatch.setenv("HELLO_FLEET_ID", "stretch-se3-0000")
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.7.31")
    findings = {finding.subject: finding for finding in examine(InProcess())}
    assert (findings["robot"].level, findings["robot"].text) == ("ok", "ready")
    assert findings["battery"].text == "12.4 V"
    assert findings["lift"].text.startswith("0.000 to 1.100")
    world.is_homed = False
    findings = {finding.subject: finding for finding in examine(InProcess())}
    assert findings["robot"].level == "problem"
    assert "home it" in findings["robot"].text
    world.starts = False
    assert sentence("bridges.another_program") in examine(InProcess())[-1].text


def test_the_doctor_names_what_a_laptop_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HELLO_FLEET_PATH", raising=False)
    texts = [finding.text for finding in examine_device("stretch")]
    assert any("HELLO_FLEET_PATH" in text for text in texts)
    with pytest.raises(UserError, match="known: lerobot, stretch, stretch4"):
        examine_device("submarine")


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
        robot = StretchRobot(link=InProcess(avoid_collisions=wanted))
        robot.start(0)
        robot.close()
        assert world.avoids_collisions is expected
    assert sentence("bridges.no_self_collision") in caplog.text
