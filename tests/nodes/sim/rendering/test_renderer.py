from __future__ import annotations

import colorsys
import os
import subprocess
import sys

import mujoco
import numpy as np
import pytest

from nodes.msgs import JOINTS
from nodes.sim.camera import FARTHEST_M
from nodes.sim.rendering.renderer import Frame, make_renderer
from nodes.sim.world.table_scene import TABLE_HEIGHT_M
from nodes.sim.world.world_file import Thing
from nodes.stretch import kinematics as k
from nodes.stretch.limits import STOW
from runtime.errors import UserError
from tests.support.table import build_scene

PAN_RAD, TILT_RAD = k.look_at((0.13, -0.56, TABLE_HEIGHT_M), 0.0, 0.0, 0.0)
POSITION = (*STOW[:6], PAN_RAD, TILT_RAD)
WIDTH, HEIGHT = 160, 120


def draw(seed: int = 0) -> tuple[Frame, float, tuple[Thing, ...]]:
    scene = build_scene(seed)
    model = mujoco.MjModel.from_xml_string(scene.xml)
    data = mujoco.MjData(model)
    for name, value in zip(JOINTS, POSITION, strict=True):
        if name != "gripper":
            data.joint(name).qpos = value
    mujoco.mj_kinematics(model, data)
    mujoco.mj_camlight(model, data)
    renderer = make_renderer(model, "head", WIDTH, HEIGHT, "rays", FARTHEST_M)
    return renderer.render(data), renderer.focal_px, scene.things


def project(point_m: tuple[float, float, float], focal_px: float) -> tuple[float, float, float]:
    rotation, place = k.head_camera_pose(POSITION)
    across, down, ahead = rotation.T @ (np.array(point_m) - place)
    return WIDTH / 2 + focal_px * across / ahead, HEIGHT / 2 + focal_px * down / ahead, float(ahead)


def test_depth_of_the_table_is_right_within_5_mm() -> None:
    (_, depth_m), focal_px, _ = draw()
    for spot in ((-0.45, -0.75), (0.0, -0.42), (0.40, -0.48)):
        u, v, ahead = project((*spot, TABLE_HEIGHT_M), focal_px)
        # The nearest pixel centre sees the table a little off the spot: compare along that pixel's own ray.
        column, row = int(u), int(v)
        rotation, place = k.head_camera_pose(POSITION)
        ray = rotation @ [(column + 0.5 - WIDTH / 2) / focal_px, (row + 0.5 - HEIGHT / 2) / focal_px, 1.0]
        expected = (TABLE_HEIGHT_M - place[2]) / ray[2]
        assert abs(depth_m[row, column] - expected) < 0.005
        assert abs(expected - ahead) < 0.03


@pytest.mark.parametrize("seed", range(4))
def test_everything_on_the_table_is_seen_in_its_colour_from_the_start(seed: int) -> None:
    (rgb, _), focal_px, things = draw(seed)
    hue_of = {"red": 0.0, "orange": 0.07, "yellow": 0.14, "green": 0.36, "blue": 0.63, "purple": 0.78, "brown": 0.06}
    for thing in things:
        u, v, _ = project((thing.x_m, thing.y_m + thing.width_m / 2, thing.z_m), focal_px)
        hue, saturation, value = colorsys.rgb_to_hsv(*(rgb[int(v), int(u)] / 255.0))
        if thing.colour == "white":
            assert saturation < 0.1
            assert value > 0.6
        else:
            assert abs((hue - hue_of[thing.colour] + 0.5) % 1.0 - 0.5) < 0.04
            assert saturation > 0.6


def test_the_whole_table_and_the_bin_are_in_view_from_the_start() -> None:
    _, focal_px, _ = draw()
    corners = [(x, y, TABLE_HEIGHT_M) for x in (-0.50, 0.44) for y in (-0.86, -0.40)]
    for corner in [*corners, (0.79, -0.41, 0.4), (0.79, -0.75, 0.4)]:
        u, v, _ = project(corner, focal_px)
        assert 0 < u < WIDTH
        assert 0 < v < HEIGHT


def test_casting_many_rays_at_once_hits_what_single_rays_hit() -> None:
    scene = build_scene()
    model = mujoco.MjModel.from_xml_string(scene.xml)
    data = mujoco.MjData(model)
    for name, value in zip(JOINTS, (0.75, 0.3, 0.0, -1.5, 0.0, 0.0, PAN_RAD, TILT_RAD), strict=True):
        if name != "gripper":
            data.joint(name).qpos = value
    mujoco.mj_kinematics(model, data)
    mujoco.mj_camlight(model, data)
    for camera in ("head", "wrist"):
        renderer = make_renderer(model, camera, 32, 24, "rays", FARTHEST_M)
        _, depth_m = renderer.render(data)
        axes = data.camera(camera).xmat.reshape(3, 3)
        seen = np.array([group != {"head": 2, "wrist": 3}[camera] for group in range(6)], dtype=np.uint8)
        hit = np.zeros(1, dtype=np.int32)
        for row, column in np.ndindex(24, 32):
            ray = axes @ [(column + 0.5 - 16) / renderer.focal_px, (12 - row - 0.5) / renderer.focal_px, -1.0]
            norm = np.linalg.norm(ray)
            single_m = mujoco.mj_ray(model, data, data.camera(camera).xpos, ray / norm, seen, True, -1, hit)
            expected = single_m / norm if hit[0] >= 0 else 0.0
            assert abs(depth_m[row, column] - expected) < 1e-4


def test_the_same_state_gives_the_same_picture() -> None:
    (rgb, depth_m), _, _ = draw(1)
    (again, depth_again_m), _, _ = draw(1)
    np.testing.assert_array_equal(rgb, again)
    np.testing.assert_array_equal(depth_m, depth_again_m)
    assert rgb.dtype == np.uint8
    assert depth_m.dtype == np.float32


def test_rays_need_no_opengl() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MUJOCO_GL"}
    program = (
        "import mujoco\n"
        "from nodes.sim.rendering.renderer import make_renderer\n"
        "from tests.support.table import build_scene\n"
        "model = mujoco.MjModel.from_xml_string(build_scene().xml)\n"
        "data = mujoco.MjData(model)\n"
        "mujoco.mj_forward(model, data)\n"
        "rgb, depth_m = make_renderer(model, 'head', 16, 12, 'rays', 20.0).render(data)\n"
        "assert rgb.shape == (12, 16, 3) and depth_m.max() > 0.5\n"
    )
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)


def test_an_unknown_back_end_or_camera_is_refused_with_the_choices() -> None:
    model = mujoco.MjModel.from_xml_string(build_scene().xml)
    with pytest.raises(UserError, match="known: rays, gl"):
        make_renderer(model, "head", 16, 12, "vulkan", FARTHEST_M)
    with pytest.raises(UserError, match="known: head, wrist"):
        make_renderer(model, "tail", 16, 12, "rays", FARTHEST_M)
