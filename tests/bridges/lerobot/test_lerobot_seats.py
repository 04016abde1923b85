"""A leader of LeRobot's leads only from where the arm is, and its cameras are cameras: in runs as people start them."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from bridges.lerobot.device import LeRobotDevice
from bridges.lerobot.hand_teleop import LeRobotHandTeleop
from bridges.lerobot.teleop import LeaderState, LeRobotTeleop
from nodes.camera.webcam import CameraState
from nodes.msgs import JointCommand, RobotState
from nodes.recording.bag.recording import Recording
from nodes.robot.protocol import RobotError
from nodes.robot_file.body import body_of_file
from runtime import UserError
from runtime.command_line.attach import StopSignal, hear
from runtime.serialization.codec import decode
from runtime.supervision.registry import device_folder
from tests.bridges.lerobot.test_lerobot_robot import facts
from tests.support.guard.driving import driven, driver_and_guard
from tests.support.lerobot import environment
from tests.support.running import Runs, eventually
from tests.support.sentences import pattern, sentence

LAUNCH = """
[run]
robot = "{facts}"
[nodes.reflex]
use = "nodes.interrupts.reflex:Reflex"
process = "robot"
[nodes.leader]
use = "bridges.lerobot.teleop:LeRobotTeleop"
[nodes.leader.params]
facts = "{facts}"
device = "bus_leader"
settings = {{ folder = "{leader}", fault = "motors" }}
python = "{python}"
motor_speed = 0.6
[nodes.camera]
use = "bridges.lerobot.camera:LeRobotCamera"
params = {{ device = "bus_camera", settings = {{ folder = "{leader}" }}, python = "{python}", fps = 20.0 }}
[nodes.recorder]
use = "nodes.recording.recorder:Recorder"
params = {{ path = "{bag}" }}
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return environment(tmp_path_factory.mktemp("lerobot"))


@pytest.mark.processes
def test_a_leader_s_motors_bring_it_to_the_arm_first_and_then_it_leads_within_limits_and_cameras_see(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, bag = tmp_path / "leader", tmp_path / "run.mcap"
    leader.mkdir()
    shutil.rmtree(device_folder() / "robots" / "bus", ignore_errors=True)  # what is latched on a real robot stays
    launch = tmp_path / "arm.toml"
    robot = facts(tmp_path)
    arm = driven("bridges.lerobot.robot:LeRobotRobot", f'facts = "{robot}", python = "{python}"')
    tables = driver_and_guard(arm, 'memory = "run"')
    launch.write_text(LAUNCH.format(facts=robot, leader=leader, python=python, bag=bag) + tables)
    place, log = leader / "leader", tmp_path / "log"
    place.write_text(json.dumps({"shoulder_pan": 60.0}))
    with Runs(monkeypatch) as runs:
        run = runs.start(launch, log)
        eventually(lambda: sentence("bridges.lerobot_bring_it_near") in log.read_text(), "the leader is far away")
        arming = [sys.executable, "-m", "runtime", "guard", "arm", "--run", run.info.name]
        eventually(lambda: subprocess.run(arming, capture_output=True).returncode == 0, "it is armed", 20.0)
        eventually((tmp_path / "goals").exists, "the guard holds the arm")
        lines = (tmp_path / "goals").read_text().splitlines()[:-1]
        near = math.degrees(0.1) + 1.0  # within the tolerance it leads, and it comes no further by itself
        assert all(abs(json.loads(line)[2]["shoulder_pan.pos"]) < near for line in lines)
        eventually(lambda: "the leader leads" in log.read_text(), "the leader leads")
        brought = [json.loads(line) for line in (leader / "brought").read_text().splitlines()]
        assert brought[0] > 60 - math.degrees(0.6 * 0.15) - 1.0
        assert max(a - b for a, b in pairwise(brought)) < math.degrees(0.6 * 0.15) + 1.0
        place.write_text(json.dumps({"shoulder_pan": 45.0}))  # at 300 deg per s

        def is_there() -> bool:
            goals = (tmp_path / "goals").read_text().splitlines() if (tmp_path / "goals").exists() else []
            return bool(goals) and json.loads(goals[-1])[1]["shoulder_pan"] > 40.0

        eventually(is_there, "the arm is where the leader is")
        eventually(
            lambda: len((leader / "looked").read_text()) > 10 if (leader / "looked").exists() else False, "it sees"
        )
    recording = Recording(bag)
    told = [message for message in recording if message.topic in ("leader", "command", "robot/state", "robot/command")]
    far = [message for message in told if message.topic == "leader" and not message.message(LeaderState).is_engaged]
    assert max(max(one.message(LeaderState).away, default=0.0) for one in far) == pytest.approx(
        60 * 0.0174533, abs=0.05
    )
    asked = [message.message(JointCommand).position[0] for message in told if message.topic == "command"]
    sent = [message.message(JointCommand).position[0] for message in told if message.topic == "robot/command"]
    assert max(asked) > 0.7
    assert max(b - a for a, b in pairwise(sent)) < 0.05  # 1 rad/s, 50 Hz, and a late tick
    for message in told:
        if message.topic == "robot/state":
            age_s = (message.envelope.published_ns - message.message(RobotState).read_ns) * 1e-9
            assert 0.006 < age_s < 0.5
    assert sum(message.topic == "head/image" for message in recording) > 5
    live = [message.message(CameraState).is_live for message in recording if message.topic == "head/camera"]
    assert live[0]


@pytest.mark.processes
def test_a_leader_with_other_joints_is_refused(python: str, tmp_path: Path) -> None:
    node = LeRobotTeleop(facts(tmp_path), "bus_leader", {"folder": str(tmp_path), "fault": "other"}, python)
    with pytest.raises(UserError, match=pattern("bridges.lerobot_leader_has_other_joints")):
        node.on_start()


@pytest.mark.processes
def test_a_gamepad_and_a_leader_are_refused_before_they_are_connected_where_the_other_belongs(
    python: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=pattern("bridges.lerobot_gives_no_joints")):
        LeRobotTeleop(facts(tmp_path), "bus_gamepad", {"folder": str(tmp_path)}, python).on_start()
    with pytest.raises(RobotError, match=pattern("bridges.lerobot_gives_no_hand")):
        LeRobotDevice("hand", "bus_leader", {"folder": str(tmp_path)}, python).open()
    assert not (tmp_path / "connected").exists()


PADDED = """
[run]
robot = "{robot}"
[nodes.hand]
use = "bridges.lerobot.hand_teleop:LeRobotHandTeleop"
params = {{ device = "bus_gamepad", settings = {{ folder = "{folder}" }}, python = "{python}" }}
[nodes.recorder]
use = "nodes.recording.recorder:Recorder"
params = {{ path = "{folder}/run.mcap" }}
"""
ARM = "nodes.arm:arm.toml"


@pytest.mark.processes
def test_a_gamepad_moves_the_hand_along_its_axes_within_limits_once_it_was_let_go_of(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch, held, log = tmp_path / "padded.toml", tmp_path / "held", tmp_path / "log"
    tables = driver_and_guard(driven("nodes.sim.file_robot:FileRobot", f'file = "{ARM}"'))
    launch.write_text(PADDED.format(robot=ARM, folder=tmp_path, python=python) + tables)
    body = body_of_file(ARM)
    held.write_text(json.dumps({"delta_z": -1.0, "gripper": 2}))
    with Runs(monkeypatch) as runs:
        run = runs.start(launch, log)
        eventually(lambda: sentence("bridges.lerobot_let_go_once") in log.read_text(), "it is held from the beginning")
        held.unlink()
        eventually(lambda: "hand: the hand follows" in log.read_text(), "it was let go of")
        held.write_text(json.dumps({"delta_z": 1.0, "gripper": 2}))
        low_m = 0.0
        with StopSignal() as stop:
            for arrival in hear(run, ["robot/state"], stop, for_s=30.0):
                if arrival is not None:
                    at_m = body.hand(decode(arrival.frames, RobotState).message.position).place[2]
                    low_m = low_m or at_m
                    if at_m > low_m + 0.05:
                        break
        held.write_text(json.dumps({"delta_x": "far"}))  # no number
        eventually(lambda: "gave no number for delta_x" in log.read_text(), "it is told")
    recording = Recording(tmp_path / "run.mcap")
    states = [one.message(RobotState) for one in recording if one.topic == "robot/state"]
    first, last = (body.hand(state.position) for state in (states[0], states[-1]))
    x_m, y_m, z_m = (last.place - first.place).tolist()
    assert 0.03 < z_m < 0.25
    assert max(abs(x_m), abs(y_m)) < 0.02
    assert states[-1].position[-1] > 0.05, "the gripper opens"
    assert min(body.hand(one.position).place[2] for one in states) > first.place[2] - 0.01, "nothing moved before"
    sent = [one.message(JointCommand).position for one in recording if one.topic == "robot/command"]
    assert max(abs(b - a) for one, two in pairwise(sent) for a, b in zip(one, two, strict=True)) < 0.1


@pytest.mark.parametrize(
    ("limits", "hand", "told"),
    [
        ("", "", pattern("bridges.lerobot_knows_no_hand")),
        ("", "nodes.arm:nobody", "nobody"),
        ("bus.lerobot.toml", "", pattern("bridges.lerobot_no_model")),
    ],
)
def test_a_hand_that_nobody_knows_to_move_is_told_before_anything_is_connected(
    limits: str, hand: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts(tmp_path)
    monkeypatch.chdir(tmp_path)
    LeRobotHandTeleop("bus_gamepad", hand="nodes.policy.stretch_hand:STRETCH_HAND")
    with pytest.raises(UserError, match=told):
        LeRobotHandTeleop("bus_gamepad", hand=hand, limits=limits)
