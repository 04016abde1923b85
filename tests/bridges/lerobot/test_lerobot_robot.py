"""Any robot of LeRobot's is a driver: within the protocol, within its limits, and whatever its bus does is told."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from bridges.lerobot.device import DeviceHello, DeviceReading, JointHello, LeRobotDevice
from bridges.lerobot.facts import read_facts
from bridges.lerobot.robot import AHEAD_S, LeRobotRobot
from nodes.guard.motion_profile import limits_of
from nodes.msgs import JointCommand
from nodes.robot.conformance import Bench, RobotConformance
from nodes.robot.protocol import RobotError
from nodes.robot.robot_from_launch import is_file, latched_name, load_body
from runtime import UserError
from runtime.clock import SystemClock, to_ns, to_s
from tests.support.lerobot import environment
from tests.support.sentences import pattern, sentence

FACTS = """
type = "bus_follower"
connecting_moves = false
[settings]
folder = "{folder}"
fault = "{fault}"
[joints.shoulder_pan]
key = "shoulder_pan.pos"
unit = "rad"
scale = 0.0174533
lowest = -1.5
highest = 1.5
speed = 1.0
acceleration = 4.0
[joints.elbow_flex]
key = "elbow_flex.pos"
unit = "rad"
scale = 0.0157
lowest = -1.5
highest = 1.5
speed = 1.0
acceleration = 4.0
[joints.gripper]
key = "gripper.pos"
unit = "m"
scale = 0.0008
lowest = 0.0
highest = 0.08
speed = 0.1
acceleration = 0.5
"""


def facts(folder: Path, fault: str = "", **changes: str) -> str:
    """A file of facts of the plug-in's arm."""
    text = FACTS.format(folder=folder, fault=fault)
    for old, new in changes.items():
        text = text.replace(old, new)
    file = folder / "bus.lerobot.toml"
    file.write_text(text)
    return str(file)


class Arm:
    """The far side without its process, in the bench's time: servos that go to the newest goal for ever."""

    is_there = True

    def __init__(self, file: str) -> None:
        self.facts = read_facts(file)
        self.bench: Bench | None = None
        self.at = [0.0, 0.0, 0.04]
        self.goal = list(self.at)
        self.then_ns = 0

    def open(self) -> DeviceHello:
        keys = [joint.key for joint in self.facts.joints.values()]
        return DeviceHello(dict.fromkeys(keys, JointHello()), tuple(keys))

    def exchange(self, goal: Mapping[str, float] | None = None, until_ns: int = 0) -> DeviceReading:
        assert self.bench is not None
        now_ns = self.bench.now_ns
        most = 1.0 * to_s(now_ns - self.then_ns) if self.then_ns else 0.0
        self.then_ns = now_ns
        self.at = [at + max(-most, min(most, there - at)) for at, there in zip(self.at, self.goal, strict=True)]
        if goal:
            self.goal = [joint.ours(goal[joint.key]) for joint in self.facts.joints.values()]
        return DeviceReading(now_ns, self.facts.theirs(tuple(self.at)))

    def why_silent(self, now_ns: int) -> str:
        return ""

    def close(self) -> None: ...


class TestLeRobotRobot(RobotConformance):
    @property
    def limits(self) -> str:  # type: ignore[override]
        return facts(self.request.getfixturevalue("tmp_path"))

    def make(self) -> Bench:
        file = facts(self.request.getfixturevalue("tmp_path"))
        arm = Arm(file)
        bench = arm.bench = Bench(LeRobotRobot(file, link=arm))
        return bench

    def test_a_stowed_robot_is_folded_and_follows_again(self) -> None:
        self.started()
        with pytest.raises(RobotError, match=pattern("bridges.lerobot_by_hand")):
            self.robot.stow()

    @pytest.mark.parametrize("verb", ["home", "stow"])
    def test_a_runstop_ends_homing_and_stowing_within_100_ms(self, verb: str) -> None:
        self.started()
        with pytest.raises(RobotError, match=pattern("bridges.lerobot_by_hand")):
            getattr(self.robot, verb)()


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return environment(tmp_path_factory.mktemp("lerobot"))


class Real:
    """A robot with its process, and the clock by which it is driven."""

    def __init__(self, robot: LeRobotRobot, folder: Path) -> None:
        self.robot, self.folder, self.clock = robot, folder, SystemClock()

    def act(self, what: str) -> None:
        (self.folder / "act").write_text(what)

    def until(self, is_so: Callable[[], bool], command: JointCommand | None = None, within_s: float = 5.0) -> None:
        """Drive as a driver does until something is so."""
        end_ns = self.clock.now_ns() + to_ns(within_s)
        while not is_so():
            assert self.clock.now_ns() < end_ns, self.mode
            if command is not None:
                self.robot.command(command)
            self.robot.advance(self.clock.now_ns())
            self.clock.block(0.02)

    @property
    def mode(self) -> tuple[str, str]:
        status = self.robot.status(self.clock.now_ns())
        return status.mode, status.why

    @property
    def age_s(self) -> float:
        now_ns = self.clock.now_ns()
        return to_s(now_ns - self.robot.read(now_ns).read_ns)

    def goals(self) -> list[tuple[dict[str, float], dict[str, float]]]:
        """Where the arm was and what it was told, each time."""
        try:
            return [tuple(json.loads(line)[1:]) for line in (self.folder / "goals").read_text().splitlines()]
        except FileNotFoundError:
            return []


@pytest.fixture
def started(python: str, tmp_path: Path) -> Iterator[Real]:
    real = Real(LeRobotRobot(facts(tmp_path), python), tmp_path)
    real.robot.start(real.clock.now_ns())
    yield real
    real.robot.close()


FAR = JointCommand(position=(1.4, 0.0, 0.04))


@pytest.mark.processes
def test_a_goal_reaches_no_further_ahead_than_the_joint_goes_in_that_time_and_readings_are_as_old_as_they_are(
    started: Real,
) -> None:
    started.until(lambda: len(started.goals()) > 20, FAR)
    for at, told in started.goals():
        assert abs(told["shoulder_pan.pos"] - at["shoulder_pan"]) * 0.0174533 < AHEAD_S * 1.0 + 0.15
        assert -100 <= told["elbow_flex.pos"] <= 100
    assert 0.006 < started.age_s < 0.2  # a call of the bus takes 6 ms
    started.robot.close()
    assert (started.folder / "left").exists()
    rest = started.goals()[-1]
    assert abs(rest[1]["shoulder_pan.pos"] - rest[0]["shoulder_pan"]) < 10


@pytest.mark.processes
def test_what_happens_to_the_bus_is_told_in_words_and_over_when_it_is_over(started: Real) -> None:
    for act, words in (
        ("unplug", sentence("bridges.lerobot_no_packet")),
        ("drop", sentence("bridges.lerobot_no_number")),
        ("hang", sentence("bridges.lerobot_does_not_come_back")),
    ):
        started.act(act)
        started.until(lambda words=words: words in started.mode[1], FAR)  # type: ignore[misc]
        assert started.mode[0] == "lost"
        told = len(started.goals())
        assert started.age_s > 0.2
        started.act("")
        started.until(lambda: started.mode[0] == "ready")
        assert len(started.goals()) <= told + 1, "an old goal was followed"


@pytest.mark.processes
def test_a_frozen_process_is_told_and_follows_nothing_old_and_a_dead_one_is_told_with_its_end(started: Real) -> None:
    started.until(lambda: len(started.goals()) > 3, FAR)
    (child,) = [int(pid) for pid in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()]
    os.kill(child, signal.SIGSTOP)
    started.until(lambda: sentence("bridges.lerobot_has_not_run") in started.mode[1], FAR)
    assert started.mode[0] == "lost"
    before = len(started.goals())
    started.clock.block(0.2)  # what was sent meanwhile is too old by now
    os.kill(child, signal.SIGCONT)
    started.until(lambda: started.mode[0] == "ready")
    assert len(started.goals()) <= before + 1
    os.kill(child, signal.SIGKILL)
    started.until(lambda: started.mode == ("lost", sentence("bridges.lerobot_killed")))


@pytest.mark.processes
def test_a_plug_in_that_dies_says_how(started: Real) -> None:
    started.act("die")
    started.until(lambda: "code 7" in started.mode[1])


@pytest.mark.processes
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("uncalibrated", pattern("bridges.lerobot_not_calibrated")),
        ("absent", pattern("bridges.lerobot_could_not_connect")),
        ("two arms", pattern("bridges.lerobot_two_arms")),
    ],
)
def test_an_arm_that_cannot_be_had_is_told_and_nothing_moves(
    python: str, tmp_path: Path, fault: str, words: str
) -> None:
    robot = LeRobotRobot(facts(tmp_path, fault), python)
    with pytest.raises(RobotError, match=words):
        robot.start(SystemClock().now_ns())
    assert not (tmp_path / "goals").exists()


@pytest.mark.processes
def test_a_plug_in_that_hangs_as_it_connects_is_given_up_with_what_it_did(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect_s = 20.0 if os.environ.get("LEROBOT_PYTHON") else 1.5  # LeRobot itself imports for long
    monkeypatch.setattr("bridges.lerobot.device.CONNECT_S", connect_s)
    with pytest.raises(RobotError, match=pattern("bridges.lerobot_hangs_on_connect", seconds=f"{connect_s:g}")):
        LeRobotRobot(facts(tmp_path, "hangs"), python).start(SystemClock().now_ns())


@pytest.mark.processes
def test_whole_numbers_are_numbers_and_an_arm_that_moves_as_it_connects_is_followed_by_nobody(
    python: str, tmp_path: Path
) -> None:
    for fault, mode in (("ints", "ready"), ("moves", "lost"), ("moves inside", "lost"), ("moves unseen", "lost")):
        real = Real(LeRobotRobot(facts(tmp_path, fault), python), tmp_path)
        real.robot.start(real.clock.now_ns())
        try:
            why = sentence("bridges.lerobot_moves_by_itself") if mode == "lost" else ""
            real.until(lambda real=real, mode=mode, why=why: real.mode[0] == mode and why in real.mode[1])  # type: ignore[misc]
        finally:
            real.robot.close()
    assert not (tmp_path / "goals").exists()
    known = facts(tmp_path, **{"connecting_moves = false": "connecting_moves = true"})
    with pytest.raises(RobotError, match=pattern("bridges.lerobot_clear_its_space")):
        LeRobotRobot(known, python).start(0)


@pytest.mark.processes
def test_a_side_process_finds_none_of_our_modules(python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "draccus.py").write_text("raise SystemError('ours')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    device = LeRobotDevice("robot", "bus_follower", {"folder": str(tmp_path)}, python)
    assert device.described().joints["shoulder_pan.pos"].range == (1024, 3072)


def test_a_file_of_facts_is_the_robot_of_a_launch_file(tmp_path: Path) -> None:
    file = facts(tmp_path)
    assert [joint.name for joint in limits_of(file).joints] == ["shoulder_pan", "elbow_flex", "gripper"]
    assert latched_name(file) == "bus"
    assert not is_file(file)
    with pytest.raises(UserError, match=pattern("bridges.lerobot_no_model")):
        load_body(file)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("speed = 1.0\n", "", pattern("bridges.lerobot_speed_lacks")),
        ("scale = 0.0008", "scale = 0.0", pattern("bridges.lerobot_scale_is_0")),
        ("lowest = 0.0", "lowest = 0.9", pattern("bridges.lerobot_lowest_is_not_below")),
        ('"elbow_flex.pos"', '"gripper.pos"', pattern("bridges.lerobot_key_twice")),
        ('unit = "m"', 'unit = "rad"', pattern("bridges.lerobot_gripper_is_told_in_m")),
        ("speed = 0.1", 'speed = "slow"', pattern("bridges.lerobot_speed_is_no_number")),
    ],
)
def test_facts_that_a_guard_cannot_keep_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        limits_of(facts(tmp_path, **{old: new}))
