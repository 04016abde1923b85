"""Claims about how robots look: each link is where the robot's own kinematics have it, and files say what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nodes.msgs import JointVector
from nodes.robot.looks import BASE, ODOMETRY, Looks, free_of, in_package, looks_of
from nodes.robot.urdf import Floats, frame, matrix, parse_urdf, quaternion, turned, urdf_text
from nodes.robot_file.body import body_of_file
from nodes.stretch.kinematics import grasp_point, head_camera_pose, wrist_camera_pose
from nodes.stretch.limits import STRETCH_3
from runtime.errors import UserError
from tests.support.sentences import sentence

ARM = "nodes.arm:arm.toml"


def link_pose(looks: Looks, position: JointVector, link: str) -> Floats:
    """A link's frame in the base's."""
    rows = {child: (parent, frame(place, matrix(turn))) for parent, child, place, turn in looks.transforms(position)}
    pose: Floats = np.eye(4)
    while link in rows:
        link, moved = rows[link]
        pose = moved @ pose
    return pose


def postures(lowest: list[float], highest: list[float]) -> list[JointVector]:
    generator = np.random.default_rng(3)
    return [tuple(generator.uniform(lowest, highest).tolist()) for _ in range(4)]


def test_cameras_and_hand_of_a_stretch_are_where_its_kinematics_have_them() -> None:
    looks = looks_of("")
    assert looks is not None
    joints = STRETCH_3.joints
    for position in postures([one.lowest for one in joints], [one.highest for one in joints]):
        for link, pose in (("head", head_camera_pose), ("wrist", wrist_camera_pose)):
            rotation, place = pose(position)
            found = link_pose(looks, position, link)
            assert np.allclose(found[:3, :3], rotation, atol=1e-4)
            assert np.allclose(found[:3, 3], place, atol=1e-4)
        assert np.allclose(looks.point(position), grasp_point(position), atol=1e-4)


def test_the_links_of_a_robot_from_a_file_are_where_the_simulator_has_them() -> None:
    looks, body = looks_of(ARM), body_of_file(ARM)
    assert looks is not None
    joints = body.limits.joints
    for position in postures([one.lowest for one in joints], [one.highest for one in joints]):
        hand = body.hand(position)
        found = link_pose(looks, position, "hand")
        assert np.allclose(found[:3, 3], hand.place, atol=1e-9)
        assert np.allclose(found[:3, :3], hand.rotation, atol=1e-9)
        assert np.allclose(looks.point(position), hand.place, atol=1e-9)


def test_the_urdf_of_a_stretch_is_that_of_the_simulator() -> None:
    pytest.importorskip("mujoco")
    from tests.nodes.stretch.make_urdf import FILE, stretch_urdf

    assert FILE.read_text() == stretch_urdf(), "write it anew: python -m tests.nodes.stretch.make_urdf"


def test_a_urdf_that_is_read_and_written_is_the_same() -> None:
    looks = looks_of("")
    assert looks is not None
    again = parse_urdf(urdf_text(looks.urdf), "again")
    assert urdf_text(again) == urdf_text(looks.urdf)
    assert again.links == looks.urdf.links


def test_a_quaternion_turns_as_its_matrix_does() -> None:
    for angle in (-3.1, -1.2, 0.0, 0.3, 3.1):
        rotation = turned((0.2, -0.5, 0.8), angle)
        assert np.allclose(matrix(quaternion(rotation)), rotation)


SMALL = """<robot name="small"><link name="base"/><link name="arm"/><link name="finger"/>
<joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint>
<joint name="slide" type="prismatic"><parent link="arm"/><child link="finger"/><axis xyz="1 0 0"/>
<mimic joint="turn" multiplier="-0.5" offset="0.1"/></joint></robot>"""


def test_a_joint_that_mimics_goes_where_the_other_one_says() -> None:
    rows = parse_urdf(SMALL, "small.urdf").transforms({"turn": 0.4})
    assert rows[1][2][:3, 3] == pytest.approx([-0.1, 0.0, 0.0])


def twice(kind: str, name: str) -> str:
    return sentence("robot.two_named_alike", kind=kind, name=name)


def wanted(element: str, key: str, value: str, what: str) -> str:
    return sentence("robot.attribute_expected", element=element, key=key, value=value, wanted=what)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<robot", "is no XML"),
        (
            SMALL.replace('joint="turn"', 'joint="bend"'),
            sentence("robot.no_joint", name="slide", other="bend", known="slide, turn"),
        ),
        (SMALL.replace('<parent link="arm"/>', '<parent link="leg"/>'), sentence("robot.no_link", name="leg")),
        (SMALL.replace('<child link="finger"/>', '<child link="arm"/>'), sentence("robot.two_roots", number=2)),
        (SMALL.replace('<link name="arm"/>', '<link name="arm"/><link name="arm"/>'), twice("links", "arm")),
        (SMALL.replace('name="slide"', 'name="turn"'), twice("joints", "turn")),
        (SMALL.replace('xyz="1 0 0"', 'xyz="1 nan 0"'), wanted("axis", "xyz", "1 nan 0", "three numbers")),
        (SMALL.replace('offset="0.1"', 'offset="inf"'), wanted("mimic", "offset", "inf", "a number")),
        (
            SMALL.replace("<link", '<material name="red"><color rgba="red"/></material><link', 1),
            wanted("color", "rgba", "red", "four numbers"),
        ),
        (SMALL.replace('xyz="1 0 0"', 'xyz="1 0"'), wanted("axis", "xyz", "1 0", "three numbers")),
    ],
)
def test_what_is_wrong_with_a_urdf_is_told(text: str, words: str) -> None:
    with pytest.raises(UserError, match=r"small\.urdf") as told:
        parse_urdf(text, "small.urdf")
    assert words in str(told.value)


def test_a_link_with_the_name_of_a_camera_makes_room_for_it(tmp_path: Path) -> None:
    (tmp_path / "small.xml").write_text(
        '<mujoco><worldbody><body name="head"><joint name="pan" range="-1 1"/><geom size="0.1"/></body></worldbody>'
        "</mujoco>"
    )
    (tmp_path / "small.toml").write_text(
        'model = "small.xml"\nhand = "head"\njoints.pan = { speed = 1.0 }\ncameras.head = { link = "head" }\n'
    )
    looks = looks_of(str(tmp_path / "small.toml"))
    assert looks is not None
    assert ("head_link", "head") in [(parent, child) for parent, child, *_ in looks.transforms((0.0,))]
    assert looks.hand == "head_link"


def body(name: str, *inside: str) -> str:
    return f'<body name="{name}"><geom size="0.1"/>{"".join(inside)}</body>'


TURN = '<joint name="turn" range="-1 1"/>'


@pytest.mark.parametrize(
    ("parts", "links"),
    [
        ([body("hand", TURN, "<camera/>", "<camera/>")], ["hand", "camera_0", "camera_1"]),
        ([body("head_link"), body("head", '<camera name="head"/>'), body("hand", TURN)],
         ["head_link", "head_link_2", "hand", "head"]),
        ([body("base", body("base_link", TURN, '<site name="hand"/>'))], ["base_link_2", "base_link", "hand"]),
    ],
)  # fmt: skip
def test_of_two_frames_of_one_name_one_gets_another(parts: list[str], links: list[str], tmp_path: Path) -> None:
    (tmp_path / "small.xml").write_text(f"<mujoco><worldbody>{''.join(parts)}</worldbody></mujoco>")
    (tmp_path / "small.toml").write_text('model = "small.xml"\njoints.turn = { speed = 1.0 }\n')
    looks = looks_of(str(tmp_path / "small.toml"))
    assert looks is not None
    assert looks.urdf.links == ("world", *links)
    assert looks.hand == "hand"


def test_a_link_called_base_beside_the_robots_own_base_gets_another_name() -> None:
    text = SMALL.replace('"arm"', '"base_link"')  # a chain, base and base_link
    beside = text.replace('<link name="base"/>', '<link name="root"/><link name="base"/>').replace(
        "<joint", '<joint name="own" type="fixed"><parent link="root"/><child link="base"/></joint><joint', 1
    )
    renamed = free_of(parse_urdf(beside, "small.urdf"), {ODOMETRY, BASE})
    assert renamed.links == ("root", "base_link_2", "base_link", "finger")
    children = [child for _, child, *_ in Looks(renamed, ("turn",)).transforms((0.4,))]
    assert len(set(children)) == len(children)


@pytest.mark.parametrize("name", ["no_package_of_this_name:arm.urdf", "no_package_of_this_name.arms:arm.urdf"])
def test_limits_whose_urdf_is_in_a_package_that_is_not_there_are_told_so(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no package 'no_package_of_this_name"):
        in_package(name)
    (beside := tmp_path / "a:b.urdf").write_text(SMALL)
    assert in_package(str(beside)) is None
