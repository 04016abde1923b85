from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nodes.guard.node import Guard
from nodes.msgs import DriverOrder, Image, JointCommand, RobotMode, RobotState, RobotStatus
from nodes.robot.driver import METHODS, MOST_TOLD, Driver, make_robot
from nodes.robot.protocol import Robot, RobotError, RobotLimits
from nodes.sim.driver import SimDriver
from nodes.sim.robot import SimRobot
from nodes.stretch.limits import STOW, STRETCH_3
from runtime import Node, Publisher, Simulation, Subscription, every
from runtime.errors import UserError
from runtime.launch.graph import Graph, NodeSpec
from runtime.message import Envelope, Stamped
from tests.support.sentences import pattern, sentence


class NotingRobot:
    """Writes down what it is asked to do."""

    is_hardware: Any = False

    def __init__(self, limits: RobotLimits = STRETCH_3) -> None:
        self.limits = limits
        self.calls: list[str] = []

    def start(self, now_ns: int) -> None:
        self.calls.append("start")

    def read(self, now_ns: int) -> RobotState:
        return RobotState(
            read_ns=now_ns,
            position=STOW,
            velocity=STOW,
            effort=STOW,
            base_x_m=0.0,
            base_y_m=0.0,
            base_heading_rad=0.0,
            base_v_mps=0.0,
            base_w_radps=0.0,
        )

    def status(self, now_ns: int) -> RobotStatus:
        is_on = bool(self.calls) and self.calls[-1] == "runstop"
        return RobotStatus(read_ns=now_ns, mode="runstopped" if is_on else "ready", is_runstopped=is_on)

    def home(self) -> None:
        self.calls.append("home")

    def stow(self) -> None:
        raise RobotError("not now")

    def runstop(self, is_on: bool) -> None:
        self.calls.append("runstop" if is_on else "release")

    def command(self, command: JointCommand) -> None:
        self.calls.append("command")

    def advance(self, now_ns: int) -> None:
        self.calls.append("advance")

    def stop(self) -> None:
        self.calls.append("stop")

    def close(self) -> None:
        self.calls.append("close")


def driver_with_command(age_s: float, position: tuple[float, ...] = STOW) -> tuple[Driver, NotingRobot]:
    driver = Driver()
    driver.robot = robot = NotingRobot()
    now_ns = driver.clock.now_ns()
    envelope = Envelope(topic="robot/command", source="guard", seq=1, published_ns=now_ns - round(age_s * 1e9))
    driver.command.push(Stamped(JointCommand(position=position), envelope))
    return driver, robot


def test_a_fresh_command_is_applied_after_the_robots_time_has_passed() -> None:
    driver, robot = driver_with_command(age_s=0.0)
    driver.control()
    assert robot.calls == ["advance", "command"]
    assert driver.state.sent == 1


def test_a_stale_command_means_stop() -> None:
    driver, robot = driver_with_command(age_s=0.16)
    driver.control()
    assert robot.calls == ["advance", "stop"]


def test_no_command_at_all_means_stop() -> None:
    driver = Driver()
    driver.robot = robot = NotingRobot()
    driver.control()
    assert robot.calls == ["advance", "stop"]


@pytest.mark.parametrize("position", [(math.nan, *STOW[1:]), STOW[:7], (math.inf, *STOW[1:])])
def test_a_command_that_is_not_complete_and_finite_means_stop(position: tuple[float, ...]) -> None:
    driver, robot = driver_with_command(age_s=0.0, position=position)
    driver.control()
    assert robot.calls == ["advance", "stop"]


class Unreadable(NotingRobot):
    """A robot one of whose answers has failed, as on a line that is cut."""

    def __init__(self, fails: str) -> None:
        super().__init__()
        self.fails = fails

    def __getattribute__(self, name: str) -> Any:
        if name == object.__getattribute__(self, "__dict__").get("fails"):
            raise RobotError(f"no answer to {name}")
        return super().__getattribute__(name)


@pytest.mark.parametrize("fails", ["advance", "read", "status"])
@pytest.mark.parametrize(("age_s", "call"), [(0.0, "command"), (0.16, "stop")])
def test_a_robot_that_cannot_be_read_gets_the_guards_word_and_stops_without_one(
    fails: str, age_s: float, call: str
) -> None:
    driver, _ = driver_with_command(age_s)
    driver.robot = robot = Unreadable(fails)
    with pytest.raises(RobotError, match=f"no answer to {fails}"):
        driver.control()
    assert robot.calls[-1] == call


def test_starting_never_commands_and_stopping_stops() -> None:
    driver = Driver(robot="nodes.sim.robot:SimRobot", robot_params={"seed": 2})
    driver.on_start()
    assert driver.robot is not None
    assert driver.robot.read(0).position == pytest.approx(STOW)
    driver.robot = robot = NotingRobot()
    driver.on_stop()
    assert robot.calls == ["stop", "close"]


@pytest.mark.parametrize("name", ["nodes.nowhere:Robot", "nodes.stretch.limits:Robot", "nonsense", ""])
def test_a_robot_that_cannot_be_loaded_is_named(name: str) -> None:
    with pytest.raises(UserError, match='expected "module:Class"'):
        make_robot(name, {})


def test_parameters_that_the_robot_does_not_take_are_refused() -> None:
    with pytest.raises(UserError, match=pattern("robot.no_such_params")):
        make_robot("nodes.sim.robot:SimRobot", {"colour": "red"})


def test_it_homes_when_the_guard_says_so_and_tells_what_the_robot_refuses(caplog: pytest.LogCaptureFixture) -> None:
    driver, robot = driver_with_command(age_s=1.0)
    driver.control()
    driver.serve(DriverOrder(verb="home", why="asked for by Ann"))
    assert robot.calls[-1] == "home"
    driver.serve(DriverOrder(verb="stow", why="asked for by Ann"))
    assert sentence("robot.refused_by_the_robot", what="stow", who="Ann", why="not now") in caplog.text


def test_a_runstop_by_the_guard_waits_for_nothing() -> None:
    driver, robot = driver_with_command(age_s=0.0)
    driver.press(DriverOrder(verb="runstop", why="a test"))
    driver.press(DriverOrder(verb="release", why="a test"))
    assert robot.calls == ["runstop", "release"]


def test_a_guard_in_another_process_is_refused_before_the_start() -> None:
    apart = Graph([NodeSpec("driver", Driver), NodeSpec("guard", Guard, process="robot")]).process_problems()
    assert len(apart) == 4  # with what the guard says of itself
    assert apart[0] == (
        "driver",
        sentence("robot.own_process_only", topic="robot/command", node="driver", other="guard", process="robot"),
    )
    beside = Graph([NodeSpec("driver", Driver, process="robot"), NodeSpec("guard", Guard, process="robot")])
    assert beside.process_problems() == []


def test_the_status_is_published_five_times_a_second() -> None:
    driver, _ = driver_with_command(age_s=0.0)
    for _ in range(50):
        driver.control()
    assert driver.status.sent == 5


def test_a_runstop_and_its_release_are_told_at_the_very_next_tick() -> None:
    driver, robot = driver_with_command(age_s=1.0)
    driver.control()
    assert driver.status.sent == 1
    robot.stop = lambda: None  # type: ignore[method-assign]  # what was called last is the button then
    robot.advance = lambda now_ns: None  # type: ignore[method-assign]  # the same
    driver.press(DriverOrder(verb="runstop", why="a test"))
    driver.control()
    assert driver.status.sent == 2
    driver.control()
    assert driver.status.sent == 2, "news, not again"
    driver.press(DriverOrder(verb="release", why="a test"))
    driver.control()
    assert driver.status.sent == 3


class Eye(Node):
    """A camera of 10 Hz."""

    image = Publisher(Image, "head/image")

    @every(hz=10)
    def see(self) -> None:
        self.image.publish(Image(camera="head", captured_ns=self.clock.now_ns(), rgb=np.zeros((1, 1, 3), np.uint8)))


class Follower(Node):
    """A policy that looks and wants the robot to stay as it is."""

    image = Subscription(Image, "head/image")
    state = Subscription(RobotState, "robot/state")
    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        if self.image.latest() is not None and (state := self.state.latest()) is not None:
            self.command.publish(JointCommand(position=state.position))


def test_what_the_robot_tells_hands_no_old_image_on_so_commands_do_not_grow_old() -> None:
    """The guard reads state and status, the driver the guard's commands: a loop, in which ages must not go round."""
    sim = Simulation(
        Eye(), Follower(), Driver(robot="nodes.sim.kinematic:KinematicRobot"), Guard(arm="auto", memory="run")
    )
    sim.run(seconds=3.0)
    for topic in ("robot/state", "robot/status"):
        told = sim.latest_stamped(topic)
        assert told is not None
        assert told.envelope.born_ns("image") is None, topic
    command = sim.latest_stamped("robot/command")
    assert command is not None
    assert 0 < command.envelope.published_ns - command.envelope.begun_ns("image") < 0.3e9


class AgeNotingDriver(Driver):
    """Notes how old each command is that it is about to apply."""

    ages_ns: list[int]

    @every(hz=50)
    def control(self) -> None:
        stamped = self.command.stamped()
        if stamped is not None:
            vars(self).setdefault("ages_ns", []).append(self.clock.now_ns() - stamped.envelope.published_ns)
        super().control()


def test_each_command_of_the_guard_is_applied_once_half_a_period_after_it_was_made() -> None:
    """In one phase the two would race: one tick would find two commands and the next none."""
    driver = AgeNotingDriver(robot="nodes.sim.kinematic:KinematicRobot")
    sim = Simulation(Eye(), Follower(), driver, Guard(arm="auto", memory="run"))
    sim.run(seconds=3.0)
    assert len(driver.ages_ns) > 100
    assert set(driver.ages_ns) == {10_000_000}
    assert driver.command.dropped["overwritten"] == 0


def test_a_robot_that_fails_to_stop_is_closed_all_the_same() -> None:
    class Stubborn(NotingRobot):
        def stop(self) -> None:
            raise RobotError("the wheels do not answer")

    driver = Driver()
    robot = driver.robot = Stubborn()
    with pytest.raises(RobotError, match="the wheels do not answer"):
        driver.on_stop()
    assert robot.calls[-1] == "close"


class RealRobot(NotingRobot):
    """What says of itself that it is no simulation, and knows its joints only once it is made."""

    is_hardware = True


class Silent:
    """A robot that does not say whether it is a real one."""


for name in METHODS:
    setattr(Silent, name, getattr(NotingRobot, name, lambda *_: None))


class Vague(NotingRobot):
    """A robot that says it in a way that nobody understands: a property, say, or a word."""

    is_hardware = "no"


class Asking(NotingRobot):
    """A robot whose class cannot be asked."""

    @property
    def is_hardware(self) -> bool:
        return False


@pytest.mark.parametrize("robot", [Silent, Vague, Asking])
def test_a_class_that_does_not_say_whether_it_is_real_is_told_by_a_check_and_counts_as_real(robot: Any) -> None:
    driver = Driver(named(robot))
    assert driver.problems() == [f"robot '{named(robot)}' {sentence('robot.says_not_whether_real')}"]
    assert driver.devices() == ("robot stretch_3",)
    with pytest.raises(UserError, match=pattern("robot.says_not_whether_real")):
        Simulation(Driver(named(robot))).run(seconds=0.1)


class OtherRobot(NotingRobot):
    """A robot with one joint less than a Stretch."""

    limits = replace(STRETCH_3, joints=STRETCH_3.joints[1:])

    def __init__(self) -> None:
        self.calls = []


def named(robot: type[NotingRobot]) -> str:
    return f"{robot.__module__}:{robot.__name__}"


def test_a_real_robot_is_claimed_by_the_name_of_its_limits_and_a_simulated_one_by_nobody() -> None:
    assert Driver(named(RealRobot), limits="nodes.stretch.limits:STRETCH_3").devices() == ("robot stretch_3",)
    assert Driver(named(RealRobot)).devices() == ("robot stretch_3",)
    assert Driver(named(NotingRobot)).devices() == ()
    assert Driver().devices() == ()


def test_a_real_robot_does_not_wait_for_virtual_time_and_starts_in_real_time() -> None:
    sim = Simulation(Driver(named(RealRobot)))
    with pytest.raises(UserError, match=f"^node driver: robot '{named(RealRobot)}' is a real one"):
        sim.run(seconds=0.1)
    real = Driver(named(RealRobot))
    real.on_start()
    assert isinstance(real.robot, RealRobot)
    assert real.robot.calls == ["start"]
    simulated = Simulation(Driver(named(NotingRobot)))
    simulated.run(seconds=0.1)


def test_a_robot_with_other_joints_than_its_limits_say_is_told_by_a_check_and_at_the_start() -> None:
    names = [joint.name for joint in STRETCH_3.joints]
    other = sentence("robot.other_joints", joints=", ".join(names[1:]), told=", ".join(names))
    words = f"robot '{named(OtherRobot)}' {other}"
    driver = Driver(named(OtherRobot))
    [problem] = driver.problems()
    assert problem.startswith(words)
    with pytest.raises(UserError, match=f"^node {driver.name}: {words}"):
        driver.on_start()
    assert driver.robot is not None, "so that it is closed"
    driver = Driver(named(RealRobot), {"limits": STRETCH_3})  # type: ignore[dict-item]  # what no launch file can say
    assert driver.problems() == []


class Linked(NotingRobot):
    """A robot that says which libraries it loads."""

    libraries = ("a_robot_library",)


class Lacking(NotingRobot):
    """A robot that finds out what it lacks, such as a library for another Python."""

    @staticmethod
    def libraries() -> tuple[str, ...]:
        return ("another",)


def test_the_libraries_that_a_robot_loads_are_known_before_it_is_made() -> None:
    assert Driver(named(Linked)).libraries() == ("a_robot_library",)
    assert Driver(named(Lacking)).libraries() == ("another",), "a function finds out"
    assert Driver(named(NotingRobot)).libraries() == ()


SIX = replace(STRETCH_3, joints=STRETCH_3.joints[:6])


class Mute(NotingRobot):
    """A robot that says nothing of its limits."""

    def __init__(self) -> None:
        self.calls = []


def test_a_command_has_as_many_positions_as_the_limits_have_joints() -> None:
    driver = Driver(named(NotingRobot), limits=f"{__name__}:SIX")
    robot = driver.robot = NotingRobot()
    for joints, done in ((8, "stop"), (6, "command")):
        driver.command = driver_with_command(age_s=0.0, position=STOW[:joints])[0].command
        driver.control()
        assert robot.calls[-1] == done


def test_a_robot_that_says_nothing_of_its_limits_is_taken_at_its_guards_word() -> None:
    driver = Driver(named(Mute))
    driver.on_start()
    assert isinstance(driver.robot, Mute)


def test_it_says_once_that_commands_arrive_and_once_that_they_do_not(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    silent = Driver()
    silent.robot = NotingRobot()
    silent.control()
    assert caplog.records == []
    driver, _ = driver_with_command(age_s=0.0)
    driver.control()
    driver.control()
    said = [record.getMessage() for record in caplog.records]
    assert said == ["commands arrive"]
    stale, _ = driver_with_command(age_s=1.0)
    driver.command = stale.command
    for _ in range(3):
        driver.control()
    said = [record.getMessage() for record in caplog.records]
    assert said == ["commands arrive", sentence("robot.stands_still")]


class Moody(NotingRobot):
    """A robot whose mode and reason are set from outside."""

    mode: RobotMode = "ready"
    why = ""

    def status(self, now_ns: int) -> RobotStatus:
        return RobotStatus(read_ns=now_ns, mode=self.mode, why=self.why)


def test_what_the_robot_says_of_itself_is_in_the_log_once_and_a_ready_one_at_first_is_no_news(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    driver = Driver()
    robot = driver.robot = Moody()

    def said() -> list[str]:
        driver.control()
        found = [record.getMessage() for record in caplog.records if record.getMessage().startswith("robot: ")]
        caplog.clear()
        return found

    assert said() == []
    robot.mode, robot.why = "runstopped", "its button"
    assert said() == ["robot: runstopped: its button"]
    assert said() == []
    robot.mode, robot.why = "ready", ""
    assert said() == ["robot: ready"]
    robot.mode = "runstopped"
    assert said() == ["robot: runstopped"]
    robot.mode = "ready"
    assert said() == ["robot: ready"]


def test_without_a_robot_nothing_is_asked_of_it() -> None:
    driver = Driver()
    driver.control()
    driver.serve(DriverOrder(verb="home", why="a test"))
    driver.press(DriverOrder(verb="runstop", why="a test"))
    driver.on_stop()
    assert (driver.state.sent, driver.status.sent) == (0, 0)


@pytest.mark.parametrize(
    ("robot", "params", "words"),
    [
        ("nosuch:Robot", {}, sentence("robot.cannot_be_loaded", why="No module named 'nosuch'")),
        ("nodes.hello:Talker", {}, sentence("robot.is_no_robot", methods="start, read, status")),
        ("nodes.sim.kinematic:KinematicRobot", {"nope": 1}, "got an unexpected keyword argument 'nope'"),
    ],
)
def test_what_is_no_robot_is_known_before_the_start(robot: str, params: dict[str, int], words: str) -> None:
    [problem] = Driver(robot, dict(params)).problems()
    assert words in problem


def test_a_robot_that_is_one_is_neither_made_nor_moved_by_a_check() -> None:
    for robot in (
        "nodes.sim.kinematic:KinematicRobot",
        "bridges.stretch.robot:StretchRobot",
        "nodes.sim.robot:SimRobot",
    ):
        assert Driver(robot).problems() == []
    assert set(METHODS) == {name for name in vars(Robot) if not name.startswith("_") and callable(vars(Robot)[name])}


def test_a_simulation_that_waited_for_others_to_load_is_not_behind(caplog: pytest.LogCaptureFixture) -> None:
    driver = SimDriver()
    driver.on_start()
    robot = driver.robot
    assert isinstance(robot, SimRobot)
    robot.skipped_s = 5.0
    driver.control()
    driver.show_world()
    assert "behind real time" not in caplog.text
    robot.skipped_s = 5.5
    driver.control()
    driver.show_world()
    assert "the simulation is behind real time and has left out 0.50 s so far" in caplog.text
    driver.on_stop()


class Unsteady(NotingRobot):
    """Is lost again and again."""

    modes: tuple[RobotMode, ...] = ("lost", "ready", "lost", "lost", "ready")

    def status(self, now_ns: int) -> RobotStatus:
        mode, *rest = self.modes
        self.modes = (*rest, mode)
        return RobotStatus(read_ns=now_ns, mode=mode, why="its cable")


def test_a_robot_that_was_there_and_is_lost_is_one_loss_and_so_many_are_kept() -> None:
    driver, _ = driver_with_command(age_s=0.0)
    driver.robot = Unsteady()
    losses = []
    for _ in range(10 * MOST_TOLD):
        driver.control()
        losses.append(len(driver.losses()))
    assert losses[:6] == [0, 0, 1, 1, 1, 2]
    assert losses[-1] == MOST_TOLD
    assert all("its cable" in loss for loss in driver.losses())
