"""Claims about `nodes/robot_file`: limits and kinematics come from the file, and what is wrong with it is told."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from nodes.guard.motion_profile import Motion, Wheels
from nodes.guard.space import BodyMotion, Space
from nodes.msgs import JointCommand, JointVector, RobotState
from nodes.robot.driver import Driver
from nodes.robot.looks import looks_of
from nodes.robot.protocol import Twist
from nodes.robot.robot_from_launch import load_body, load_limits, outline_of
from nodes.robot_file.body import FileBody, body_of_file
from nodes.robot_file.inverse_kinematics import Pose
from nodes.robot_file.model import load_robot
from nodes.sim.camera import FARTHEST_M
from nodes.sim.file_robot import FileRobot
from nodes.sim.kinematic import KinematicRobot
from nodes.sim.rendering.renderer import RayRenderer
from runtime import Simulation, UserError
from runtime.launch.file import load
from tests.support.guard.driving import driven, driver_and_guard
from tests.support.sentences import pattern, sentence

ARM = "nodes.arm:arm.toml"
INERTIA = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def link(name: str, more: str = "") -> str:
    return f'<link name="{name}">{INERTIA}{more}</link>'


LINKS = "".join(map(link, ("base", "upper", "hand", "jaw")))
TURN = """<joint name="turn" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
<limit lower="-2" upper="2" velocity="1.5" effort="10"/></joint>"""
TIP = '<joint name="tip" type="fixed"><parent link="upper"/><child link="hand"/><origin xyz="0.3 0 0.2"/></joint>'
JAW = """<joint name="jaw" type="prismatic"><parent link="hand"/><child link="jaw"/><axis xyz="0 1 0"/>
<limit lower="0" upper="0.04" velocity="0.1" effort="5"/></joint>"""


def urdf(*parts: str) -> str:
    return f'<robot name="small">{"".join(parts or (LINKS, TURN, TIP, JAW))}</robot>'


MESH = '<visual><geometry><mesh filename="package://small/meshes/upper.stl"/></geometry></visual>'


def written(folder: Path, model: str, table: str = "", name: str = "small.urdf") -> str:
    (folder / name).write_text(model)
    (folder / "small.toml").write_text(f'model = "{name}"\n{table}')
    return str(folder / "small.toml")


def state_at(position: JointVector) -> RobotState:
    zero = (0.0,) * len(position)
    return RobotState(
        read_ns=0, position=position, velocity=zero, effort=zero, base_x_m=0.0, base_y_m=0.0, base_heading_rad=0.0,
        base_v_mps=0.0, base_w_radps=0.0, contact=(),
    )  # fmt: skip


def test_limits_are_those_of_the_urdf(tmp_path: Path) -> None:
    limits = load_limits(written(tmp_path, urdf(), 'gripper = ["jaw"]'))
    assert [(one.name, one.lowest, one.highest, one.speed) for one in limits.joints] == [
        ("turn", -2.0, 2.0, 1.5),
        ("gripper", 0.0, 0.04, 0.1),
    ]


def test_the_robot_file_narrows_and_cannot_widen(tmp_path: Path) -> None:
    turn = load_limits(written(tmp_path, urdf(), "joints.turn = { highest = 1.0, speed = 0.5 }")).joints[0]
    assert (turn.highest, turn.speed) == (1.0, 0.5)
    for table in ("joints.turn = { highest = 3.0 }", "joints.turn = { speed = 9.0 }"):
        with pytest.raises(UserError, match="turn"):
            load_limits(written(tmp_path, urdf(), table))


def test_the_hand_of_a_urdf_is_where_its_links_say(tmp_path: Path) -> None:
    body = load_body(written(tmp_path, urdf(), "mount_m = [0.0, 0.0, 0.5]"))
    assert body.hand_point(state_at((0.0, 0.0))) == pytest.approx((0.3, 0.0, 0.7))
    assert body.hand_point(state_at((np.pi / 2, 0.0))) == pytest.approx((0.0, 0.3, 0.7))


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ((LINKS, TURN.replace('lower="-2" upper="2"', ""), TIP, JAW), pattern("robot_file.no_limit", joint="turn")),
        ((LINKS, TURN.replace('lower="-2"', 'lower="3"'), TIP, JAW),
         pattern("robot_file.range_is_upside_down", joint="turn", lower=3, upper=2)),
        ((LINKS + link("hand"), TURN, TIP, JAW), pattern("robot_file.two_links", link="hand")),
        ((LINKS, TURN, TIP, JAW.replace("<axis", '<mimic joint="tip"/><axis')),
         pattern("robot_file.mimics_nothing", joint="tip")),
        ((LINKS, TURN, TIP, JAW.replace("<axis", '<mimic joint="turn" multiplier="2m"/><axis')),
         pattern("robot_file.no_multiplier", multiplier="2m")),
        ((LINKS, TURN.replace('"base"', '"bass"'), TIP, JAW),
         pattern("robot_file.no_such_link", joint="turn", link="bass")),
        ((LINKS, TURN, JAW), pattern("robot_file.one_base_expected", number=2, links="base, hand")),
        ((LINKS, TURN, TIP.replace('"upper"', '"jaw"'), JAW),
         pattern("robot_file.links_in_a_ring", links="hand, jaw", base="base")),
        ((LINKS, TURN, TIP, JAW.replace("<axis", '<mimic joint="jaw"/><axis')), pattern("robot_file.mimics_itself")),
        ((LINKS, TURN.replace('"turn"', '"J 1"'), TIP, JAW.replace('name="jaw"', 'name="j-1"')),
         pattern("robot_file.same_name", one="J 1", other="j-1", name="j_1")),
        ((LINKS.replace(INERTIA, ""), TURN, TIP, JAW), pattern("robot_file.no_inertia")),
        (('<x:include xmlns:x="http://www.ros.org/wiki/xacro" filename="a"/>', LINKS),
         pattern("robot_file.is_a_xacro", file="small.urdf")),
        ((LINKS.replace(link("upper"), link("upper", MESH)), TURN, TIP, JAW),
         pattern("robot_file.no_file", mesh="package://small/meshes/upper.stl", file=".*/upper.stl")),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_urdf_is_told_by_file_part_and_remedy(
    tmp_path: Path, parts: tuple[str, ...], told: str
) -> None:
    with pytest.raises(UserError, match=rf"small\.urdf: .*{told}"):
        load_limits(written(tmp_path, urdf(*parts)))


@pytest.mark.parametrize(
    ("key", "value", "least"),
    [("velocity", "nan", 0), ("velocity", "-1", 0), ("velocity", "1e30", 0), ("velocity", "fast", 0),
     ("lower", "nan", re.escape("-1e+06")), ("upper", "1e30", re.escape("-1e+06")), ("effort", "-5", 0),
     ("effort", "inf", 0)],
)  # fmt: skip
def test_a_number_that_no_joint_has_is_told_with_its_line(
    tmp_path: Path, key: str, value: str, least: int | str
) -> None:
    model = urdf(LINKS, re.sub(rf'{key}="[^"]*"', f'{key}="{value}"', TURN), TIP, JAW).replace(
        '<joint name="turn"', '\n\n<joint name="turn"'
    )
    line = next(number for number, text in enumerate(model.splitlines(), 1) if 'name="turn"' in text)
    with pytest.raises(
        UserError, match=pattern("robot_file.bad_number", line=line, joint="turn", key=key, value=value, least=least)
    ):
        load_limits(written(tmp_path, model))


@pytest.mark.parametrize(
    ("part", "key", "before", "value"),
    [
        ("origin", "xyz", 'origin xyz="0.3 0 0.2"', "0.3 nan 0.2"),
        ("origin", "xyz", 'origin xyz="0.3 0 0.2"', "-1e30 0 0.2"),
        ("axis", "xyz", 'axis xyz="0 0 1"', "0 0 inf"),
        ("inertia", "ixx", 'inertia ixx="1"', "nan"),
        ("mass", "value", 'mass value="1"', "-1"),
        ("mass", "value", 'mass value="1"', "1e30"),
        ("dynamics", "damping", 'dynamics damping="0"', "-1"),
        ("dynamics", "friction", 'dynamics damping="0"', "nan"),
    ],
)
def test_a_number_that_no_model_has_is_told_with_its_line_wherever_it_stands(
    tmp_path: Path, part: str, key: str, before: str, value: str
) -> None:
    jaw = JAW.replace("<limit", '<dynamics damping="0"/><limit')
    model = urdf(f"\n{LINKS}\n", f"{TURN}\n", f"{TIP}\n", jaw)
    load_limits(written(tmp_path, model))
    bad = f'{part} {key}="{value}"'
    model = model.replace(before, bad, 1)
    line = next(number for number, text in enumerate(model.splitlines(), 1) if bad in text)
    least = "0" if part in ("mass", "dynamics") else re.escape("-1e+09")
    told = pattern(
        "robot_file.bad_numbers", file="small.urdf", line=line, part=part, key=key, value=re.escape(value), least=least
    )
    with pytest.raises(UserError, match=told):
        load_limits(written(tmp_path, model))


def test_a_name_that_reads_like_a_number_is_a_name(tmp_path: Path) -> None:
    model = urdf().replace('"upper"', '"nan"').replace('"turn"', '"inf"')
    assert [one.name for one in load_limits(written(tmp_path, model)).joints] == ["inf", "jaw"]


@pytest.mark.parametrize("value", ["nan", "inf", "1e30"])
def test_a_number_that_no_model_has_is_told_of_an_mjcf_and_of_a_place_in_the_robot_file(
    tmp_path: Path, value: str
) -> None:
    mjcf = f"""<mujoco><worldbody><body name="hand">
      <joint name="turn" range="-1 1"/><geom size="0.1" pos="0 0 {value}"/></body></worldbody></mujoco>"""
    told = pattern(
        "robot_file.bad_numbers", file="small.xml", line=2, part="geom", key="pos", value=f"0 0 {value}",
        least=re.escape("-1e+09"),
    )  # fmt: skip
    with pytest.raises(UserError, match=told):
        load_limits(written(tmp_path, mjcf, name="small.xml"))
    for table in (
        f"mount_m = [0.0, 0.0, {value}]",
        f'cameras.eye = {{ link = "hand", place_m = [0.0, {value}, 0.0] }}',
    ):
        with pytest.raises(UserError, match=r"small\.toml: .*_m is \["):
            load_limits(written(tmp_path, urdf(), table))


def test_a_speed_that_nobody_can_mean_is_asked_about_and_taken_once_the_robot_file_says_it(tmp_path: Path) -> None:
    model = urdf(LINKS, re.sub(r'velocity="[^"]*"', 'velocity="99"', TURN), TIP, JAW)
    line = next(number for number, text in enumerate(model.splitlines(), 1) if 'name="turn"' in text)
    with pytest.raises(UserError, match=pattern("robot_file.too_fast", line=line, joint="turn")):
        load_limits(written(tmp_path, model))
    for speed in (99.0, 1.5):
        assert load_limits(written(tmp_path, model, f"joints.turn = {{ speed = {speed} }}")).joints[0].speed == speed


FOLLOWER = """<joint name="other" type="prismatic"><parent link="hand"/><child link="other"/><axis xyz="0 -1 0"/>
<limit lower="-1" upper="1" velocity="0.1" effort="5"/><mimic joint="jaw" multiplier="0.5" offset="0.01"/></joint>"""


def test_a_joint_that_mimics_another_one_follows_it(tmp_path: Path) -> None:
    model = urdf(LINKS + link("other"), TURN, TIP, JAW, FOLLOWER)
    file = written(tmp_path, model, 'gripper = ["jaw"]\nhand = "other"\njoints.gripper.opening_m = [0.0, 0.04]')
    assert [one.name for one in load_limits(file).joints] == ["turn", "gripper"]
    body = load_body(file)
    assert body.hand_point(state_at((0.0, 0.04))) == pytest.approx((0.3, -0.03, 0.2))
    looks = looks_of(file)
    assert looks is not None
    assert looks.point((0.0, 0.04)) == pytest.approx((0.3, -0.03, 0.2))
    robot = FileRobot(file)
    robot.start(0)
    robot.command(JointCommand(position=(0.0, 0.04)))
    for step in range(1, 60):
        robot.command(JointCommand(position=(0.0, 0.04)))
        robot.advance(step * 20_000_000)
    follower = robot.data.joint("robot/other").qpos[0]
    assert robot.read(0).position[1] == pytest.approx(0.04, abs=0.003)
    assert follower == pytest.approx(0.5 * robot.read(0).position[1] + 0.01, abs=0.003)


def test_a_finger_that_another_one_follows_opens_nobody_knows_how_far(tmp_path: Path) -> None:
    model = urdf(LINKS + link("other"), TURN, TIP, JAW, FOLLOWER)
    with pytest.raises(
        UserError, match=pattern("robot_file.opens_both", follower="other", file="small.urdf", joint="jaw")
    ):
        load_limits(written(tmp_path, model, 'gripper = ["jaw"]'))


def test_a_gripper_shared_with_one_that_follows_otherwise_is_refused(tmp_path: Path) -> None:
    model = urdf(LINKS + link("other"), TURN, TIP, JAW, FOLLOWER)
    with pytest.raises(UserError, match=pattern("robot_file.follows_by_itself", joint="other")):
        load_limits(written(tmp_path, model, 'gripper = ["jaw", "other"]'))


TURNING = JAW.replace("prismatic", "revolute").replace('upper="0.04" velocity="0.1"', 'upper="1.0" velocity="2.0"')


def test_a_gripper_that_turns_opens_in_metres(tmp_path: Path) -> None:
    table = 'gripper = ["jaw"]\njoints.gripper = { opening_m = [0.0, 0.08], folded = 0.5 }'
    file = written(tmp_path, urdf(LINKS, TURN, TIP, TURNING), table)
    gripper = load_limits(file).joints[1]
    assert (gripper.lowest, gripper.highest, gripper.speed) == pytest.approx((0.0, 0.08, 0.16))
    robot = FileRobot(file)
    robot.start(0)
    assert robot.read(0).position[1] == pytest.approx(0.04)
    for step in range(1, 80):
        robot.command(JointCommand(position=(0.0, 0.06)))
        robot.advance(step * 20_000_000)
    assert robot.read(0).position[1] == pytest.approx(0.06, abs=0.003)
    assert robot.data.joint("robot/jaw").qpos[0] == pytest.approx(0.75, abs=0.04)
    looks = looks_of(file)
    assert looks is not None
    assert looks.positions((0.0, 0.06))["jaw"] == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('gripper = ["jaw"]', pattern("robot_file.turns", joint="jaw", file="small.urdf")),
        (
            'gripper = ["jaw"]\njoints.gripper = { opening_m = [0.05, 0.05] }',
            pattern("robot_file.same_openings", low=0.05, high=0.05),
        ),
        ("joints.turn = { opening_m = [0.0, 0.05] }", pattern("robot_file.one_joint_alone")),
    ],
)
def test_a_gripper_whose_opening_nobody_knows_is_told(tmp_path: Path, table: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        load_limits(written(tmp_path, urdf(LINKS, TURN, TIP, TURNING), table))


MJCF = '<mujoco><worldbody><body name="hand"><geom size="0.1"/>{}</body></worldbody></mujoco>'


@pytest.mark.parametrize(
    ("model", "table", "named"),
    [
        (MJCF.format('<joint name="a" range="-1 1"/>'), "", pattern("robot_file.no_speed", joint="a")),
        (MJCF.format('<joint name="a"/>'), "", pattern("robot_file.no_range", joint="a")),
        (MJCF.format('<freejoint name="a"/>'), "", pattern("robot_file.is_free", joint="a")),
        (MJCF.format('<joint name="a" range="-1 1"/><joint name="a"/>'), "", pattern("robot_file.mujoco_cannot")),
        (MJCF.format('<joint name="a" range="-1 1"/>'), 'hand = "paw"', pattern("robot_file.no_such_hand", hand="paw")),
        (MJCF.format('<joint name="a" range="-1 1"/>'), 'gripper = ["b"]',
         pattern("robot_file.no_gripper_joint", joint="b")),
        ("<mujoco", "", pattern("robot_file.no_xml")),
        ('<mujoco><asset><mesh name="m" file="m.stl"/></asset><worldbody><geom type="mesh" mesh="m"/></worldbody>'
         "</mujoco>", "", "m.stl"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_mjcf_is_told(tmp_path: Path, model: str, table: str, named: str) -> None:
    with pytest.raises(UserError, match=named):
        load_limits(written(tmp_path, model, table, "small.xml"))


@pytest.mark.parametrize("name", ["nowhere.toml", "no_package_of_this_name:arm.toml", "nodes.arm:legs.toml"])
def test_a_robot_file_that_is_not_there_is_told(name: str) -> None:
    with pytest.raises(UserError):
        load_limits(name)


def test_a_model_may_be_a_package_s_and_one_that_is_not_installed_is_told(tmp_path: Path) -> None:
    own = load_robot(ARM)
    (tmp_path / "arm.toml").write_text(own.path.read_text().replace('"arm.xml"', '"nodes.arm:arm.xml"'))
    assert load_robot(str(tmp_path / "arm.toml")).limits.joints == own.limits.joints
    assert looks_of(str(tmp_path / "arm.toml")) is not None
    (tmp_path / "none.toml").write_text('model = "no_package_of_this_name:arm.xml"\n')
    with pytest.raises(
        UserError, match=r"none\.toml: model: .*" + pattern("robot_file.no_package", package="no_package_of_this_name")
    ):
        load_robot(str(tmp_path / "none.toml"))


def test_a_hand_gets_where_it_is_sent() -> None:
    body = body_of_file(ARM)
    down = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
    near = load_robot(ARM).folded
    for place in ((-0.4, -0.5, 0.6), (0.3, -0.66, 0.55), (0.66, -0.58, 0.6)):
        found = body.reaching(Pose(down, np.array(place)), near)
        assert found is not None
        assert body.hand_point(state_at(found)) == pytest.approx(place, abs=0.002)
        assert all(joint.lowest <= at <= joint.highest for joint, at in zip(body.limits.joints, found, strict=True))
    assert body.reaching(Pose(down, np.array((2.0, 0.0, 0.5))), near) is None


def test_a_robot_without_a_camera_says_so(tmp_path: Path) -> None:
    body: FileBody = body_of_file(written(tmp_path, urdf()))
    with pytest.raises(UserError, match=pattern("robot_file.no_camera", camera="head")):
        body.head_camera(replace_position(body))


def replace_position(body: FileBody) -> RobotState:
    return state_at(tuple(0.0 for _ in body.limits.joints))


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    name = written(tmp_path, urdf())
    before = load_limits(name)
    written(tmp_path, urdf(), "joints.turn = { speed = 0.5 }")
    assert load_limits(name) == replace(
        before, joints=(replace(before.joints[0], speed=0.5, acceleration=2.0), *before.joints[1:])
    )


def test_names_and_meshes_of_other_peoples_files_are_taken(tmp_path: Path) -> None:
    corners = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
    faces = [(corners[a], corners[b], corners[c]) for a, b, c in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))]
    binary = b"\0" * 80 + len(faces).to_bytes(4, "little")
    for face in faces:
        binary += np.zeros(3, "<f4").tobytes() + (np.array(face, "<f4") / 10).tobytes() + b"\0\0"
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "upper.stl").write_bytes(binary)
    mesh = MESH.replace("visual", "collision")
    links = LINKS.replace(link("upper"), link("upper", mesh))
    name = written(tmp_path, urdf(links, TURN.replace('name="turn"', 'name="left/Shoulder-Pan"'), TIP, JAW))
    assert load_limits(name).joints[0].name == "left_shoulder_pan"
    (part, *_) = body_of_file(name).own_parts(state_at((0.0, 0.0)))
    assert 0.03 < part.radius_m < 0.15
    robot = FileRobot(name)
    robot.start(0)
    seen = RayRenderer(robot.model, "room", 160, 120, FARTHEST_M).render(robot.data)[1]
    assert (seen > 0).any()


def test_the_outline_of_a_robot_from_a_file_covers_its_hand_and_limits_its_speed(tmp_path: Path) -> None:
    table = 'gripper = ["jaw"]\ntip_speed_mps = 0.3\nfloor_m = 0.05'
    shape = '<collision><origin xyz="0.15 0 0.2"/><geometry><box size="0.3 0.04 0.04"/></geometry></collision>'
    file = written(tmp_path, urdf(LINKS.replace(link("upper"), link("upper", shape)), TURN, TIP, JAW), table)
    limits = load_limits(file)
    assert limits.cartesian is not None
    assert (limits.cartesian.tip_speed_mps, limits.cartesian.floor_m) == (0.3, 0.05)
    balls = outline_of(limits.cartesian)((0.0, 0.0))
    assert max(x + radius for x, _, _, radius in balls) >= 0.3, "the end of its arm is covered"
    space = Space(limits)
    still = BodyMotion(tuple(Motion(0.0, 0.0) for _ in limits.joints), Wheels())
    asked, state = JointCommand(position=(2.0, 0.0)), state_at((0.0, 0.0))
    steps = [still]
    for _ in range(200):
        steps.append(space.follow(steps[-1], asked, state, 0.0, 0.02)[0])
    fastest = max(abs(step.joints[0].velocity) for step in steps)
    assert 0.5 < fastest < 1.2, "rad/s; the joint alone may turn at 1.5, and the arm's end then goes at 0.45 m/s"


class Arm(KinematicRobot):
    """A driver of hardware takes its limits from the same file as the guard."""

    limits = load_limits(ARM)
    folded = tuple(min(max(0.0, one.lowest), one.highest) for one in limits.joints)


def test_a_robot_file_goes_with_a_driver_of_ones_own(tmp_path: Path) -> None:
    launch = tmp_path / "real.toml"
    launch.write_text(
        f'''[run]
robot = "{ARM}"

{driver_and_guard(driven("tests.nodes.robot_file.test_model:Arm"))}
[nodes.reflex]
use     = "nodes.interrupts.reflex:Reflex"
process = "robot"

[nodes.policy]
use = "tests.support.guard.guarded_nodes:StillPolicy"
'''
    )
    graph = load(launch).graph
    assert graph.problems() == []
    simulation = Simulation(graph)
    states = simulation.record(Driver.state)
    simulation.run(seconds=1.0)
    assert len(states[-1].position) == len(Arm.limits.joints)


# --- a robot that drives

WHEELS = "".join(
    f"""{link(side)}<joint name="{side}" type="continuous"><parent link="base"/><child link="{side}"/>
<origin xyz="0 {y} 0.1"/><axis xyz="0 1 0"/></joint>"""
    for side, y in (("left_wheel", 0.2), ("right_wheel", -0.2))
)
BASE = "[base]\nwheel_speed_mps = 0.4\nacceleration_mps2 = 0.5\ntrack_m = 0.4\n"
WHEELED = f'{BASE}joints = ["left_wheel", "right_wheel"]\n'


def driving(kind: str) -> str:
    """A URDF whose base goes over the floor by a joint of that kind."""
    way = f'<joint name="way" type="{kind}"><parent link="world"/><child link="base"/></joint>'
    return urdf('<link name="world"/>', LINKS, way, TURN, TIP, JAW)


FLOATING = '<mujoco><worldbody><geom type="plane" size="1 1 .1"/>{}</worldbody><keyframe><key/></keyframe></mujoco>'
PART = '<geom size="0.1"/>'
ROVER = f'<body name="{{}}" pos="0 0 1"><freejoint/>{PART}<body><joint name="a" range="-1 1"/>{PART}</body></body>'


@pytest.mark.parametrize(
    ("model", "table", "name"),
    [
        (urdf(WHEELS, LINKS, TURN, TIP, JAW), WHEELED, "small.urdf"),
        (driving("planar"), BASE, "small.urdf"),
        (driving("floating"), BASE, "small.urdf"),
        (FLOATING.format(ROVER.format("hand")), f"joints.a.speed = 1.0\n{BASE}", "small.xml"),
    ],
    ids=["wheels", "planar", "floating", "free"],
)
def test_by_what_a_base_drives_is_no_joint_of_the_robot(tmp_path: Path, model: str, table: str, name: str) -> None:
    limits = load_limits(written(tmp_path, model, table, name))
    assert [one.name for one in limits.joints] in (["turn", "jaw"], ["a"])
    assert (limits.base.wheel_speed_mps, limits.base.acceleration_mps2, limits.base.track_m) == (0.4, 0.5, 0.4)
    robot = FileRobot(str(tmp_path / "small.toml"))
    robot.start(0)
    folded = tuple(0.0 for _ in limits.joints)
    for step in range(1, 101):
        robot.command(JointCommand(position=folded, base_v_mps=0.2, base_w_radps=0.5))
        robot.advance(step * 20_000_000)
    state = robot.read(2_000_000_000)
    assert (state.base_v_mps, state.base_w_radps) == pytest.approx((0.2, 0.5), abs=0.01)
    assert 0.7 < state.base_heading_rad < 1.0, "rad, after 2 s at 0.5 rad/s, its start among them"


@pytest.mark.parametrize(
    ("model", "table", "name", "named"),
    [
        (driving("planar"), "", "small.urdf", pattern("robot_file.base_is_missing", joint="way")),
        (urdf(WHEELS, LINKS, TURN, TIP, JAW), "", "small.urdf",
         pattern("robot_file.no_range", joint="left_wheel")),
        (urdf(), f'{BASE}joints = ["wheel"]', "small.urdf", pattern("robot_file.no_base_joint", joint="wheel")),
        (urdf(), "[base]\ntrack_m = 0.4", "small.urdf", "wheel_speed_mps"),
        (FLOATING.format(ROVER.format("hand") + ROVER.format("cube").replace('"a"', '"b"')), BASE, "small.xml",
         pattern("robot_file.float_freely", bodies="cube, hand")),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_base_is_told(tmp_path: Path, model: str, table: str, name: str, named: str) -> None:
    with pytest.raises(UserError, match=named):
        load_limits(written(tmp_path, model, table, name))


def test_a_robot_that_drives_begins_where_its_file_says_and_takes_its_hand_along(tmp_path: Path) -> None:
    table = f"mount_m = [0.5, -0.2, 0.1]\nyaw_rad = 1.0\ntip_speed_mps = 2.0\n{WHEELED}"
    file = written(tmp_path, urdf(WHEELS, LINKS, TURN, TIP, JAW), table)
    robot = FileRobot(file)
    robot.start(0)
    body = load_body(file)
    begun = robot.read(0)
    assert (begun.base_x_m, begun.base_y_m, begun.base_heading_rad) == (0.5, -0.2, 1.0)
    for step in range(1, 151):
        robot.command(JointCommand(position=(0.3, 0.0), base_v_mps=0.3, base_w_radps=-0.4))
        robot.advance(step * 20_000_000)
    there = robot.read(0)
    assert there.base_x_m > 0.9
    mujoco.mj_kinematics(robot.model, robot.data)
    hand = robot.data.body("robot/hand").xpos
    assert body.hand_point(there) == pytest.approx(hand.tolist(), abs=1e-6)
    looks = looks_of(file)
    assert looks is not None
    point = body_of_file(file).base_pose(there)[0] @ looks.point(there.position)
    assert (there.base_x_m + point[0], there.base_y_m + point[1], point[2]) == pytest.approx(hand.tolist(), abs=1e-6)


# --- meshes

CORNERS = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
FACES = [(CORNERS[a], CORNERS[b], CORNERS[c]) for a, b, c in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))]
STL = (
    b"\0" * 80
    + len(FACES).to_bytes(4, "little")
    + b"".join(bytes(12) + (np.array(face, "<f4") / 10).tobytes() + b"\0\0" for face in FACES)
)
OBJ = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1/1 4/2 3/3\nf 2 3 4\n"


@pytest.mark.parametrize("part", ["visual", "collision"])
@pytest.mark.parametrize(
    ("mesh", "content", "named"),
    [
        ("upper.stl", STL[:-30], sentence("robot_file.no_whole_stl", triangles=4, expected=284, size=254)),
        ("upper.stl", STL[:40], sentence("robot_file.ends_early", size=40)),
        ("upper.stl", bytes(84), sentence("robot_file.no_triangle")),
        ("upper.stl", b"", sentence("robot_file.is_empty")),
        ("upper.stl", b"<!DOCTYPE html>\nnot found", sentence("robot_file.is_a_text")),
        ("upper.stl", b"solid a\nfacet normal 0 0 1\n", sentence("robot_file.no_endsolid")),
        ("upper.stl", b"version https://git-lfs.github.com/spec/v1\n", sentence("robot_file.git_lfs")),
        ("upper.obj", OBJ.replace(b"v 0 0 1\n", b""), sentence("robot_file.no_such_corner", corner=4, corners=3)),
        ("upper.obj", OBJ[:30], sentence("robot_file.half_a_corner")),
        ("upper.obj", OBJ[:32], sentence("robot_file.no_triangle")),
        ("upper.obj", b"hello\n", sentence("robot_file.no_obj")),
        ("upper.dae", b"<COLLADA", sentence("robot_file.convert_it")),
    ],
)
def test_a_damaged_mesh_is_told_by_file_and_remedy(
    tmp_path: Path, part: str, mesh: str, content: bytes, named: str
) -> None:
    (tmp_path / mesh).write_bytes(content)
    shape = MESH.replace("visual", part).replace("upper.stl", mesh)
    with pytest.raises(UserError) as told:
        load_limits(written(tmp_path, urdf(LINKS.replace(link("upper"), link("upper", shape)), TURN, TIP, JAW)))
    assert "small.urdf" in str(told.value)
    assert mesh in str(told.value)
    assert named in str(told.value)


def test_a_texture_that_is_missing_is_told(tmp_path: Path) -> None:
    shape = '<visual><geometry><box size="1 1 1"/></geometry><material name="m"><texture filename="a.png"/></material>'
    links = LINKS.replace(link("upper"), link("upper", f"{shape}</visual>"))
    with pytest.raises(UserError, match=r"small\.urdf: " + pattern("robot_file.no_texture", texture="a.png")):
        load_limits(written(tmp_path, urdf(links, TURN, TIP, JAW)))
    asset = '<mujoco><asset><texture name="t" type="2d" file="a.png"/></asset>'
    with pytest.raises(UserError, match=r"small.xml: .*a\.png.*"):
        load_limits(written(tmp_path, MJCF.format("").replace("<mujoco>", asset), "", "small.xml"))


@pytest.mark.parametrize(
    ("mesh", "content"), [("upper.stl", STL), ("upper.obj", OBJ), ("upper arm.stl", STL), ("upper%20arm.stl", STL)]
)
def test_a_whole_mesh_is_taken(tmp_path: Path, mesh: str, content: bytes) -> None:
    (tmp_path / mesh.replace("%20", " ")).write_bytes(content)
    shape = MESH.replace("visual", "collision").replace("upper.stl", mesh)
    name = written(tmp_path, urdf(LINKS.replace(link("upper"), link("upper", shape)), TURN, TIP, JAW))
    assert load_limits(name).joints[0].name == "turn"


@pytest.mark.parametrize(
    ("twist", "moves_m"),
    [(Twist(ahead_mps=0.1), (0.0, -1, 0.0)), (Twist(left_mps=0.1), (1, 0.0, 0.0)), (Twist(up_mps=0.1), (0.0, 0.0, 1))],
)
@pytest.mark.parametrize("joints", [5, 6])
def test_the_hand_goes_along_the_axes_of_the_robots_front_and_an_arm_of_five_joints_turns_as_it_must(
    joints: int, twist: Twist, moves_m: tuple[float, float, float], tmp_path: Path
) -> None:
    """The arm's front is to the right of the room's own axes."""
    own = load_robot(ARM)
    table, model = own.path.read_text(), own.path.with_suffix(".xml").read_text()
    if joints == 5:
        model = re.sub(r'<\w+ [^>]*"forearm_roll"[^>]*/>', "", model)
        table = re.sub(r"forearm_roll = .*", "", table)
    (tmp_path / "arm.xml").write_text(model)
    (tmp_path / "arm.toml").write_text(table)
    body = body_of_file(str(tmp_path / "arm.toml"))
    at = np.array(body.robot.folded)
    at[0] = 0.4
    before = body.hand(tuple(at))
    for _ in range(100):
        rates, base_mps = body.rates(tuple(at.tolist()), twist)
        assert base_mps == 0.0
        at += 0.01 * np.array([rates.get(joint.name, 0.0) for joint in body.limits.joints])
    after = body.hand(tuple(at.tolist()))
    assert after.place - before.place == pytest.approx(0.1 * np.array(moves_m), abs=0.01)
    if joints == 6:
        assert after.rotation == pytest.approx(before.rotation, abs=0.02)
