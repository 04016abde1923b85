"""What the robot knows of its own body: where its cameras look from, and which part of a picture is its own arm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodes.stretch.kinematics import (
    ARM,
    ARM_Z_M,
    FINGER_END_M,
    GRASP_REACH_M,
    GRIPPER,
    LIFT,
    WRIST_DROP_M,
    WRIST_OUT_M,
    grasp_point,
    head_camera_pose,
    to_odometry,
    turn_z,
    wrist_camera_pose,
)
from runtime.msgs import RobotState

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Capsule:
    """A part of the robot that its own camera may see: a line with a radius, in the frame of the camera pose; m."""

    start: tuple[float, float, float]
    end: tuple[float, float, float]
    radius_m: float


def head_pose(state: RobotState) -> tuple[Floats, Floats]:
    """Rotation (right, down, forward) and position of the head camera, odometry frame."""
    rotation, position = head_camera_pose(state.position)
    return _in_odometry(state, rotation, position)


def wrist_pose(state: RobotState) -> tuple[Floats, Floats]:
    """Rotation (right, down, forward) and position of the wrist camera, odometry frame."""
    rotation, position = wrist_camera_pose(state.position)
    return _in_odometry(state, rotation, position)


def own_parts(state: RobotState) -> tuple[Capsule, ...]:
    """The robot's arm and gripper, and what is in the gripper, odometry frame."""
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
        (np.array([0.0, 0.14, above[2]]), above, 0.075),
    ]
    if state.is_grasping:
        parts.append((tip - 0.05 * points_to, tip + 0.11 * points_to, 0.065))
    ends = np.array([end for start, stop, _ in parts for end in (start, stop)])
    placed = to_odometry(state.base_x_m, state.base_y_m, state.base_heading_rad, ends).tolist()
    return tuple(
        Capsule(tuple(start), tuple(stop), radius)
        for start, stop, (_, _, radius) in zip(placed[::2], placed[1::2], parts, strict=True)
    )


def _in_odometry(state: RobotState, rotation: Floats, position: Floats) -> tuple[Floats, Floats]:
    base = state.base_x_m, state.base_y_m, state.base_heading_rad
    return turn_z(state.base_heading_rad) @ rotation, to_odometry(*base, position)
