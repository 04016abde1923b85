"""The first hour on a Stretch 4: every step above a simulated body, and what the doctor tells of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridges.stretch.bringup import Progress, Refused, main, report
from bridges.stretch4.bringup import Stretch4Bringup
from bridges.stretch4.doctor import examine
from bridges.stretch4.link import endpoints
from tests.bridges.stretch4.fake_stretch4 import DirectLink, World
from tests.bridges.stretch4.test_robot import FourBench
from tests.support.sentences import pattern, sentence


class BenchClock:
    """The bench's time, which passes where somebody waits."""

    def __init__(self, bench: FourBench) -> None:
        self.bench = bench

    def now_ns(self) -> int:
        return self.bench.now_ns

    def since_s(self, stamp_ns: int) -> float:
        return (self.bench.now_ns - stamp_ns) * 1e-9

    def block(self, seconds: float) -> None:
        self.bench.pass_time(seconds)


class Person:
    """Does what is asked for, and remembers it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.asked: list[str] = []

    def __call__(self, what: str) -> None:
        self.asked.append(what)
        if what == "press the runstop":
            self.world.press(True)
        elif what.startswith("hold it"):
            self.world.press(False)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> FourBench:
    bench = FourBench()
    monkeypatch.setattr("bridges.stretch.bringup.CLOCK", BenchClock(bench))
    return bench


def test_it_goes_through_all_steps_sideways_too_and_leaves_the_robot_where_it_was(bench: FourBench) -> None:
    bench.unhome()
    bench.robot.start(bench.now_ns)
    before, saved = bench.drift(0.1), [0]
    person, progress = Person(bench.world), Progress("robot")
    bringup = Stretch4Bringup(bench.robot, progress, person)
    assert list(bringup.steps()) == ["machine", "robot", "runstop", "home", "dry-run", "joints", "base", "stops"]
    bringup.run([step for step in bringup.steps() if step != "machine"], lambda: saved.append(1))
    assert [step.is_done for step in progress.steps] == [True] * 7 == [bool(one) for one in saved[1:]]
    after = bench.robot.read(bench.now_ns)
    assert after.position == pytest.approx(before.position, abs=0.02)
    assert (after.base_x_m, after.base_y_m) == pytest.approx((before.base_x_m, before.base_y_m), abs=0.02)
    assert any(sentence("bridges.base_drives", where="to the left") in what for what in person.asked)
    assert any("39 mm" in what and "ruler" in what for what in person.asked), "the maker's number beside ours"
    assert {stop.joint: stop.seconds < 1.0 for stop in progress.stops} == dict.fromkeys(
        ("lift", "arm", "wrist_yaw", "base", "sideways"), True
    )
    assert all(0.0 < stop.way < 0.05 for stop in progress.stops if stop.joint != "wrist_yaw")
    assert "| sideways | 0.030 |" in report(progress)


def test_homing_that_failed_ends_it(bench: FourBench) -> None:
    bench.unhome()
    bench.world.fails = True
    bench.robot.start(bench.now_ns)
    bringup = Stretch4Bringup(bench.robot, Progress("robot"), Person(bench.world))
    with pytest.raises(Refused, match=f"{pattern('bridges.not_homed')}: routine_robot_home failed"):
        bringup.run(["home"], lambda: None)
    bench.close()


@pytest.mark.parametrize("wrong", ["a gamepad", "a pause", "an alert"])
def test_a_robot_that_somebody_else_has_or_that_warns_is_refused_before_anything_moves(
    bench: FourBench, wrong: str
) -> None:
    bench.robot.start(bench.now_ns)

    def ask(what: str) -> None:
        bench.other("gamepad_7", 1)

    bringup = Stretch4Bringup(bench.robot, Progress("robot"), ask)
    if wrong == "a pause":
        bench.world.state = "PAUSED"
    elif wrong == "an alert":
        bench.world.alerts = {"low_soc_alert": True}
    else:
        bench.run(1.5)
    says = {"a gamepad": "gamepad_7 commands it", "a pause": "PAUSED", "an alert": "low battery"}
    with pytest.raises(Refused, match=says[wrong]):
        bringup.run(["joints" if wrong == "a gamepad" else "robot"], lambda: None)
    assert all(joint.speed == 0.0 for joint in bench.world.joints.values())
    bench.close()


def test_a_computer_without_the_makers_server_and_a_step_that_this_robot_has_not_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bridges.stretch4.bringup.endpoints", lambda: endpoints(folder=str(tmp_path)))
    asked = ["stretch4", "--yes", "--out", str(tmp_path / "out"), "--only"]
    assert main([*asked, "machine"]) == 1
    assert "stretch_body_server --launch" in (told := capsys.readouterr().err)
    assert told.endswith("go on with: polyrhythm bringup stretch4\n")
    assert main([*asked, "calibrate"]) == 2
    assert "stretch4 has no step calibrate; it has machine, robot, " in capsys.readouterr().err


def test_the_doctor_tells_of_the_server_and_that_the_grippers_metres_are_an_assumption() -> None:
    world = World()
    findings = {finding.subject: finding for finding in examine(DirectLink(world))}
    assert (findings["robot"].level, findings["robot"].text) == ("ok", "ready")
    assert findings["server"].text.startswith("RUNNING")
    assert findings["lift"].text.startswith("0.000 to 1.200")
    assert findings["gripper"].level == "note"
    assert "formula says 39 mm, and that it is a simplification: measure with a ruler" in findings["gripper"].text
    world.state = "PAUSED"
    assert {finding.subject for finding in examine(DirectLink(world)) if finding.level == "problem"} == {
        "server",
        "robot",
    }
