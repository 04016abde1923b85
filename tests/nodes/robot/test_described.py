"""`[run] robot`: one description for all nodes of a graph, and a sentence for what cannot be one."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bridges.mqtt.bridge import MqttBridge
from bridges.mqtt.payloads import telemetry_document
from nodes.guard.motion_profile import limits_of
from nodes.guard.node import Guard
from nodes.msgs import JointCommand
from nodes.robot.driver import Driver
from nodes.robot.protocol import FIXED_BASE, BaseLimit, JointLimit, RobotLimits
from nodes.robot.robot_from_launch import limits_problem, load_limits
from nodes.sim.kinematic import KinematicRobot
from nodes.stretch.limits import STRETCH_3
from runtime import Simulation
from runtime.errors import LaunchFileError, ParameterError, UserError
from runtime.launch.file import Launch, check, load
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.nodes_table import told, with_shared
from tests.support.guard.driving import driven, driver_and_guard
from tests.support.sentences import pattern, sentence

ARM = RobotLimits(joints=(JointLimit("waist", -1.0, 1.0, 0.5, 2.0), JointLimit("elbow", 0.0, 2.0, 0.4, 1.0)))
WAIST = ARM.joints[0]
odd: Any = replace  # with values that no type checker lets through
SLOW_STRETCH = replace(STRETCH_3, joints=tuple(replace(joint, speed=joint.speed / 4) for joint in STRETCH_3.joints))


class Arm(KinematicRobot):
    """Two joints, and no base."""

    limits = ARM
    folded = (0.0, 1.0)


class Changeling(Arm):
    """Tells other joints once it is started than its class has."""

    def start(self, now_ns: int) -> None:
        super().start(now_ns)
        self.limits = STRETCH_3


@pytest.fixture(autouse=True)
def lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of a lab's own, as it would be imported."""
    module: Any = ModuleType("own_lab")
    module.ARM, module.SLOW_STRETCH, module.ODD = ARM, SLOW_STRETCH, replace(ARM, joints=())
    module.Arm, module.Changeling, module.NUMBER = Arm, Changeling, 3
    monkeypatch.setitem(sys.modules, "own_lab", module)


def launch(tmp_path: Path, run: str, *, guard: str = "", driver: str = "own_lab:Arm") -> Launch:
    path = tmp_path / "own.toml"
    path.write_text(
        f"[run]\n{run}\n{driver_and_guard(driven(driver), guard)}"
        '[nodes.policy]\nuse = "tests.nodes.robot.own_robot_nodes:Far"\n'
    )
    return load(path)


def off(name: str, value: str, wanted: str = "", *, what: str = "joint 'waist'") -> str:
    return sentence("robot.number_expected", what=what, name=name, value=value, wanted=wanted)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (replace(ARM, joints=()), sentence("robot.joints_expected", what="empty")),
        (odd(ARM, joints=[WAIST]), sentence("robot.joints_expected", what="a list")),
        (odd(ARM, joints=(WAIST, "elbow")), sentence("robot.joint_limit_expected", number=1, value="'elbow'")),
        (replace(ARM, joints=(WAIST, WAIST)), sentence("robot.two_of_a_name", name="waist")),
        (
            replace(ARM, joints=(replace(WAIST, name="Waist 1"),)),
            sentence("robot.name_expected", number=0, name="'Waist 1'"),
        ),
        (replace(ARM, joints=(odd(WAIST, name=None),)), sentence("robot.name_expected", number=0, name=None)),
        (
            replace(ARM, joints=(replace(WAIST, lowest=1.0),)),
            sentence("robot.not_below", name="waist", lowest="1.0", highest="1.0"),
        ),
        (replace(ARM, joints=(replace(WAIST, lowest=math.nan),)), off("lowest", "nan", "-1000000 to 1000000 m")),
        (replace(ARM, joints=(replace(WAIST, highest=math.inf),)), off("highest", "inf")),
        (replace(ARM, joints=(replace(WAIST, speed=0.0),)), off("speed", "0.0", "0.000001 to 1000000")),
        (replace(ARM, joints=(replace(WAIST, speed=-1.0),)), off("speed", "-1.0")),
        (replace(ARM, joints=(odd(WAIST, speed="fast"),)), off("speed", "'fast'")),
        (replace(ARM, joints=(replace(WAIST, acceleration=math.nan),)), off("acceleration", "nan")),
        (replace(ARM, joints=(replace(WAIST, acceleration=1e-300),)), off("acceleration", "1e-300")),
        (replace(ARM, joints=(replace(WAIST, acceleration=True),)), off("acceleration", "True")),
        (odd(ARM, base=None), sentence("robot.base_expected")),
        (replace(ARM, base=BaseLimit(-0.1, 1.0, 0.3)), off("wheel_speed_mps", "-0.1", what="base")),
        (replace(ARM, base=BaseLimit(math.nan, 1.0, 0.3)), off("wheel_speed_mps", "nan", what="base")),
        (replace(ARM, base=BaseLimit(0.3, 0.0, 0.3)), off("acceleration_mps2", "0.0", what="base")),
        (replace(ARM, base=BaseLimit(0.3, 1.0, 0.0)), off("track_m", "0.0", what="base")),
    ],
)
def test_what_no_robot_can_have_is_told_in_a_sentence(limits: RobotLimits, words: str) -> None:
    assert words in limits_problem(limits)


@pytest.mark.parametrize("limits", [STRETCH_3, SLOW_STRETCH, ARM, replace(ARM, base=FIXED_BASE)])
def test_a_stretch_and_an_arm_that_does_not_drive_are_robots(limits: RobotLimits) -> None:
    assert limits_problem(limits) == ""


def no_limits(name: str, what: str) -> str:
    return sentence("robot.limits_expected", name=name, what=what, known="ARM, ODD, SLOW_STRETCH")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("own_lab", sentence("robot.no_limits_named", name="own_lab")),
        ("no_such_lab:ARM", sentence("robot.no_module", name="no_such_lab")),
        ("own_lab:NUMBER", no_limits("NUMBER", "is a int")),
        ("own_lab:Arm", no_limits("Arm", "is a type")),
        ("own_lab:LEG", no_limits("LEG", "is not there")),
        ("own_lab:ODD", f"'own_lab:ODD': {sentence('robot.joints_expected', what='empty')}"),
    ],
)
def test_a_name_that_leads_to_no_limits_is_refused_by_loader_guard_and_launch_file(
    name: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(ParameterError) as refusal:
        load_limits(name)
    assert words in str(refusal.value)
    with pytest.raises(ParameterError) as refusal:
        Guard(robot=name)
    assert words in str(refusal.value) or ":" not in name
    with pytest.raises(LaunchFileError) as refused:
        launch(tmp_path, f'robot = "{name}"')
    assert "own.toml: [nodes.driver] [run] robot '" in str(refused.value)
    assert words in str(refused.value)


def test_the_limits_of_the_built_in_robot_are_what_they_were() -> None:
    assert limits_of("stretch_3") == limits_of("nodes.stretch.limits:STRETCH_3") == STRETCH_3
    assert Guard().machine.limits == STRETCH_3
    with pytest.raises(ParameterError, match=pattern("guard.unknown_robot", name="tank")):
        Guard(robot="tank")


def test_the_guard_scales_the_speeds_of_ones_own_robot_too() -> None:
    half = limits_of("own_lab:ARM", 0.5)
    assert [joint.speed for joint in half.joints] == [0.25, 0.2]
    assert half.base == FIXED_BASE


def test_one_line_tells_guard_and_driver(tmp_path: Path) -> None:
    found = launch(tmp_path, 'robot = "own_lab:ARM"')
    check(found)
    nodes = found.graph.nodes
    assert (nodes["guard"].params["robot"], nodes["driver"].params["limits"]) == ("own_lab:ARM", "own_lab:ARM")
    assert nodes["policy"].params == {}
    assert with_shared(found.tables["nodes"]["guard"], Guard, {"robot": "own_lab:ARM"})["params"] == {
        "robot": "own_lab:ARM"
    }
    assert with_shared(found.tables["nodes"]["guard"], Guard, {}) == found.tables["nodes"]["guard"]


def test_a_node_that_names_another_robot_is_refused(tmp_path: Path) -> None:
    launch(tmp_path, 'robot = "own_lab:ARM"', guard='robot = "own_lab:ARM"')
    with pytest.raises(UserError, match=r"guard\] " + pattern("robot.leave_one", one="stretch_3", other="own_lab:ARM")):
        launch(tmp_path, 'robot = "own_lab:ARM"', guard='robot = "stretch_3"')


def test_a_node_that_is_made_for_other_joints_is_refused_and_stays_with_a_stretch_of_other_limits() -> None:
    class Pointer(Driver):
        made_for_joints = ("lift", "arm")

    class Stretcher(Driver):
        made_for_joints = tuple(joint.name for joint in STRETCH_3.joints)

    with pytest.raises(
        UserError, match=r"\[nodes.a\] " + pattern("robot.made_for_joints", node="Pointer", joints="lift, arm")
    ):
        told(NodeSpec("a", Pointer), {"robot": "own_lab:ARM"})
    assert told(NodeSpec("a", Stretcher), {"robot": "own_lab:SLOW_STRETCH"}).params == {
        "limits": "own_lab:SLOW_STRETCH"
    }


def test_a_robot_with_other_joints_than_its_guard_knows_is_found_before_and_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=pattern("robot.other_joints", joints="waist, elbow", told="lift, arm, .*")):
        check(launch(tmp_path, "seed = 1"))
    with pytest.raises(UserError, match=pattern("robot.other_joints", joints="lift, .*", told="waist, elbow")):
        check(launch(tmp_path, 'robot = "own_lab:ARM"', driver="nodes.sim.kinematic:KinematicRobot"))
    check(launch(tmp_path, 'robot = "own_lab:ARM"', driver="own_lab:Changeling"))
    sim = Simulation(Driver(robot="own_lab:Changeling", limits="own_lab:ARM"))
    robot = "node driver: robot 'own_lab:Changeling' "
    with pytest.raises(UserError, match=robot + pattern("robot.other_joints", joints="lift.*", told=".*")):
        sim.run(seconds=0.1)


def test_a_folded_posture_of_another_length_is_told() -> None:
    class Misfit(KinematicRobot):
        limits = ARM

    with pytest.raises(UserError, match="Misfit: " + pattern("robot.folded_expected", number=8, joints="waist")):
        Misfit()


def test_a_driver_of_another_robot_applies_commands_of_that_length_only() -> None:
    sim = Simulation(Driver(robot="own_lab:Arm", limits="own_lab:ARM"))
    states = sim.record(Driver.state)
    for _ in range(10):
        sim.publish("robot/command", JointCommand(position=(0.5,) * 8))
        sim.run(seconds=0.02)
    assert states[-1].position == (0.0, 1.0)
    for _ in range(50):
        sim.publish("robot/command", JointCommand(position=(0.1, 0.9)))
        sim.run(seconds=0.02)
    assert states[-1].position == pytest.approx((0.1, 0.9))
    sim.close()


def test_mqtt_calls_the_joints_as_their_robot_does() -> None:
    bridge = MqttBridge(limits="own_lab:ARM")
    assert told(NodeSpec("mqtt", MqttBridge), {"robot": "own_lab:ARM"}).params == {"limits": "own_lab:ARM"}
    state = Arm().read(0)
    assert telemetry_document(state, bridge.news.joints)["joints"] == {"waist": 0.0, "elbow": 1.0}
    assert MqttBridge().news.joints == tuple(joint.name for joint in STRETCH_3.joints)
