"""Where a Stretch's gripper and cameras are for given joint positions, and the joint positions that reach a point.

Base frame: x forward, y left, z up, origin on the floor between the wheels. Lengths in m, angles in rad. Joint
positions are in the order of `msgs.JOINTS` with the robot's own signs: `wrist_yaw` 0 points the gripper along the arm
(outward, -y) and 3.0 folds it back; `wrist_pitch` -pi/2 points it down; `head_pan` 0 looks forward and -pi/2 along the
arm; `head_tilt` below 0 looks down. A camera's rotation has the columns right, down, forward (optical frame).

A way to pick and place that works on the simulated robot, from above with `wrist_yaw` 0 and `wrist_pitch` `DOWN_RAD`
(fingers open along the base's x): aim 0.01 m above a cup's centre; drive by `Reach.travel_m` and solve again, since
the heading may have turned a little; with arm and gripper still folded raise the lift to `lift_m` + 0.20 (the table's
edge is 0.40 m to the right: never raise the lift with the arm out under the table); turn the wrist, open the gripper
to 0.12 m and extend the arm; lower to `lift_m`; close towards 0 until `is_grasping`; raise by 0.20, which clears the
tallest thing also with a cup in hand; drive until the bin's centre is abeam, arm to its depth, lower to 0.10 m above
its rim, open. Errors of 15 mm in x and y are harmless.

The dimensions are nominal. The simulator's model has the same, and its own positions prove these functions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodes.msgs import JOINTS, JointVector
from nodes.robot.products import product, turn_z
from nodes.stretch.limits import STRETCH_3

Vector = NDArray[np.float64]
Pose = tuple[NDArray[np.float64], Vector]
"""Rotation (3, 3) with columns right, down, forward, and position (3,)."""
Direction = tuple[float, float, float]

MAST_XY_M = (-0.07, 0.13)
HEAD_Z_M = 1.33
"""Height of the crossing of the head's pan and tilt axes, above the mast."""
HEAD_CAMERA_AHEAD_M = 0.035
ARM_Z_M = 0.17
"""Height of the arm's axis at lift 0; it runs along -y at x = 0."""
WRIST_OUT_M = 0.16
"""How far to the right of the base's centre the wrist's yaw axis stands at arm 0."""
WRIST_DROP_M = 0.06
"""How far the pitch axis hangs below the arm's axis."""
GRASP_REACH_M = 0.215
"""From the pitch axis to the point between the fingertips."""
FINGER_END_M = 0.235
"""From the pitch axis to the ends of the fingers."""
WRIST_CAMERA_M = (0.03, 0.0, 0.055)
"""From the pitch axis, along the gripper's own x (pointing), y (opening) and z."""
WRIST_CAMERA_TILT_RAD = 0.26
"""How far the wrist camera looks down towards the fingertips."""

DOWN_RAD = -math.pi / 2
"""`wrist_pitch` of a gripper that points straight down."""

LIFT, ARM, WRIST_YAW, WRIST_PITCH, WRIST_ROLL, GRIPPER, HEAD_PAN, HEAD_TILT = range(len(JOINTS))
"""Places in a joint vector."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How to bring the point between the fingertips to a target: drive this far ahead, then these joint positions."""

    travel_m: float
    lift_m: float
    arm_m: float
    wrist_pitch_rad: float


def grasp_point(position: JointVector) -> Vector:
    """The point between the fingertips (3,), base frame."""
    return _from_pitch_axis(position, _pointing(_yaw(position), position[WRIST_PITCH])[0], GRASP_REACH_M)


def head_camera_pose(position: JointVector) -> Pose:
    """Rotation and position of the head camera, base frame."""
    ahead, left, up = _pointing(position[HEAD_PAN], position[HEAD_TILT])
    x, y, z = (origin + HEAD_CAMERA_AHEAD_M * part for origin, part in zip((*MAST_XY_M, HEAD_Z_M), ahead, strict=True))
    return _optical(ahead, left, up), np.array([x, y, z])


def wrist_camera_pose(position: JointVector) -> Pose:
    """Rotation and position of the wrist camera, base frame."""
    points_to, left, up = _pointing(_yaw(position), position[WRIST_PITCH])
    left, up = _turned(left, up, position[WRIST_ROLL])
    reach, aside, height = WRIST_CAMERA_M
    place = _from_pitch_axis(position, points_to, reach) + aside * np.array(left) + height * np.array(up)
    up, ahead = _turned(up, points_to, WRIST_CAMERA_TILT_RAD)
    return _optical(ahead, left, up), place


def to_odometry(base_x_m: float, base_y_m: float, heading_rad: float, points: Vector) -> Vector:
    """Points (3,) or (n, 3) from the base frame to the odometry frame."""
    moved: Vector = product(np.asarray(points), turn_z(heading_rad).T)
    moved += (base_x_m, base_y_m, 0.0)
    return moved


def from_odometry(base_x_m: float, base_y_m: float, heading_rad: float, points: Vector) -> Vector:
    """Points (3,) or (n, 3) from the odometry frame to the base frame."""
    moved: Vector = product(np.asarray(points) - (base_x_m, base_y_m, 0.0), turn_z(heading_rad))
    return moved


def solve(
    target_m: tuple[float, float, float],
    base_x_m: float,
    base_y_m: float,
    heading_rad: float,
    *,
    wrist_pitch_rad: float = DOWN_RAD,
) -> Reach | None:
    """Reach a point of the odometry frame with `wrist_yaw` 0; None where lift or arm would leave their range."""
    ahead, left, up = from_odometry(base_x_m, base_y_m, heading_rad, np.array(target_m))
    reach = Reach(
        travel_m=float(ahead),
        lift_m=float(up) - ARM_Z_M + WRIST_DROP_M - GRASP_REACH_M * math.sin(wrist_pitch_rad),
        arm_m=-float(left) - WRIST_OUT_M - GRASP_REACH_M * math.cos(wrist_pitch_rad),
        wrist_pitch_rad=wrist_pitch_rad,
    )
    lift, arm = STRETCH_3.joints[LIFT], STRETCH_3.joints[ARM]
    is_in_range = lift.lowest <= reach.lift_m <= lift.highest and arm.lowest <= reach.arm_m <= arm.highest
    return reach if is_in_range else None


def look_at(
    target_m: tuple[float, float, float], base_x_m: float, base_y_m: float, heading_rad: float
) -> tuple[float, float]:
    """Head pan and tilt that put a point of the odometry frame in the middle of the head camera's image."""
    point = from_odometry(base_x_m, base_y_m, heading_rad, np.array(target_m))
    ahead, left, up = point - np.array([*MAST_XY_M, HEAD_Z_M])
    pan, tilt = STRETCH_3.joints[HEAD_PAN], STRETCH_3.joints[HEAD_TILT]
    pan_rad = math.atan2(left, ahead)
    if pan_rad > pan.highest:
        pan_rad -= 2 * math.pi
    tilt_rad = math.atan2(up, math.hypot(ahead, left))
    return pan_rad, min(max(tilt_rad, tilt.lowest), tilt.highest)


def _from_pitch_axis(position: JointVector, direction: Direction, distance_m: float) -> Vector:
    x, y, z = direction
    out_m, up_m = WRIST_OUT_M + position[ARM], ARM_Z_M + position[LIFT] - WRIST_DROP_M
    return np.array([distance_m * x, distance_m * y - out_m, distance_m * z + up_m])


def _yaw(position: JointVector) -> float:
    return position[WRIST_YAW] - math.pi / 2


def _pointing(turn: float, rise: float) -> tuple[Direction, Direction, Direction]:
    """Where ahead, left and up are of what was turned to the left, then raised by that much.

    Numbers and not matrices: these are asked for at each image, where numpy takes several times as long.
    """
    ct, st, cr, sr = math.cos(turn), math.sin(turn), math.cos(rise), math.sin(rise)
    return (ct * cr, st * cr, sr), (-st, ct, 0.0), (-ct * sr, -st * sr, cr)


def _turned(one: Direction, other: Direction, angle: float) -> tuple[Direction, Direction]:
    """Two directions at right angles, turned in their plane: the first one towards the other."""
    c, s = math.cos(angle), math.sin(angle)
    (a, b, d), (x, y, z) = one, other
    return (c * a + s * x, c * b + s * y, c * d + s * z), (c * x - s * a, c * y - s * b, c * z - s * d)


def _optical(ahead: Direction, left: Direction, up: Direction) -> NDArray[np.float64]:
    """The rotation with the columns right, down, forward."""
    return np.array([(-a, -b, c) for a, b, c in zip(left, up, ahead, strict=True)])
