"""What viewers see of a graph: valid by Foxglove's fields, where the robot is, and whole for who begins to look."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from jsonschema import Draft202012Validator

from nodes.msgs import (
    JOINTS,
    Action,
    ActionChunk,
    GuardState,
    Image,
    Interrupt,
    JointCommand,
    RobotState,
    Scene,
    SeenObject,
    SeenPerson,
    Utterance,
    aimed_at,
)
from nodes.recording.foxglove.schemas import SCHEMAS
from nodes.recording.foxglove.typed_topics import TOPICS, TypedTopics, ViewerDocument
from nodes.sim.messages import BodyPart
from nodes.stretch.kinematics import grasp_point
from nodes.stretch.limits import STOW
from runtime.clock import to_ns
from runtime.message import Envelope, Message, Stamped
from tests.support.sentences import sentence

CUP = SeenObject(
    id="cup1", label="cup", colour="red", x_m=0.1, y_m=-0.5, z_m=0.55, width_m=0.07, height_m=0.1, u_px=8.0, v_px=6.0
)
TABLE = SeenObject(
    id="table", label="table", colour="", x_m=0.0, y_m=-0.6, z_m=0.5, width_m=0.0, height_m=0.0, u_px=0.0, v_px=0.0,
    is_place=True,
)  # fmt: skip
MIA = SeenPerson(id="mia", x_m=1.0, y_m=1.0, hand_m=(0.8, 0.5, 1.0), hand="open")
BOXES = {"guard": {"keep_in": [-1.0, 1.0, -1.0, 1.0, 0.0, 2.0], "keep_out": {"sofa": [0.5, 1.0, 0.5, 1.0, 0.0, 0.5]}}}


class Shown:
    """Everything that is made of the messages of a run, checked as it comes."""

    def __init__(self, robot: str = "", joints: tuple[str, ...] = (), parameters: Any = None) -> None:
        self.told: list[str] = []
        self.typed = TypedTopics(robot, joints, parameters or {}, wall_offset_ns=to_ns(100), tell=self.told.append)
        self.number = 0

    def of(self, message: Message, topic: str, at_s: float = 1.0) -> dict[str, Any]:
        """By topic the document that one message becomes."""
        self.number += 1
        made = self.typed.of(Stamped(message, Envelope(topic, "node", self.number, to_ns(at_s))))
        return dict(self.checked(made))

    def checked(self, made: Iterator[ViewerDocument]) -> Iterator[tuple[str, Any]]:
        for one in made:
            document = msgspec.json.decode(msgspec.json.encode(one.document))
            Draft202012Validator(msgspec.json.decode(SCHEMAS[one.schema])).validate(document)
            assert TOPICS.get(one.topic, "foxglove.CameraCalibration") == one.schema
            yield one.topic, document


def state(position: tuple[float, ...] = STOW, at_s: float = 1.0) -> RobotState:
    zero = (0.0,) * len(position)
    return RobotState(
        read_ns=to_ns(at_s), position=position, velocity=zero, effort=zero, base_x_m=1.0, base_y_m=2.0,
        base_heading_rad=0.0, base_v_mps=0.0, base_w_radps=0.0,
    )  # fmt: skip


def ids(update: Any) -> list[str]:
    return [entity["id"] for entity in update["entities"]]


def test_a_robot_is_shown_once_and_again_for_who_begins_to_look() -> None:
    shown = Shown()
    first = shown.of(state(), "robot/state")
    assert first["robot_description"]["data"].startswith('<robot name="stretch">')
    assert {"base", "lift", "finger_left"} <= set(ids(first["scene/robot"]))
    assert [joint["name"] for joint in first["joints"]["joints"]] == list(JOINTS)
    assert first["transforms"]["transforms"][0]["timestamp"] == {"sec": 101, "nsec": 0}
    assert shown.of(state(at_s=1.02), "robot/state", 1.02) == {}, "ten times a second is enough"
    again = shown.of(state(at_s=1.2), "robot/state", 1.2)
    assert set(again) == {"transforms", "joints"}
    shown.typed.begin_again()
    assert "scene/robot" in shown.of(state(at_s=1.22), "robot/state", 1.22)


def test_things_places_and_people_come_and_go() -> None:
    shown = Shown()
    made = shown.of(Scene(things=(CUP, TABLE), people=(MIA,)), "scene")
    assert ids(made["scene/things"]) == ["cup1", "table"]
    cup, table = made["scene/things"]["entities"]
    assert cup["cylinders"][0]["pose"]["position"] == {"x": 0.1, "y": -0.5, "z": 0.55}
    assert cup["texts"][0]["text"] == "red cup"
    assert table["cubes"]
    (mia,) = made["scene/people"]["entities"]
    assert mia["spheres"][0]["pose"]["position"]["z"] == 1.0
    foot = shown.of(BodyPart(part="foot", x_m=0.5, y_m=0.0, z_m=0.04), "sim/body")
    assert ids(foot["scene/people"]) == ["person mia", "part foot"]
    later = shown.of(Scene(things=(TABLE,)), "scene", 2.0)
    assert [gone["id"] for gone in later["scene/things"]["deletions"]] == ["cup1"]
    assert ids(later["scene/people"]) == ["part foot"]


def test_the_plan_shows_the_target_and_where_the_hand_goes() -> None:
    shown = Shown()
    assert shown.of(Action(id="a", skill="pick", text="pick up the red cup", arguments=aimed_at(CUP)), "action") == {}
    goal = (0.9, *STOW[1:])
    shown.of(JointCommand(position=goal), "command")
    entities = {one["id"]: one for one in shown.of(state(), "robot/state")["scene/plan"]["entities"]}
    assert entities["target"]["texts"][0]["text"] == "pick up the red cup"
    end = entities["way of the hand"]["lines"][0]["points"][-1]
    x, y, z = grasp_point(goal)
    assert (end["x"], end["y"], end["z"]) == pytest.approx((1.0 + x, 2.0 + y, z), abs=2e-3)
    chunk = ActionChunk(
        position=np.tile(np.array(STOW), (10, 1)), base_v_mps=np.full(10, 0.2), base_w_radps=np.zeros(10), step_s=0.1
    )
    shown.of(chunk, "chunk", 1.4)
    entities = {one["id"]: one for one in shown.of(state(at_s=1.5), "robot/state", 1.5)["scene/plan"]["entities"]}
    assert entities["way of the base"]["lines"][0]["points"][-1]["x"] == pytest.approx(1.2, abs=1e-3)
    assert ids(shown.of(state(at_s=9.0), "robot/state", 9.0)["scene/plan"]) == ["target"], "what is old says nothing"


def test_the_guards_idea_of_the_body_and_its_boxes_are_shown() -> None:
    shown = Shown(parameters=BOXES)
    entities = {one["id"]: one for one in shown.of(state(), "robot/state")["scene/guard"]["entities"]}
    assert set(entities) == {"envelope", "box keep in", "box keep out: sofa"}
    assert entities["envelope"]["frame_id"] == "base"
    calm = entities["envelope"]["spheres"][0]["color"]
    shown.of(GuardState(mode="stopped", reason="contact"), "guard/state")
    (envelope, *_) = shown.of(state(at_s=2.0), "robot/state", 2.0)["scene/guard"]["entities"]
    assert envelope["spheres"][0]["color"] != calm


def test_words_interrupts_and_lenses_are_in_foxgloves_own_schemas() -> None:
    shown = Shown()
    line = shown.of(Utterance(speaker="Mia", text="Stop!"), "heard")["log/conversation"]
    assert (line["name"], line["message"], line["level"]) == ("Mia", "Stop!", 2)
    event = shown.of(Interrupt(id="i", depth="stop", text="Stop!", by="Mia"), "interrupt")["events"]
    assert {"key": "depth", "value": "stop"} in event["metadata"]
    image = Image(camera="head", captured_ns=to_ns(1), rgb=np.zeros((6, 8, 3), np.uint8), focal_px=9.0)
    lens = shown.of(image, "head/image")["head/image/calibration"]
    assert (lens["width"], lens["K"][0], lens["K"][2]) == (8, 9.0, 4.0)
    assert shown.of(image, "head/image", 1.1) == {}
    assert shown.of(msgspec.structs.replace(image, focal_px=5.0), "head/image", 1.2), "another lens is told at once"  # type: ignore[type-var]


def test_of_a_robot_that_nobody_knows_the_base_is_shown() -> None:
    shown = Shown()
    made = shown.of(state((0.1, 0.2)), "robot/state")
    assert [one["child_frame_id"] for one in made["transforms"]["transforms"]] == ["base"]
    assert [joint["name"] for joint in made["joints"]["joints"]] == ["joint_1", "joint_2"]
    assert "scene/robot" not in made
    assert shown.told == []


MESHED = """<mujoco><asset><mesh name="claw" file="claw.stl" scale="0.001 0.001 0.001"/></asset><worldbody>
<body name="hand"><joint name="turn" range="-1 1"/><geom type="mesh" mesh="claw"/></body></worldbody></mujoco>"""


def tetrahedron() -> bytes:
    corners = np.array([[0, 0, 0], [90, 0, 0], [0, 90, 0], [0, 0, 90]], "<f4")
    faces = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
    rows = b"".join(struct.pack("<3f", 0, 0, 1) + corners[list(face)].tobytes() + b"\0\0" for face in faces)
    return b"\0" * 80 + struct.pack("<I", len(faces)) + rows


def test_meshes_go_along_whole(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    (tmp_path / "claw.stl").write_bytes(tetrahedron())
    (tmp_path / "claw.xml").write_text(MESHED)
    (tmp_path / "claw.toml").write_text('model = "claw.xml"\njoints.turn = { speed = 1.0 }\n')
    made = Shown(str(tmp_path / "claw.toml"), ("turn",)).of(state((0.5,)), "robot/state")
    (hand,) = made["scene/robot"]["entities"]
    (model,) = hand["models"]
    data = base64.b64decode(model["data"])
    assert model["media_type"] == "model/stl"
    assert struct.unpack_from("<I", data, 80)[0] == 4
    assert "package://robot/claw.stl" in made["robot_description"]["data"]


def test_a_mesh_that_is_missing_is_a_sentence_and_the_rest_is_shown(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    stand = '<link name="stand"><visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual></link>'
    mesh = '<visual><geometry><mesh filename="package://a/claw.stl"/></geometry></visual>'
    weight = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    turn = '<joint name="turn" type="revolute"><parent link="stand"/><child link="hand"/><axis xyz="0 0 1"/>'
    limit = '<limit lower="-1" upper="1" velocity="1" effort="1"/></joint>'
    (tmp_path / "claw.stl").write_bytes(tetrahedron())
    (tmp_path / "a.urdf").write_text(
        f'<robot name="a">{stand}<link name="hand">{weight}{mesh}</link>{turn}{limit}</robot>'
    )
    (tmp_path / "a.toml").write_text('model = "a.urdf"\n')
    shown = Shown(str(tmp_path / "a.toml"), ("turn",))
    assert "models" in shown.of(state((0.5,)), "robot/state")["scene/robot"]["entities"][1]
    (tmp_path / "claw.stl").unlink()
    shown.typed.begin_again()
    made = shown.of(state((0.5,), 2.0), "robot/state", 2.0)
    assert ids(made["scene/robot"]) == ["stand"]
    assert len(made["transforms"]["transforms"]) == 3
    assert shown.told == [
        sentence(
            "recording.not_all_shown",
            why=f"{tmp_path / 'a.urdf'}: {sentence('recording.no_mesh', mesh='package://a/claw.stl')}",
        )
    ]


def test_two_frames_of_one_name_are_a_sentence_and_the_run_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    (tmp_path / "a.urdf").write_text('<robot name="a"><link name="hand"/><link name="hand"/></robot>')
    (tmp_path / "a.toml").write_text('model = "a.urdf"\n')
    shown = Shown(str(tmp_path / "a.toml"), ("turn",))
    for at_s in (1.0, 2.0):
        made = shown.of(state((0.5,), at_s), "robot/state", at_s)
        assert [one["child_frame_id"] for one in made["transforms"]["transforms"]] == ["base"]
        assert made["joints"]["joints"][0]["position"] == 0.5
    (told,) = shown.told
    assert f"a.urdf: {sentence('recording.two_of_a_name', kind='link', name='hand')}" in told


NAN, INF = float("nan"), float("inf")
FAR = msgspec.structs.replace(CUP, id="far", x_m=NAN, height_m=INF)  # type: ignore[type-var]  # a Struct at run time


def test_what_is_no_number_is_left_out_and_the_rest_is_valid() -> None:
    """Each document is checked by its schema as it comes, which a null would not pass."""
    shown = Shown(parameters={"guard": {"keep_in": [NAN, 1.0, 0.0, 1.0, 0.0, 1.0], "keep_out": {"sofa": ["a"] * 6}}})
    shown.of(Action(id="a", skill="pick", text="pick", arguments=aimed_at(FAR)), "action")
    shown.of(JointCommand(position=STOW, base_v_mps=INF), "command")
    made = shown.of(msgspec.structs.replace(state(), position=(NAN, *STOW[1:])), "robot/state")  # type: ignore[type-var]
    assert [joint["name"] for joint in made["joints"]["joints"]] == list(JOINTS[1:])
    links = {one["child_frame_id"] for one in made["transforms"]["transforms"]}
    assert "base" in links
    assert "lift" not in links
    assert shown.of(BodyPart(part="foot", x_m=NAN, y_m=0.0, z_m=0.0), "sim/body")["scene/people"]
    entities = shown.of(Scene(things=(FAR, CUP)), "scene")["scene/things"]["entities"]
    assert [len(one["cylinders"]) for one in entities] == [0, 1]
    image = Image(camera="head", captured_ns=1, rgb=np.zeros((6, 8, 3), np.uint8), focal_px=NAN)
    assert shown.of(image, "head/image") == {}
