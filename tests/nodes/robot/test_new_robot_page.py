"""docs/new-robot.md: its files, written into a folder of their own, make a robot whose guard keeps its limits."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from nodes.msgs import JointCommand, RobotState
from nodes.recording.bag.recording import Recording
from nodes.robot.protocol import JointLimit
from tests.support.sentences import sentence

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "new-robot.md"
PATIENCE_S = 120.0
TICK_S = 0.02
LIMITS = (
    JointLimit("waist", -2.8, 2.8, 0.5, 2.0),
    JointLimit("shoulder", -1.5, 1.5, 0.4, 1.5),
    JointLimit("elbow", 0.0, 2.4, 0.6, 2.0),
    JointLimit("gripper", 0.0, 0.08, 0.05, 0.5),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A newcomer's folder with the files of the page."""
    place = tmp_path_factory.mktemp("newcomer")
    files = re.findall(r"^`([\w./]+)`\n\n```\w+\n(.*?)```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert [name for name, _ in files] == [
        "my_robot/limits.py", "my_robot/robot.py", "my_robot/wave.py", "wave.toml", "test_my_robot.py",
        "my_robot/slow.py"
    ]  # fmt: skip
    for name, text in files:
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text)
    (place / "my_robot" / "__init__.py").touch()
    return place


def told(folder: Path, *words: str) -> tuple[int, str]:
    """What `python -m` says there: exit code, and both outputs."""
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_check_is_content_with_the_page(folder: Path) -> None:
    code, said = told(folder, "runtime", "check", "wave.toml")
    assert code == 0, said
    assert "wave.toml: 4 nodes in 2 processes" in said
    assert "all of it fits" in said


@pytest.fixture(scope="module")
def recorded(folder: Path) -> Path:
    """What the page's virtual run recorded."""
    code, said = told(folder, "runtime", "run", "wave.toml", "--virtual", "--for", "8", "--record", "wave.mcap")
    assert code == 0, said
    return folder / "wave.mcap"


def test_the_guard_lets_through_what_the_robots_own_limits_allow_and_no_more(folder: Path, recorded: Path) -> None:
    recording = Recording(recorded)
    assert recording.joints == tuple(limit.name for limit in LIMITS)
    asked, sent, felt = [], [], []
    for message in recording:
        if message.topic == "command":
            asked.append(message.message(JointCommand).position)
        elif message.topic == "robot/command":
            sent.append(message.message(JointCommand).position)
        elif message.topic == "robot/state":
            felt.append(message.message(RobotState).position)
    assert max(position[0] for position in asked) > 2.65, "the policy asks for too much"
    for place, limit in enumerate(LIMITS):
        way = [position[place] for position in sent]
        speeds = [(then - before) / TICK_S for before, then in pairwise(way)]
        changes = [(then - before) / TICK_S for before, then in pairwise(speeds)]
        assert limit.lowest - 1e-9 <= min(way) <= max(way) <= limit.highest + 1e-9, limit.name
        assert max(map(abs, speeds)) <= limit.speed + 1e-6, limit.name
        assert max(map(abs, changes)) <= limit.acceleration + 1e-6, limit.name
        assert limit.lowest <= felt[-1][place] <= limit.highest, limit.name
    assert max(abs(then[0] - before[0]) / TICK_S for before, then in pairwise(sent)) == pytest.approx(0.5)
    code, why = told(folder, "runtime", "bag", "why", "wave.mcap", "--at", "5")
    assert code == 0, why
    assert "waist -2.624" in why
    assert "waist 0.302" in why


@pytest.mark.long
def test_what_is_made_of_a_recording_calls_the_joints_by_their_names(folder: Path, recorded: Path) -> None:
    names = [limit.name for limit in LIMITS]
    code, said = told(folder, "runtime", "bag", "export", recorded.name, "--to", "lerobot", "--out", "dataset")
    assert code == 0, said
    features = json.loads((folder / "dataset" / "meta" / "info.json").read_text())["features"]
    assert features["action"]["names"] == [*names, "base_v", "base_w"]
    assert features["observation.state"]["shape"] == [7]
    again = ("runtime", "replay", recorded.name, "--in-place-of", "policy", "--virtual", "--out", "again")
    code, said = told(folder, *again)
    assert code == 0, said
    assert Recording(folder / "again" / "run.mcap").joints == tuple(names)


@pytest.mark.long
def test_it_runs_in_real_time_and_in_processes(folder: Path) -> None:
    code, said = told(folder, "runtime", "run", "wave.toml", "--for", "5")
    assert code == 0, said
    assert "moving: commanded by policy" in said


def test_the_suite_passes_and_skips_only_what_the_robot_has_not(folder: Path) -> None:
    code, said = told(folder, "pytest", "-q", "-rs", "-p", "no:cacheprovider", "test_my_robot.py")
    assert code == 0, said
    assert "3 skipped" in said
    assert f"{sentence('robot.drives_not')}\n" in said
    assert f"{sentence('robot.drives_not_sideways')}\n" in said


def test_a_class_with_other_joints_than_the_guard_is_told_of_is_found_by_check(folder: Path) -> None:
    stretch = 'driver.robot="nodes.sim.kinematic:KinematicRobot"'
    code, said = told(folder, "runtime", "check", "wave.toml", "--set", stretch)
    assert code == 2
    assert "has the joints lift, arm, " in said
    assert "but its guard is told of waist, shoulder, elbow, gripper" in said


def test_a_stretch_of_other_limits_fits_the_shipped_graph(folder: Path) -> None:
    code, said = told(folder, "runtime", "check", "laptop", "--set", "run.robot=my_robot.slow:SLOW_STRETCH")
    assert code == 0, said
    assert "all of it fits" in said
    code, said = told(folder, "runtime", "check", "laptop", "--set", "run.robot=my_robot.limits:LIMITS")
    assert code == 2
    assert "LocalVLM looks along the robot's body" in said
