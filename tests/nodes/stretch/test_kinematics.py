from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

from nodes.stretch import kinematics as k
from nodes.stretch.limits import STRETCH_3
from tests.support.table import build_scene

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]


def random_positions(count: int) -> list[tuple[float, ...]]:
    generator = np.random.default_rng(3)
    return [
        tuple(float(generator.uniform(joint.lowest, joint.highest)) for joint in STRETCH_3.joints) for _ in range(count)
    ]


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(build_scene().xml)


def posed(model: mujoco.MjModel, position: tuple[float, ...]) -> mujoco.MjData:
    data = mujoco.MjData(model)
    for joint, value in zip(STRETCH_3.joints, position, strict=True):
        if joint.name != "gripper":
            data.joint(joint.name).qpos = value
    mujoco.mj_kinematics(model, data)
    mujoco.mj_camlight(model, data)
    return data


@pytest.mark.parametrize("position", random_positions(12))
def test_grasp_point_and_cameras_are_where_the_model_has_them(
    model: mujoco.MjModel, position: tuple[float, ...]
) -> None:
    data = posed(model, position)
    np.testing.assert_allclose(k.grasp_point(position), data.site("grasp").xpos, atol=1e-9)
    for name, (rotation, place) in {
        "head": k.head_camera_pose(position),
        "wrist": k.wrist_camera_pose(position),
    }.items():
        axes = data.camera(name).xmat.reshape(3, 3)  # right, up, backward
        np.testing.assert_allclose(place, data.camera(name).xpos, atol=1e-9)
        np.testing.assert_allclose(rotation, axes * [1, -1, -1], atol=1e-9)


@pytest.mark.parametrize("pitch_rad", [k.DOWN_RAD, -0.8, 0.0])
@pytest.mark.parametrize("base", [(0.0, 0.0, 0.0), (0.3, -0.05, 0.2)])
def test_driving_and_reaching_as_solved_brings_the_fingertips_to_the_target(
    pitch_rad: float, base: tuple[float, float, float]
) -> None:
    x, y, heading = base
    target = (0.2, -0.6, 0.6)
    reach = k.solve(target, x, y, heading, wrist_pitch_rad=pitch_rad)
    assert reach is not None
    position = (reach.lift_m, reach.arm_m, 0.0, pitch_rad, 0.3, 0.1, 0.0, 0.0)
    x += reach.travel_m * math.cos(heading)
    y += reach.travel_m * math.sin(heading)
    np.testing.assert_allclose(k.to_odometry(x, y, heading, k.grasp_point(position)), target, atol=1e-9)


@pytest.mark.parametrize("target", [(0.0, -1.2, 0.6), (0.0, 0.1, 0.6), (0.0, -0.5, 1.5)])
def test_a_target_out_of_reach_is_no_reach(target: tuple[float, float, float]) -> None:
    assert k.solve(target, 0.0, 0.0, 0.0) is None


def test_odometry_and_base_frame_are_inverse() -> None:
    points = np.random.default_rng(1).normal(size=(5, 3))
    there = k.to_odometry(0.4, -0.2, 1.1, points)
    np.testing.assert_allclose(k.from_odometry(0.4, -0.2, 1.1, there), points, atol=1e-12)
    assert not np.allclose(there, points)


def test_a_pan_of_a_quarter_turn_right_looks_along_the_arm() -> None:
    position = (0.3, 0.0, 3.0, -0.6, 0.0, 0.0, -math.pi / 2, 0.0)
    rotation, _ = k.head_camera_pose(position)
    np.testing.assert_allclose(rotation[:, 2], [0.0, -1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(rotation[:, 0], [-1.0, 0.0, 0.0], atol=1e-12)


def test_looking_at_a_point_puts_it_on_the_optical_axis() -> None:
    target = (0.5, -0.6, 0.5)
    base = (0.1, 0.02, 0.15)
    pan, tilt = k.look_at(target, *base)
    rotation, place = k.head_camera_pose((0.3, 0.0, 3.0, -0.6, 0.0, 0.0, pan, tilt))
    across, down, ahead = rotation.T @ (k.from_odometry(*base, np.array(target)) - place)
    assert ahead > 0.5
    assert abs(across) < 1e-9
    assert abs(down) < 1e-9
