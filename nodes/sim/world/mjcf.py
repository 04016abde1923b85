"""A Stretch in a world, as one MJCF text from primitive shapes; needs no file and no download.

Joints are named as in `msgs.JOINTS`; the gripper's opening is shared by two fingers, the base is three joints of a
plane (`base_x`, `base_y`, `base_yaw`) driven by velocity. Geom groups: 0 the room, 1 robot, 2 what the head camera
sits in, 3 what the wrist camera sits in.
"""

from __future__ import annotations

import math

from nodes.sim.messages import Truth
from nodes.sim.physics import BASE_FORCE_N, BASE_TORQUE_NM, Servo
from nodes.sim.world.room_mjcf import CAMERA_FOVY_DEG, COLLISION_NONE, COLLISION_ROBOT, build_room
from nodes.sim.world.world_file import Layout
from nodes.stretch import kinematics as k
from nodes.stretch.limits import STRETCH_3

BASE_JOINTS = ("base_x", "base_y", "base_yaw")
BASE_GAIN = 2500.0  # N per m/s: a blocked base shows its full force at 0.024 m/s
BASE_YAW_GAIN = 200.0

HIDDEN_GROUP = {"head": 2, "wrist": 3, "room": 5}
"""The geom group that a camera does not see: its own housing (nothing is in group 5)."""
SERVOS = {
    "lift": Servo(9000.0, 420.0, 80.0),
    "arm": Servo(6000.0, 260.0, 60.0),
    "wrist_yaw": Servo(60.0, 3.0, 4.0),
    "wrist_pitch": Servo(60.0, 3.0, 6.0),
    "wrist_roll": Servo(30.0, 1.5, 3.0),
    "head_pan": Servo(20.0, 1.0, 3.0),
    "head_tilt": Servo(20.0, 1.0, 3.0),
}
FINGER = Servo(1500.0, 25.0, 14.0)


def build_stretch(layout: Layout, shown: Truth | None = None) -> str:
    """The robot in a world; `shown`: as a camera sees that then."""
    names = [one.thing.name for one in layout.things]
    beside = f"""<equality>
{_equality_xml(names, "hand" in layout.world.person)}
</equality>
<actuator>
{_actuator_xml()}
</actuator>"""
    return build_room(layout, shown, robot=_robot_xml(), beside=beside)


def _robot_xml() -> str:
    white, grey, dark, black = "0.92 0.92 0.93 1", "0.68 0.69 0.71 1", "0.25 0.26 0.28 1", "0.13 0.13 0.14 1"
    body = f'{COLLISION_ROBOT} group="1"'
    shown = f'{COLLISION_NONE} group="1"'
    mast_x, mast_y = k.MAST_XY_M
    half_track = STRETCH_3.base.track_m / 2
    wheels = "".join(
        f'<geom type="cylinder" size="0.0508 0.0125" pos="0 {side * half_track} 0.0508" euler="{math.pi / 2} 0 0" '
        f'rgba="{black}" mass="0.5" {shown}/>'
        for side in (-1, 1)
    )
    tubes = "".join(
        f'<body name="tube_{number}" pos="0 0 0">{_slide(f"tube_{number}", "0 -1 0", 0.0, 0.52 * number / 4)}'
        f'<geom type="box" size="{0.034 - 0.004 * number} 0.12 {0.034 - 0.004 * number}" pos="0 -0.005 0" '
        f'rgba="{grey}" mass="0.1" {body}/></body>'
        for number in (1, 2, 3)
    )
    fingers = "".join(_finger_xml(name, side, body, dark, black) for name, side in (("left", 1), ("right", -1)))
    camera_x, camera_y, camera_z = k.WRIST_CAMERA_M
    sine, cosine = math.sin(k.WRIST_CAMERA_TILT_RAD), math.cos(k.WRIST_CAMERA_TILT_RAD)
    return f"""
<body name="base" gravcomp="1">
{_slide("base_x", "1 0 0", None, None)}{_slide("base_y", "0 1 0", None, None)}
<joint name="base_yaw" type="hinge" axis="0 0 1"/>
<geom name="base" type="box" size="0.16 0.15 0.065" pos="-0.10 0 0.085" rgba="{dark}" mass="16" {body}/>
<geom name="base_top" type="box" size="0.155 0.145 0.006" pos="-0.10 0 0.156" rgba="{white}" mass="0.5" {body}/>
{wheels}
<geom name="mast" type="cylinder" size="0.033 0.495" pos="{mast_x} {mast_y} 0.655" rgba="{grey}" mass="2" {body}/>
<geom type="cylinder" size="0.018 0.08"
 pos="{mast_x} {mast_y} 1.23" rgba="{grey}" mass="0.1" {COLLISION_NONE} group="2"/>
<body name="head_pan" pos="{mast_x} {mast_y} {k.HEAD_Z_M}" gravcomp="1">
{_hinge("head_pan", "0 0 1", 0.02)}
<geom type="cylinder" size="0.035 0.02" pos="0 0 -0.025" rgba="{black}" mass="0.2" {COLLISION_NONE} group="2"/>
<body name="head_tilt" gravcomp="1">
{_hinge("head_tilt", "0 -1 0", 0.02)}
<geom name="head" type="box" size="0.02 0.055 0.022" pos="0.012 0 0" rgba="{black}" mass="0.2" {COLLISION_NONE}
 group="2"/>
<camera name="head" pos="{k.HEAD_CAMERA_AHEAD_M} 0 0" xyaxes="0 -1 0 0 0 1"
 fovy="{CAMERA_FOVY_DEG["head"]}"/>
</body></body>
<body name="lift" pos="0 0 {k.ARM_Z_M}" gravcomp="1">
{_slide("lift", "0 0 1", *_range("lift"))}
<geom type="box" size="0.055 0.055 0.06" pos="-0.055 0.125 0" rgba="{white}" mass="1.0" {body}/>
<geom type="box" size="0.034 0.12 0.034" pos="0 0.01 0" rgba="{white}" mass="1.0" {body}/>
{tubes}
<body name="arm" gravcomp="1">
{_slide("arm", "0 -1 0", *_range("arm"))}
<geom type="box" size="0.018 0.12 0.018" pos="0 -0.01 0" rgba="{grey}" mass="0.5" {body}/>
<geom type="cylinder" size="0.024 0.030" pos="0 {-k.WRIST_OUT_M} -0.005" rgba="{dark}" mass="0.3" {body}/>
<body name="wrist_yaw" pos="0 {-k.WRIST_OUT_M} {-k.WRIST_DROP_M}" euler="0 0 {-math.pi / 2}" gravcomp="1">
{_hinge("wrist_yaw", "0 0 1", 0.03)}
<geom type="cylinder" size="0.026 0.022" pos="0 0 0.012" rgba="{black}" mass="0.2" {body}/>
<body name="wrist_pitch" gravcomp="1">
{_hinge("wrist_pitch", "0 -1 0", 0.03)}
<geom type="cylinder" size="0.020 0.032" euler="{math.pi / 2} 0 0" rgba="{dark}" mass="0.1" {body}/>
<body name="wrist_roll" gravcomp="1">
{_hinge("wrist_roll", "1 0 0", 0.02)}
<geom type="box" size="0.022 0.024 0.020" pos="0.034 0 0" rgba="{black}" mass="0.15" {body}/>
<geom type="box" size="0.008 0.074 0.014" pos="0.062 0 0" rgba="{dark}" mass="0.1" {body}/>
<geom type="box" size="0.010 0.020 0.010" pos="{camera_x - 0.005} {camera_y} {camera_z}" rgba="{black}" mass="0.05"
 {COLLISION_NONE} group="3"/>
<camera name="wrist" pos="{camera_x} {camera_y} {camera_z}" xyaxes="0 -1 0 {sine} 0 {cosine}"
 fovy="{CAMERA_FOVY_DEG["wrist"]}"/>
<site name="grasp" pos="{k.GRASP_REACH_M} 0 0" size="0.004" group="4"/>
{fingers}
</body></body></body></body></body></body>"""


def _finger_xml(name: str, side: int, body: str, dark: str, black: str) -> str:
    """A stiff finger with a soft pad at its end; at joint position 0 the two pads touch."""
    start, end = k.FINGER_END_M - k.FINGER_LENGTH_M, k.FINGER_END_M
    middle, half = (start + end) / 2, (end - start) / 2
    contact = 'friction="1.6 0.02 0.001" solref="0.008 1" condim="4"'
    return (
        f'<body name="finger_{name}" gravcomp="1">'
        f'<joint name="finger_{name}" type="slide" axis="0 {side} 0" range="-0.002 0.06" armature="0.05" damping="2"/>'
        f'<geom type="box" size="{half} 0.004 0.008" pos="{middle} {side * 0.009} 0" rgba="{dark}" mass="0.04" {body}/>'
        f'<geom name="pad_{name}" type="box" size="0.025 0.005 0.013" pos="{end - 0.025} {side * 0.005} 0" '
        f'rgba="{black}" mass="0.02" {body} {contact}/></body>'
    )


def _equality_xml(things: list[str], is_with_person: bool) -> str:
    tubes = [
        f'<joint joint1="tube_{number}" joint2="arm" polycoef="0 {number / 4} 0 0 0" solref="0.01 1"/>'
        for number in (1, 2, 3)
    ]
    # Off until both fingers press on the thing, or it lies in a person's hand (see grip.py and hand_over.py).
    welds = [
        f'<weld name="{name}_{thing}" body1="{hand}" body2="{thing}" active="false" solref="0.01 1"/>'
        for name, hand in (("hold", "wrist_roll"), ("give", "hand"))[: 1 + is_with_person]
        for thing in things
    ]
    return "\n".join(tubes + welds)


def _actuator_xml() -> str:
    lines = []
    for name, servo in SERVOS.items():
        lines.append(_position(name, name, servo))
    for side in ("left", "right"):
        lines.append(_position(f"finger_{side}", f"finger_{side}", FINGER))
    for name in BASE_JOINTS:
        gain, force = (BASE_YAW_GAIN, BASE_TORQUE_NM) if name == "base_yaw" else (BASE_GAIN, BASE_FORCE_N)
        lines.append(f'<velocity name="{name}" joint="{name}" kv="{gain}" forcerange="{-force} {force}"/>')
    return "\n".join(lines)


def _position(name: str, joint: str, servo: Servo) -> str:
    return (
        f'<position name="{name}" joint="{joint}" kp="{servo.stiffness}" kv="{servo.damping}" '
        f'forcerange="{-servo.force} {servo.force}"/>'
    )


def _range(name: str) -> tuple[float, float]:
    joint = next(joint for joint in STRETCH_3.joints if joint.name == name)
    return joint.lowest, joint.highest


def _slide(name: str, axis: str, lowest: float | None, highest: float | None) -> str:
    limits = "" if lowest is None else f' range="{lowest} {highest}"'
    return f'<joint name="{name}" type="slide" axis="{axis}"{limits}/>'


def _hinge(name: str, axis: str, armature: float) -> str:
    lowest, highest = _range(name)
    return (
        f'<joint name="{name}" type="hinge" axis="{axis}" range="{lowest} {highest}" armature="{armature}" '
        f'damping="0.05"/>'
    )
