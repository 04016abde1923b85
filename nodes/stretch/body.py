"""What the robot knows of its own body: where its cameras look from, and which part of a picture is its own arm."""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np
from numpy.typing import NDArray

from nodes.msgs import JointVector, RobotState
from nodes.robot.products import product, turn_z
from nodes.robot.protocol import Ball, Capsule, PointM
from nodes.stretch.kinematics import (
    ARM,
    ARM_Z_M,
    FINGER_END_M,
    GRASP_REACH_M,
    GRIPPER,
    HEAD_PAN,
    HEAD_TILT,
    HEAD_Z_M,
    LIFT,
    MAST_XY_M,
    WRIST_DROP_M,
    WRIST_OUT_M,
    WRIST_PITCH,
    WRIST_ROLL,
    WRIST_YAW,
    grasp_point,
    head_camera_pose,
    to_odometry,
    wrist_camera_pose,
)

Floats = NDArray[np.float64]
ARM_BACK_M = 0.14
"""How far to the left the arm begins."""


BOOM_BALLS = 8
_FIXED: tuple[Ball, ...] = (
    *((x, y, 0.085, 0.08) for x in (-0.20, -0.10, 0.0) for y in (-0.09, 0.09)),
    *((*MAST_XY_M, z, 0.05) for z in (0.35, 0.65, 0.95)),
    (*MAST_XY_M, HEAD_Z_M, 0.10),
)


def outline(position: JointVector) -> tuple[Ball, ...]:
    """The balls that cover base, mast, arm and gripper, base frame; see `nodes.robot.protocol.CartesianLimits`.

    Numbers and not arrays: the guard asks several times in a tick.
    """
    yaw, pitch, roll = position[WRIST_YAW] - pi / 2, position[WRIST_PITCH], position[WRIST_ROLL]
    ct, st, cr, sr = cos(yaw), sin(yaw), cos(pitch), sin(pitch)
    out_m, up_m = WRIST_OUT_M + position[ARM], ARM_Z_M - WRIST_DROP_M + position[LIFT]
    half = position[GRIPPER] / 2
    c, s = half * cos(roll), half * sin(roll)
    aside = (-c * st - s * ct * sr, c * ct - s * st * sr, s * cr)  # from between the fingertips to one of them

    def ahead(by_m: float, radius_m: float, to: float = 0.0) -> Ball:
        return (
            by_m * ct * cr + to * aside[0],
            by_m * st * cr + to * aside[1] - out_m,
            by_m * sr + to * aside[2] + up_m,
            radius_m,
        )

    step_m = (out_m + ARM_BACK_M) / (BOOM_BALLS - 1)
    return (
        *_FIXED,
        *((0.0, ARM_BACK_M - place * step_m, up_m + WRIST_DROP_M, 0.06) for place in range(BOOM_BALLS)),
        ahead(0.0, 0.06),
        ahead(0.07, 0.05),
        ahead(0.14, 0.04),
        ahead(FINGER_END_M - 0.015, 0.015, 1.0),
        ahead(FINGER_END_M - 0.015, 0.015, -1.0),
    )


STEADY_RAD, STEADY_M = 0.02, 0.015
"""Less than this is no motion of the head camera."""


class StretchBody:
    """The `Body` of a Stretch 3."""

    skills = "nodes.policy.stretch_motion:StretchMotion"

    def head_camera(self, state: RobotState) -> tuple[Floats, Floats]:
        rotation, position = head_camera_pose(state.position)
        base = state.base_x_m, state.base_y_m, state.base_heading_rad
        return product(turn_z(state.base_heading_rad), rotation), to_odometry(*base, position)

    def own_parts(self, state: RobotState) -> tuple[Capsule, ...]:
        tip = grasp_point(state.position)
        camera_rotation, camera = wrist_camera_pose(state.position)
        opening = camera_rotation[:, 0]
        wrist = np.array([0.0, -WRIST_OUT_M - state.position[ARM], ARM_Z_M - WRIST_DROP_M + state.position[LIFT]])
        points_to = (tip - wrist) / GRASP_REACH_M
        palm, end = wrist + 0.03 * points_to, wrist + FINGER_END_M * points_to
        half = opening * (state.position[GRIPPER] / 2 + 0.007)
        above = wrist + np.array([0.0, 0.0, WRIST_DROP_M])
        parts = [
            (palm - half, end - half, 0.022),
            (palm + half, end + half, 0.022),
            (wrist + 0.06 * points_to - 0.075 * opening, wrist + 0.06 * points_to + 0.075 * opening, 0.035),
            (wrist, palm, 0.06),
            (camera, camera, 0.03),
            (above + np.array([0.0, 0.0, 0.04]), wrist - np.array([0.0, 0.0, 0.02]), 0.05),
            (np.array([0.0, ARM_BACK_M, above[2]]), above, 0.075),
        ]
        if state.is_grasping:
            parts.append((tip - 0.05 * points_to, tip + 0.11 * points_to, 0.065))
        ends = np.array([end for start, stop, _ in parts for end in (start, stop)])
        placed = to_odometry(state.base_x_m, state.base_y_m, state.base_heading_rad, ends).tolist()
        return tuple(
            Capsule(tuple(start), tuple(stop), radius)
            for start, stop, (_, _, radius) in zip(placed[::2], placed[1::2], parts, strict=True)
        )

    def hand_point(self, state: RobotState) -> PointM:
        x, y, z = to_odometry(state.base_x_m, state.base_y_m, state.base_heading_rad, grasp_point(state.position))
        return float(x), float(y), float(z)

    def is_steady(self, one: RobotState, two: RobotState) -> bool:
        turned = max(
            abs(one.position[HEAD_PAN] - two.position[HEAD_PAN]),
            abs(one.position[HEAD_TILT] - two.position[HEAD_TILT]),
            abs(one.base_heading_rad - two.base_heading_rad),
        )
        moved = max(abs(one.base_x_m - two.base_x_m), abs(one.base_y_m - two.base_y_m))
        return turned < STEADY_RAD and moved < STEADY_M


BODY = StretchBody()
