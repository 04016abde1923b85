"""The first hour on a robot: what it refuses, what it keeps, and what it calibrates; no robot is needed here."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from bridges.stretch.bringup import STEPS, BringupStep, Progress, Refused, Stop, StretchBringup, main, report
from bridges.stretch.calibration import Calibration, load, save
from bridges.stretch.onboard.words import Reading
from bridges.stretch.robot import StretchRobot
from nodes.robot.protocol import RobotError
from runtime.clock import SystemClock
from runtime.errors import UserError
from runtime.supervision.registry import Claims
from tests.bridges.stretch import fake_stretch_body
from tests.bridges.stretch.fake_stretch_body import World, install
from tests.bridges.stretch.test_robot import InProcess
from tests.support.sentences import sentence


def test_a_machine_without_a_robots_configuration_is_refused_and_can_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bridges.stretch.bringup.found_python", lambda: "/usr/bin/python3.10")
    monkeypatch.setenv("HELLO_FLEET_PATH", str(tmp_path))
    monkeypatch.setenv("HELLO_FLEET_ID", "stretch-se3-0000")
    assert main(["stretch", "--only", "machine", "--yes", "--out", str(tmp_path / "out")]) == 1
    assert "stretch_configuration_params.yaml" in capsys.readouterr().err
    kept = msgspec.json.decode((tmp_path / "out" / "stretch-se3-0000.json").read_bytes(), type=Progress)
    assert [(step.name, step.is_done) for step in kept.steps] == [("machine", False)]
    assert "not done" in (tmp_path / "out" / "stretch-se3-0000.md").read_text()


def test_what_is_done_is_not_done_again_and_the_first_refusal_ends_it() -> None:
    done: list[str] = []

    class Told(StretchBringup):
        def home(self) -> None:
            done.append("home")

        def joints(self) -> None:
            done.append("joints")
            raise Refused("it is in the way")

        def base(self) -> None:
            done.append("base")

    saved: list[int] = []
    progress = Progress("robot", steps=[BringupStep("home", is_done=True)])
    bringup = Told(StretchRobot(python="/nowhere"), progress, print)
    with pytest.raises(Refused, match="in the way"):
        bringup.run(["home", "joints", "base"], lambda: saved.append(1))
    assert done == ["joints"]
    assert saved == [1]
    assert [step.is_done for step in progress.steps] == [True, False]
    assert tuple(bringup.steps()) == STEPS


def test_the_report_has_the_stops_that_were_measured() -> None:
    text = report(Progress("stretch-se3-1", stops=[Stop("lift", 0.02, 0.12, 0.0014)]))
    assert "| lift | 0.020 | 0.120 | 0.0014 |" in text


def test_a_grasp_is_more_effort_than_empty_at_the_same_place(tmp_path: Path) -> None:
    usual = Calibration()
    assert usual.is_grasping(40.0, -18.0)
    assert not usual.is_grasping(40.0, -5.0)
    assert not usual.is_grasping(-30.0, -40.0), "not measured, closed fingers may press on each other"
    measured = Calibration(empty=[(-50.0, 25.0), (0.0, 5.0), (50.0, 4.0)], grasp_percent=6.0, is_measured=True)
    assert measured.is_grasping(-40.0, -33.0)
    assert not measured.is_grasping(-40.0, -28.0)
    assert measured.is_grasping(20.0, -12.0)
    save(tmp_path / "polyrhythm.json", measured)
    assert load(tmp_path / "polyrhythm.json") == measured
    (tmp_path / "polyrhythm.json").write_text("{")
    with pytest.raises(ValueError, match="measure again"):
        load(tmp_path / "polyrhythm.json")


def test_a_bring_up_beside_a_run_or_another_bring_up_is_refused_with_its_pid_before_the_robot_is_touched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    robot = f"stretch-of-{os.getpid()}"  # one that no other test has on this machine
    monkeypatch.setattr(StretchBringup, "claim", robot)
    monkeypatch.setattr("runtime.supervision.registry.SHARED", tmp_path)
    started: list[str] = []

    def start(self: StretchRobot, now_ns: int) -> None:
        started.append("once")
        with pytest.raises(UserError, match="is in use"):
            Claims((), "wizard", [f"robot {robot}"])
        raise RobotError("nothing is here")

    monkeypatch.setattr(StretchRobot, "start", start)
    asked = ["stretch", "--only", "robot", "--yes", "--out", str(tmp_path / "out")]
    first = Claims((), "wizard", [f"robot {robot}"])
    assert main(asked) == 2
    assert f"robot {robot} is in use: pid {os.getpid()} of " in capsys.readouterr().err
    assert started == []
    first.close()
    assert main(asked) == 1
    assert started == ["once"], "it was free, and nobody else had it meanwhile"
    Claims((), "wizard", [f"robot {robot}"]).close()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    monkeypatch.setattr("bridges.stretch.robot.calibration_file", lambda: tmp_path / "polyrhythm.json")
    return install(monkeypatch)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("model", "this is a SE2; the bridge was written for a Stretch 3"),
        ("lift", sentence("bridges.joint_ends_elsewhere", joint="lift", m="0.900", model_m=1.1)),
        ("range", sentence("bridges.joint_has_no_range", joint="arm")),
        ("battery", "the battery has 11.0 V; charge it above"),
    ],
)
def test_a_robot_that_is_not_what_it_should_be_is_refused_before_anything_moves(
    wrong: str, says: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = fake_stretch_body.Robot.__init__

    def other(self: fake_stretch_body.Robot) -> None:
        made(self)
        if wrong == "model":
            self.params["model_name"] = "SE2"
        elif wrong == "lift":
            self.lift.soft_motion_limits["current"] = [0.0, 0.9]
        elif wrong == "range":
            self.arm.soft_motion_limits["current"] = [0.3, 0.31]
        else:
            world.battery_v = 11.0

    monkeypatch.setattr(fake_stretch_body.Robot, "__init__", other)
    refused(world, ["robot"], print, says)


def test_a_runstop_in_the_middle_of_a_step_ends_it_and_the_step_is_not_done(world: World) -> None:
    def press(asked: str) -> None:
        world.is_runstopped = True

    assert refused(
        world, ["joints"], press, sentence("bridges.does_not_follow", why=sentence("bridges.runstop_is_pressed"))
    ) == [False]


class InTime(InProcess):
    """The world goes on with the machine's clock."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world, self.turned_ns = world, self.now_ns()

    def turn(self) -> Reading:
        now_ns = self.now_ns()
        self.world.advance((now_ns - self.turned_ns) * 1e-9)
        self.turned_ns = now_ns
        return super().turn()


def refused(world: World, steps: list[str], ask: Callable[[str], None], says: str) -> list[bool]:
    """Bring-up stops with that sentence, and no motor was sent anywhere."""
    robot = StretchRobot(link=InTime(world))
    robot.start(SystemClock().now_ns())
    progress = Progress("robot")
    before = [joint.pos for joint in (world.robots[0].lift, world.robots[0].arm)]
    try:
        with pytest.raises(Refused, match=re.escape(says)):
            StretchBringup(robot, progress, ask).run(steps, lambda: None)
    finally:
        robot.close()
    assert [joint.pos for joint in (world.robots[0].lift, world.robots[0].arm)] == before
    return [step.is_done for step in progress.steps]
