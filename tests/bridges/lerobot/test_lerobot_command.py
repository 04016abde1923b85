"""`polyrhythm lerobot` makes its environment once and writes the facts of an arm, or says what lacks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bridges.lerobot.command import main
from bridges.lerobot.doctor import examine
from bridges.lerobot.facts import read_facts
from nodes.robot.protocol import RobotError
from runtime import UserError
from tests.support.lerobot import environment, wheel
from tests.support.sentences import pattern, sentence


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return environment(tmp_path_factory.mktemp("lerobot"))


def words(python: str, folder: Path, *more: str) -> list[str]:
    out = str(folder / "bus.lerobot.toml")
    return ["facts", "bus_follower", "--python", python, "--set", f"folder={folder}", "--out", out, *more]


WHOLE = (
    "--gripper",
    "gripper.pos",
    "--gripper-m",
    "0.08",
    "--connecting-moves",
    "no",
    "--acceleration",
    "4",
    "--speed",
    "1",
)


@pytest.mark.processes
def test_what_nobody_knows_is_asked_for_all_at_once_and_nothing_is_written(python: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        main(words(python, tmp_path, "--gripper", "gripper.pos"))
    told = str(refused.value)
    for option in ("--speed shoulder_pan=", "--acceleration elbow_flex=", "--gripper-m gripper=", "--connecting-moves"):
        assert option in told
    assert not (tmp_path / "bus.lerobot.toml").exists()
    assert not (tmp_path / "goals").exists()


@pytest.mark.processes
def test_ranges_come_from_the_calibration_and_the_file_can_be_read(python: str, tmp_path: Path) -> None:
    assert main(words(python, tmp_path, *WHOLE, "--speed", "gripper=0.1")) == 0
    facts = read_facts(str(tmp_path / "bus.lerobot.toml"))
    assert not facts.connecting_moves
    pan, elbow, gripper = facts.joints.values()
    assert (pan.lowest, pan.highest) == pytest.approx((-1.5708, 1.5708), abs=1e-4)  # 2048 of 4096 steps
    assert elbow.ours(100.0) == pytest.approx(1.5708, abs=1e-4)  # its -100 to 100 are the same half turn
    assert (gripper.lowest, gripper.highest, gripper.ours(50.0)) == pytest.approx((0.0, 0.08, 0.04))
    assert (pan.speed, gripper.speed) == (1.0, 0.1)
    with pytest.raises(UserError):
        main(words(python, tmp_path, *WHOLE))  # it is there, and nothing is written over


@pytest.mark.processes
@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--speed", "wrist=1"), pattern("bridges.lerobot_no_joint")),
        (("--speed", "-1"), pattern("bridges.lerobot_above_0")),
        (("--gripper", "claw.pos"), pattern("bridges.lerobot_gripper_key")),
        (("--out", "arm.toml"), pattern("bridges.lerobot_ends_in")),
        (("--set", "fault=uncalibrated"), pattern("bridges.lerobot_range_lacks")),
        (("--set", "fault=no bus", "--connecting-moves", ""), pattern("bridges.lerobot_only_you_can_tell")),
    ],
)
def test_what_is_no_fact_is_refused(python: str, tmp_path: Path, more: tuple[str, ...], says: str) -> None:
    with pytest.raises(UserError, match=says):
        main(words(python, tmp_path, *WHOLE, *more))


@pytest.mark.processes
def test_an_unknown_robot_is_told_with_those_that_are_known(python: str, tmp_path: Path) -> None:
    for name, says in (
        ("so999", pattern("bridges.lerobot_unknown_robot")),
        ("bus_gamepad", pattern("bridges.lerobot_is_no_robot")),
    ):
        with pytest.raises(RobotError, match=says):
            main(["facts", name, "--python", python, "--out", str(tmp_path / "a.lerobot.toml")])


def test_without_an_environment_doctor_and_facts_say_how_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (finding,) = examine(tmp_path)
    assert finding.level == "problem"
    assert sentence("bridges.lerobot_install") in finding.text
    with pytest.raises(RobotError, match=pattern("bridges.lerobot_install")):
        main(["facts", "bus_follower", "--out", str(tmp_path / "a.lerobot.toml")])
    with pytest.raises(UserError, match=pattern("bridges.lerobot_no_such_python")):
        main(["install", "--python", "python9.9"])


@pytest.mark.long
@pytest.mark.processes
def test_install_makes_the_environment_once_and_anew_where_it_was_left_half_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    lerobot, plug = (
        str(wheel(name, version, tmp_path)) for name, version in (("lerobot", "0.6.1"), ("lerobot_robot_bus", "1.0"))
    )
    first = ["install", "--python", sys.executable, "--lerobot"]
    with pytest.raises(UserError, match=pattern("bridges.lerobot_pip_does_not")):
        main([*first, "lerobot==9"])
    assert examine(tmp_path)[0].level == "problem"
    assert main([*first, lerobot]) == 0
    made = (tmp_path / ".local/share/polyrhythm/lerobot/pyvenv.cfg").stat().st_mtime_ns
    assert "bus_follower" not in capsys.readouterr().out
    import numpy

    (packages,) = (tmp_path / ".local/share/polyrhythm/lerobot").glob("lib/python*/site-packages")
    for name in ("numpy", "numpy.libs"):
        if (found := Path(numpy.__file__).parents[1] / name).exists():
            (packages / name).symlink_to(found)
    assert main(["install", plug]) == 0
    assert "bus_follower" in capsys.readouterr().out
    assert (tmp_path / ".local/share/polyrhythm/lerobot/pyvenv.cfg").stat().st_mtime_ns == made
    assert [finding.level for finding in examine(tmp_path)] == ["ok"] * 4
