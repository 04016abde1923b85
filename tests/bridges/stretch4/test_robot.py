"""The Stretch 4 keeps the robot protocol, above a server that behaves as the maker's does, and its lease stands."""

from __future__ import annotations

import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pytest

from bridges.stretch4.link import NAMES, ServerLink, Unreadable, endpoints, read_pickle
from bridges.stretch4.robot import HOLD_S, HOME_PRIORITY, RUNSTOP_PRIORITY, Stretch4Robot
from bridges.stretch4.status import JOINTS, opening_m, read_status, servo_of
from nodes.guard.state_machine import GuardMachine
from nodes.msgs import JointCommand, RobotStatus
from nodes.robot.conformance import PERIOD_S, Bench, RobotConformance, assert_stands
from nodes.robot.driver import Driver
from nodes.robot.protocol import RobotError
from nodes.robot.robot_from_launch import limits_problem
from nodes.stretch.limits import STRETCH_4
from runtime.clock import SystemClock, to_ns
from runtime.errors import ParameterError
from tests.bridges.stretch.patient_bench import PatientBench
from tests.bridges.stretch4.fake_stretch4 import STEP_S, DirectLink, SocketServer, World
from tests.support.sentences import pattern, sentence

CLOCK = SystemClock()


class FourBench(Bench):
    """In virtual time."""

    robot: Stretch4Robot

    def __init__(self, speed: str = "default") -> None:
        self.world = World()
        self.link = DirectLink(self.world)
        super().__init__(Stretch4Robot(speed, link=self.link))

    def pass_time(self, seconds: float) -> None:
        super().pass_time(seconds)
        for _ in range(round(seconds / STEP_S)):
            self.world.step()
            self.link.keep()

    def press_runstop(self, is_on: bool) -> None:
        self.world.press(is_on)

    def unhome(self) -> None:
        for joint in self.world.joints.values():
            joint.is_homed = False

    def touch(self) -> Literal["lift", "base"]:
        self.world.joints["lift"].stands_at = self.world.joints["lift"].at + 0.05
        return "lift"

    @property
    def status(self) -> RobotStatus:
        return self.robot.status(self.now_ns)

    def other(self, client: str = "client_other", priority: int = 0) -> None:
        """Somebody else commands once."""
        self.link.hear({"client_id": client, "cmd_dict": {}, "priority": priority, "seq": 1})


class TestStretch4Robot(RobotConformance):
    limits = "nodes.stretch.limits:STRETCH_4"

    def make(self) -> Bench:
        return FourBench()


@pytest.mark.long
class TestSlowStretch4Robot(TestStretch4Robot):
    def make(self) -> Bench:
        return FourBench("slow")


@pytest.fixture
def bench() -> Iterator[FourBench]:
    bench = FourBench()
    bench.robot.start(bench.now_ns)
    bench.drift(0.1)
    yield bench
    bench.close()


def driving(bench: FourBench, **speeds: float) -> JointCommand:
    return JointCommand(position=bench.robot.read(bench.now_ns).position, **speeds)


# --- what it can do


def test_its_limits_are_a_guards() -> None:
    assert limits_problem(STRETCH_4) == ""
    assert STRETCH_4.base.is_omni
    with pytest.raises(ParameterError, match="known: slow, default"):
        Stretch4Robot("fast")


def test_a_launch_file_that_calls_it_as_before_is_told_its_name() -> None:
    [problem] = Driver("bridges.stretch.four:Stretch4Robot", limits="nodes.stretch.limits:STRETCH_4").problems()
    assert "module 'bridges.stretch.four' is now 'bridges.stretch4.robot'" in problem


def test_the_range_that_the_robot_itself_tells_counts() -> None:
    bench = FourBench()
    bench.world.joints["lift"].high = 0.9
    bench.robot.start(bench.now_ns)
    assert bench.robot.limits.joints[0].highest == 0.9
    bench.close()


@pytest.mark.parametrize("metres", [0.001, 0.02, 0.09, 0.15])
def test_metres_of_opening_come_back_from_the_servo(metres: float) -> None:
    assert opening_m(servo_of(metres, 5.236), 5.236) == pytest.approx(metres)
    assert servo_of(0.0, 5.236) < -0.5, "to close is to grip"
    assert opening_m(-1.0, 5.236) == 0.0


def test_every_message_holds_every_joint_and_the_base_no_further_ahead_than_braking_and_0_15_s(
    bench: FourBench,
) -> None:
    state = bench.robot.read(bench.now_ns)
    far = tuple(joint.highest for joint in bench.robot.limits.joints)
    bench.world.dispatched = []
    bench.robot.command(JointCommand(position=far, base_v_mps=0.1))
    commands = cast(list[Any], bench.world.dispatched)
    sent = {command[3][0] if "end_of_arm" in command[0] else command[0]: command for command in commands}
    assert set(sent) == {"lift", "arm", "wrist_yaw", "wrist_pitch", "wrist_roll", "stretch_gripper", "omnibase"}
    lift = bench.robot.limits.joints[0]
    assert sent["lift"][3][0] == pytest.approx(
        state.position[0] + lift.speed**2 / 2 / lift.acceleration + 0.15 * lift.speed
    )


def test_a_diagonal_that_is_too_fast_for_the_wheels_keeps_its_direction(bench: FourBench) -> None:
    bench.run(3.0, driving(bench, base_v_mps=0.4, base_vy_mps=0.8))
    assert bench.world.base == pytest.approx([0.1, 0.2, 0.0])


def test_odometry_begins_where_its_driver_began(bench: FourBench) -> None:
    state = bench.robot.read(bench.now_ns)
    assert (state.base_x_m, state.base_y_m, state.base_heading_rad) == (0.0, 0.0, 0.0)
    state = bench.run(2.0, driving(bench, base_vy_mps=0.1))
    assert state.base_y_m > 0.1
    assert abs(state.base_x_m) < 1e-6


def test_a_hold_does_not_let_a_joint_sink_that_hangs_a_little_below_where_it_was_sent(bench: FourBench) -> None:
    command, lift = driving(bench), bench.world.joints["lift"]
    for _ in range(20):
        bench.run(0.1, command)
        lift.sag_m = 0.001
        bench.run(0.1)
    assert lift.goal == pytest.approx(command.position[0])


def test_a_stopped_joint_comes_to_rest_where_braking_takes_it_and_the_gripper_keeps_its_grip(bench: FourBench) -> None:
    state = bench.robot.read(bench.now_ns)
    bench.world.joints["stretch_gripper"].stands_at = 0.5
    up = JointCommand(position=(state.position[0] + 0.5, *state.position[1:5], 0.0))
    assert not bench.run(0.1, up).is_grasping
    assert bench.run(1.5, up).is_grasping
    lift, gripper = bench.world.joints["lift"], bench.world.joints["stretch_gripper"]
    at, speed, grip = lift.at, lift.speed, gripper.goal
    bench.robot.stop()
    assert lift.goal == pytest.approx(at + speed**2 / 0.6, abs=0.01)
    assert lift.goal > at + 0.05
    assert gripper.goal == grip < 0.0
    assert bench.run(1.0).is_grasping, "it keeps what it has"
    gripper.stands_at = None
    bench.run(1.0)
    opened = JointCommand(position=(*bench.robot.read(bench.now_ns).position[:5], 0.1))
    gripper.stands_at = 1.0
    pushes = bench.run(1.5, opened)
    assert pushes.effort[5] > 30
    assert not pushes.is_grasping, "it opens against something"


def test_without_commands_and_without_the_wheels_own_watchdog_it_stops_all_the_same(bench: FourBench) -> None:
    bench.world.has_firmware_watchdog = False
    bench.run(1.0, driving(bench, base_vy_mps=0.1))
    assert bench.link.beats.endswith("cc"), "the keeper knows that the base drives"
    bench.drift(2.0)
    assert bench.world.base == [0.0, 0.0, 0.0]
    assert bench.link.beats.endswith("rr")


# --- a driver that hangs


@pytest.mark.parametrize("way", ["base_v_mps", "base_vy_mps", "lift"])
def test_after_its_keeper_has_braked_for_a_driver_that_hung_nothing_goes_on_before_a_person_says_so(
    bench: FourBench, way: str
) -> None:
    guard = GuardMachine(STRETCH_4)
    command = driving(bench) if way == "lift" else driving(bench, **{way: 0.1})
    if way == "lift":
        command = JointCommand(position=(command.position[0] + 0.5, *command.position[1:]))
    guard.update_state(bench.run(1.0, command))
    assert guard.arm(bench.now_ns)
    bench.pass_time(1.5)
    assert bench.world.base == [0.0, 0.0, 0.0]
    assert bench.world.joints["lift"].speed == 0.0
    bench.robot.advance(bench.now_ns)
    before = bench.run(PERIOD_S, command)
    assert (bench.mode, sentence("bridges.side_has_braked") in bench.status.why) == ("lost", True)
    guard.update_status(bench.status)
    assert guard.check_monitors(bench.now_ns) == "driver"
    assert_stands(before, bench.run(2.0, command), JOINTS)
    assert bench.mode == "lost"
    bench.run(0.1)
    assert bench.mode == "ready"
    guard.update_status(bench.status)
    assert guard.mode == "stopped", "a person lifts that"
    after = bench.run(1.0, command)
    x, y, up = after.base_x_m - before.base_x_m, after.base_y_m - before.base_y_m, after.position[0]
    assert max(x, y, up - before.position[0]) > 0.02, "and it is followed"


def test_a_robot_that_is_braked_for_is_lost_for_some_ticks_of_its_guard(bench: FourBench) -> None:
    bench.run(1.0, driving(bench, base_v_mps=0.1))
    bench.pass_time(0.2)
    bench.robot.advance(bench.now_ns)
    bench.run(0.2)
    assert bench.mode == "lost", "although nothing is commanded any more"
    bench.run(0.2)
    assert bench.mode == "ready"


@pytest.mark.parametrize("moves", [False, True])
def test_a_hang_of_a_robot_that_stands_and_one_that_is_short_change_nothing(bench: FourBench, moves: bool) -> None:
    command = driving(bench, base_v_mps=0.1 * moves)
    bench.run(1.0, command)
    bench.pass_time(0.14 if moves else 0.6)
    bench.robot.advance(bench.now_ns)
    bench.run(0.1, command)
    assert bench.mode == "ready"
    assert bench.run(1.0, driving(bench, base_v_mps=0.1)).base_v_mps > 0.05


def test_what_was_held_long_ago_is_not_said_again_at_the_end(bench: FourBench) -> None:
    bench.run(0.5, JointCommand(position=(1.0, *bench.robot.read(bench.now_ns).position[1:])))
    bench.run(2.0)
    lift, sent = bench.world.joints["lift"], bench.link.sent
    lift.at = lift.goal = 0.3  # by somebody with the gamepad
    bench.run(0.5)
    bench.robot.close()
    assert (lift.goal, bench.link.sent) == (0.3, sent)


# --- the lease


def test_it_takes_a_lease_that_is_over_and_keeps_it(bench: FourBench) -> None:
    bench.other()
    bench.run(1.5)
    moved = bench.run(1.0, driving(bench, base_v_mps=0.1))
    assert bench.link.lease.holder == bench.link.client
    assert moved.base_v_mps > 0.05
    assert bench.mode == "ready"


@pytest.mark.parametrize("priority", [1, 3])
def test_a_higher_priority_takes_the_robot_it_is_lost_names_who_and_nothing_is_sent(
    bench: FourBench, priority: int
) -> None:
    command = driving(bench, base_v_mps=0.1)
    bench.run(1.0, command)
    bench.other("gamepad_7", priority)
    bench.run(PERIOD_S, command)
    assert bench.mode == "lost"
    assert "gamepad_7 commands it through its server" in bench.status.why
    sent = bench.link.sent
    for _ in range(30):
        bench.other("gamepad_7", priority)
        bench.run(0.1, command)
    assert bench.link.sent == sent
    bench.run(1.5, command)
    assert bench.mode == "ready", "they are silent"
    assert sentence("bridges.command_from_before") in bench.status.why
    assert bench.link.sent == sent, "what was ordered before is not followed"
    bench.run(0.1)
    assert bench.run(1.0, command).base_v_mps > 0.05, "after a pause it is"


def test_who_commands_while_nobody_here_does_is_told_too(bench: FourBench) -> None:
    bench.other("stretch_gamepad")
    bench.run(PERIOD_S)
    bench.other("stretch_gamepad")
    bench.run(PERIOD_S)
    assert (bench.mode, "stretch_gamepad" in bench.status.why) == ("lost", True)
    with pytest.raises(RobotError, match="stretch_gamepad"):
        bench.robot.home()


def test_commands_that_the_server_does_not_take_are_no_longer_sent(bench: FourBench) -> None:
    lease = bench.link.lease
    lease.holder, lease.priority, lease.expiry_s = "silent_one", 0, math.inf
    bench.run(2.0)
    assert bench.mode == "ready", "it is not known to command"
    command = driving(bench, base_v_mps=0.1)
    bench.run(0.5, command)
    assert "silent_one commands it" in bench.status.why
    sent = bench.link.sent
    bench.run(1.0, command)
    assert bench.link.sent == sent
    assert bench.world.base == [0.0, 0.0, 0.0]


def test_a_hold_is_not_said_against_somebody_elses_lease(bench: FourBench) -> None:
    bench.run(1.0, driving(bench, base_v_mps=0.1))
    bench.run(PERIOD_S)
    bench.other("gamepad_7", 1)
    bench.run(PERIOD_S)
    sent = bench.link.sent
    bench.run(0.1)
    assert (bench.mode, bench.link.sent) == ("lost", sent)


def test_it_never_takes_the_robot_out_of_another_programs_hands(bench: FourBench) -> None:
    bench.other("client_other", 0)
    for _ in range(20):
        bench.other("client_other", 0)
        bench.run(0.1, driving(bench, base_v_mps=0.1))
    assert bench.link.lease.holder == "client_other"
    assert bench.world.base == [0.0, 0.0, 0.0]


# --- the server and the robot's parts


@pytest.mark.parametrize(
    ("chain", "name"),
    [("lift", "lift"), ("wheel_1", "wheel_1"), ("wrist_pitch", "wrist_pitch"), ("stretch_gripper", "gripper"),
     ("power", "power"), ("arm", "arm")],
)  # fmt: skip
def test_one_frozen_chain_in_fresh_statuses_makes_the_state_old_and_is_named(
    bench: FourBench, chain: str, name: str
) -> None:
    bench.world.frozen.add(chain)
    bench.run(0.3)
    assert bench.now_ns - bench.robot.read(bench.now_ns).read_ns > to_ns(0.25)
    bench.run(0.9)
    assert bench.mode == "lost"
    assert bench.status.why.startswith(f"{name} does not measure")


def test_a_paused_server_is_told_and_does_not_move_again_by_itself(bench: FourBench) -> None:
    command = driving(bench, base_v_mps=0.1)
    bench.run(0.5, command)
    bench.world.state = "PAUSED"
    bench.run(PERIOD_S, command)
    assert (bench.mode, "PAUSED" in bench.status.why) == ("lost", True)
    bench.world.state = "RUNNING"
    bench.run(1.5, command)
    assert (bench.mode, bench.world.base[0]) == ("ready", 0.0)


def test_a_silent_server_is_lost_after_a_second(bench: FourBench) -> None:
    bench.link.is_silent = True
    bench.run(1.1, driving(bench, base_v_mps=0.1))
    assert bench.status.why.startswith(sentence("bridges.server_is_silent"))


def test_a_keeper_that_ended_is_told(bench: FourBench) -> None:
    bench.link.problem = "the keeper ended"
    bench.run(PERIOD_S)
    assert bench.status.why.startswith("the keeper ended")


@pytest.mark.parametrize(
    ("change", "says"),
    [({"end_of_arm": {}}, "no stretch_gripper"), ({"server": {}}, "KeyError"), ({"omnibase": 3}, "TypeError")],
)  # fmt: skip
def test_a_status_of_something_else_is_no_reading(bench: FourBench, change: dict[str, object], says: str) -> None:
    bench.world.extra = change
    bench.run(PERIOD_S)
    assert bench.mode == "lost"
    assert says in bench.status.why
    bench.world.extra = {}
    bench.run(PERIOD_S)
    assert bench.mode == "ready"


def test_percent_of_a_gripper_that_do_not_fit_its_radians_are_no_reading() -> None:
    world = World()
    told = world.status({"lease_holder": "None", "lease_expiry": 0.0})
    read_status(told)
    told["end_of_arm"]["stretch_gripper"]["pos_pct"] = 179.0
    with pytest.raises(ValueError, match=r"179 % and 1\.00 rad"):
        read_status(told)


def test_a_server_that_was_started_again_asks_for_another_run_because_its_odometry_begins_anew(
    bench: FourBench,
) -> None:
    bench.run(0.5)
    bench.world.status_id = 0
    bench.run(PERIOD_S)
    assert bench.mode == "lost"
    assert bench.status.why.startswith(sentence("bridges.server_was_restarted"))
    bench.run(2.0)
    assert bench.mode == "lost"


def test_the_name_of_another_program_is_text_for_people_and_short(bench: FourBench) -> None:
    for _ in range(2):
        bench.other("\x1b[2Jgamepad\n" + "x" * 500)
        bench.run(PERIOD_S)
    assert bench.status.why.startswith("?[2Jgamepad?xx")
    assert len(bench.status.why) < 200
    bench.world.extra = {"server": {"state": ["RUNNING"], "status_id": 1, "lease_holder": "None", "lease_expiry": 0.0}}
    bench.run(PERIOD_S)
    assert "a list in place of text" in bench.status.why


def test_positions_that_are_no_numbers_are_no_reading() -> None:
    world = World()
    world.joints["arm"].at = math.nan
    with pytest.raises(ValueError, match="finite"):
        read_status(world.status({"lease_holder": "None", "lease_expiry": 0.0}))


def test_contact_self_collision_tilt_and_alerts_are_told(bench: FourBench) -> None:
    world = bench.world
    world.joints["wrist_yaw"].collides["pos"] = True
    world.alerts = {"over_tilt_type": "Front Tilt", "low_soc_alert": True}
    world.pushing.add("wheel_2")
    state = bench.run(PERIOD_S)
    assert state.contact == ("wrist_yaw", "base", "tilt")
    assert bench.status.alerts == ("low battery", "over tilt")
    assert bench.status.battery_v == pytest.approx(26.5)


# --- routines and the runstop


def test_homing_asks_with_the_makers_priority_until_it_has_begun_and_says_when_it_failed(bench: FourBench) -> None:
    bench.world.fails = True
    bench.robot.home()
    assert bench.link.lease.priority == HOME_PRIORITY
    bench.drift(0.2)
    assert bench.mode == "homing"
    bench.drift(4.0)
    assert bench.mode == "ready"
    assert "routine_robot_home failed" in bench.status.alerts
    bench.world.fails = False
    bench.robot.home()
    bench.drift(4.0)
    assert bench.status.alerts == ()


def test_the_runstop_ends_a_routine_of_somebody_else_and_takes_the_lease_for_it(bench: FourBench) -> None:
    bench.other("client_other", 3)
    bench.world.dispatch({"routines": ["routines", "routine_robot_stow", "theirs", (), {}]})
    bench.run(PERIOD_S)
    assert bench.mode in ("lost", "stowing")
    bench.robot.runstop(True)
    bench.drift(0.1)
    assert bench.world.is_runstopped
    assert bench.world.routine == "routine_nop"
    assert bench.link.lease.priority == RUNSTOP_PRIORITY


# --- pickles


class Bomb:
    def __reduce__(self) -> Any:
        return os.system, ("touch " + str(BOMBED),)


BOMBED = Path("/tmp") / f"polyrhythm-bomb-{os.getpid()}"

EVIL: dict[str, Any] = {
    "a class with __reduce__": pickle.dumps({"x": Bomb()}),
    "eval": b"cbuiltins\neval\n(S'1'\ntR.",
    "builtins.getattr": pickle.dumps(getattr),
    "a class of ours": pickle.dumps({"x": World()}),
    "numpy objects": pickle.dumps({"x": np.array([Bomb()], dtype=object)}),
    "a list": pickle.dumps([1]),
    "no pickle": b"\x00\x01\x02",
    "nothing": b"",
    "half of one": pickle.dumps({"a": "b" * 100})[:40],
    "write to what is made": b"cuuid\nUUID\n}(S'int'\nS'x'\nub.",
}


@pytest.mark.parametrize("name", EVIL)
def test_a_pickle_that_wants_more_than_numbers_is_refused_and_does_not_run(name: str) -> None:
    with pytest.raises(Unreadable):
        read_pickle(EVIL[name])
    assert not BOMBED.exists()


@pytest.mark.parametrize("protocol", [3, 4, 5])  # the server writes 5
def test_numbers_of_numpy_ids_and_containers_are_read(protocol: int) -> None:
    ident = uuid.uuid1()
    sent = {"a": np.float64(1.5), "b": [np.int32(-3), np.bool_(True)], "c": (np.float32(0.25), None), "d": {"e": ident}}
    assert read_pickle(pickle.dumps(sent, protocol)) == {
        "a": 1.5,
        "b": [-3, True],
        "c": (0.25, None),
        "d": {"e": ident},
    }
    assert "f" in read_pickle(pickle.dumps({"f": np.arange(4.0)}, protocol))
    big = np.dtype(">f8").type(2.0)
    assert read_pickle(pickle.dumps({"x": big}, protocol)) == {"x": 2.0}


def test_a_refused_status_is_told_by_the_name_of_what_it_holds(bench: FourBench) -> None:
    bench.world.extra = {"x": Bomb()}
    bench.run(PERIOD_S)
    assert bench.mode == "lost"
    assert "its server sends posix.system, which is not read" in bench.status.why
    assert not BOMBED.exists()


# --- whom it listens to


@pytest.mark.parametrize(
    "address", ["192.168.1.20", "robot.local", "0.0.0.0", "8.8.8.8", "::ffff:8.8.8.8", "127.0.0.1.nip.io"]
)
def test_another_host_is_refused(address: str) -> None:
    with pytest.raises(RobotError, match=pattern("bridges.speaks_pickle")):
        endpoints(address)
    with pytest.raises(RobotError, match="loopback"):
        Stretch4Robot(address=address).start(0)


def test_this_host_is_not() -> None:
    assert endpoints("localhost")["command"] == "tcp://127.0.0.1:23115"
    assert endpoints("::1")["status"] == "tcp://[::1]:23116"


def test_sockets_of_another_account_links_and_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RobotError, match="stretch_body_server --launch"):
        endpoints(folder=str(tmp_path))
    for name in NAMES:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(tmp_path / f"port_{name}"))
    assert endpoints(folder=str(tmp_path))["admin"] == f"ipc://{tmp_path}/port_admin"
    mine = os.getuid()
    if mine != 0:
        monkeypatch.setattr(os, "getuid", lambda: mine + 4242)
        with pytest.raises(RobotError, match="belongs to account"):
            endpoints(folder=str(tmp_path))
    else:
        os.chown(tmp_path / "port_status", 4242, -1)
        with pytest.raises(RobotError, match="belongs to account 4242"):
            endpoints(folder=str(tmp_path))
        os.chown(tmp_path / "port_status", 0, -1)
    (tmp_path / "port_admin").unlink()
    (tmp_path / "port_admin").symlink_to(tmp_path / "port_status")
    with pytest.raises(RobotError, match="is no socket"):
        endpoints(folder=str(tmp_path))


# --- over its sockets

processes = pytest.mark.processes


class SocketBench(Bench):
    """In real time, over real sockets."""

    robot: Stretch4Robot

    def __init__(self, folder: Path, speed: str = "default", **server: Any) -> None:
        self.server = SocketServer(folder, **server)
        self.server.__enter__()
        self.link = ServerLink(folder=str(folder))
        super().__init__(Stretch4Robot(speed, link=self.link))
        self.now_ns = CLOCK.now_ns()

    def pass_time(self, seconds: float) -> None:
        CLOCK.block(seconds)
        self.now_ns = CLOCK.now_ns()

    def press_runstop(self, is_on: bool) -> None:
        self.server.world.press(is_on)

    def unhome(self) -> None:
        for joint in self.server.world.joints.values():
            joint.is_homed = False

    def touch(self) -> Literal["lift", "base"]:
        self.server.world.joints["lift"].stands_at = self.server.world.joints["lift"].at + 0.05
        return "lift"

    def close(self) -> None:
        super().close()
        self.server.__exit__()


class PatientSocketBench(PatientBench, SocketBench):
    """For what is no claim about a hold."""


@processes
@pytest.mark.long
class TestStretch4RobotOverSockets(RobotConformance):
    limits = "nodes.stretch.limits:STRETCH_4"

    def make(self) -> Bench:
        return PatientSocketBench(self.request.getfixturevalue("tmp_path"))


@pytest.fixture
def wired(tmp_path: Path) -> Iterator[SocketBench]:
    bench = SocketBench(tmp_path)
    bench.robot.start(bench.now_ns)
    yield bench
    bench.close()


def until(bench: SocketBench, command: JointCommand | None, is_so: Any, seconds: float = 30.0) -> float:
    """Run until a fact holds; how long it took."""
    begun_s = CLOCK.now_s()
    while not is_so():
        assert CLOCK.now_s() - begun_s < seconds, bench.robot.status(bench.now_ns)
        bench.run(PERIOD_S, command)
    return CLOCK.now_s() - begun_s


@processes
def test_it_drives_over_real_sockets_and_closing_leaves_a_base_that_stands(wired: SocketBench) -> None:
    world = wired.server.world
    command = JointCommand(position=wired.robot.read(wired.now_ns).position, base_vy_mps=0.2)
    until(wired, command, lambda: world.base[1] > 0.15)
    wired.robot.close()
    world.has_firmware_watchdog = False
    wait_for(lambda: world.base == [0.0, 0.0, 0.0])


def wait_for(is_so: Any, seconds: float = 30.0) -> None:
    begun_s = CLOCK.now_s()
    while not is_so():
        assert CLOCK.now_s() - begun_s < seconds
        CLOCK.block(0.01)


@processes
def test_a_server_that_is_away_is_told_and_followed_after_a_pause_when_it_is_back(wired: SocketBench) -> None:
    command = JointCommand(position=wired.robot.read(wired.now_ns).position, base_v_mps=0.1)
    until(wired, command, lambda: wired.server.world.base[0] > 0.05)
    folder, world = wired.server.folder, wired.server.world
    ending = threading.Thread(target=wired.server.__exit__)  # the driver goes on meanwhile, or its keeper brakes for it
    ending.start()
    until(wired, command, lambda: wired.mode == "lost")
    ending.join()
    assert sentence("bridges.server_is_silent") in wired.robot.status(wired.now_ns).why
    Bench.run(wired, 2 * HOLD_S, command)  # a server starts more slowly than a hold is said
    world.base, world.asked, world.dispatched = [0.0] * 3, [0.0] * 3, []
    wired.server = SocketServer(folder, world)
    wired.server.__enter__()
    until(wired, command, lambda: wired.mode == "ready")
    Bench.run(wired, 0.3, command)  # without the patience that lets go of it
    assert world.dispatched == [], "nothing that was said before reaches the one that was started"
    wired.run(0.1)
    until(wired, command, lambda: world.base[0] > 0.05)


@processes
def test_a_status_with_code_in_it_does_not_run_over_sockets_either(tmp_path: Path) -> None:
    bench = SocketBench(tmp_path, tamper=lambda _: EVIL["a class with __reduce__"])
    with pytest.raises(RobotError, match=r"posix\.system"):
        bench.robot.start(bench.now_ns)
    assert not BOMBED.exists()
    bench.close()


DRIVER = """
import itertools
import sys
from bridges.stretch4.robot import Stretch4Robot
from nodes.msgs import JointCommand
from runtime.clock import SystemClock
clock = SystemClock()
robot = Stretch4Robot(folder=sys.argv[1])
robot.start(clock.now_ns())
print("up", flush=True)
for tick in itertools.count():
    robot.advance(clock.now_ns())
    state = robot.read(clock.now_ns())
    robot.command(JointCommand(position=state.position, base_v_mps=0.2))
    if tick % 10 == 0:
        print(robot.status(clock.now_ns()).mode, flush=True)
    clock.block(0.02)
"""


def drives(driver: subprocess.Popen[str], world: World) -> bool:
    """Whether it came to drive; one that the machine held up at its start for longer than a lease stays lost."""
    assert driver.stdout is not None
    assert driver.stdout.readline() == "up\n"
    for _ in range(200):
        if world.base[0] > 0.18:
            return True
        if driver.stdout.readline() in ("lost\n", ""):
            return False
    return False


@contextmanager
def driven(folder: Path) -> Iterator[tuple[World, subprocess.Popen[str]]]:
    """A driver in a process of its own that drives ahead, above a base that nobody but its keeper brakes."""
    world = World()
    world.has_firmware_watchdog = False
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with SocketServer(folder, world):
        for _ in range(5):
            driver = subprocess.Popen(
                [sys.executable, "-c", DRIVER, str(folder)], stdout=subprocess.PIPE, text=True, env=environment
            )
            assert driver.stdout is not None
            with driver, driver.stdout:
                try:
                    if drives(driver, world):
                        yield world, driver
                        return
                finally:
                    driver.kill()
    pytest.fail("none of five drivers came to drive")


@processes
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_the_keeper_brakes_the_base_of_a_driver_that_is_killed_or_frozen(tmp_path: Path, how: signal.Signals) -> None:
    with driven(tmp_path) as (world, driver):
        driver.send_signal(how)
        wait_for(lambda: world.asked == [0.0] * 3)
        wait_for(lambda: world.base == [0.0] * 3)


def modes_after_it_is_lost(driver: subprocess.Popen[str]) -> list[str]:
    """What the driver tells of itself in the second after it has told that it is lost."""
    assert driver.stdout is not None
    assert any(driver.stdout.readline() == "lost\n" for _ in range(100))
    return [driver.stdout.readline() for _ in range(5)]


@processes
def test_a_driver_that_was_frozen_for_a_moment_does_not_drive_on_after_it(tmp_path: Path) -> None:
    with driven(tmp_path) as (world, driver):
        driver.send_signal(signal.SIGSTOP)
        wait_for(lambda: world.base == [0.0] * 3)
        driver.send_signal(signal.SIGCONT)
        assert modes_after_it_is_lost(driver) == ["lost\n"] * 5, "it commands on and on"
        assert (world.asked, world.base) == ([0.0] * 3, [0.0] * 3)


@processes
def test_a_keeper_that_is_frozen_is_told_and_the_base_braked_at_once(wired: SocketBench) -> None:
    world = wired.server.world
    world.has_firmware_watchdog = False
    command = JointCommand(position=wired.robot.read(wired.now_ns).position, base_v_mps=0.1)
    until(wired, command, lambda: world.base[0] > 0.05)
    os.kill(wired.link.keeper_pid, signal.SIGSTOP)
    try:
        until(wired, command, lambda: wired.mode == "lost")
        assert sentence("bridges.has_not_answered", seconds=0.5) in wired.robot.status(wired.now_ns).why
        until(wired, command, lambda: world.base == [0.0] * 3)
    finally:
        os.kill(wired.link.keeper_pid, signal.SIGCONT)
    until(wired, command, lambda: wired.mode == "ready")
    wired.run(0.3, command)
    assert world.base == [0.0] * 3, "what was ordered before is not followed"
    wired.run(0.1)
    until(wired, command, lambda: world.base[0] > 0.05)


@processes
def test_a_keeper_that_was_killed_is_told_and_the_base_braked_at_once(wired: SocketBench) -> None:
    world = wired.server.world
    world.has_firmware_watchdog = False
    command = JointCommand(position=wired.robot.read(wired.now_ns).position, base_v_mps=0.1)
    until(wired, command, lambda: world.base[0] > 0.05)
    os.kill(wired.link.keeper_pid, signal.SIGKILL)
    until(wired, command, lambda: wired.mode == "lost" and world.base == [0.0] * 3)
    assert "ended (-9)" in wired.robot.status(wired.now_ns).why
