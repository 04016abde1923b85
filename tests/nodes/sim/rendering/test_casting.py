"""The fast ray caster sees what MuJoCo's own rays see, whatever the posture and wherever the person stands."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from nodes.msgs import JOINTS
from nodes.sim.camera import FARTHEST_M
from nodes.sim.rendering.casting import Caster
from nodes.sim.rendering.pixel_grid import NOTHING
from nodes.sim.rendering.renderer import make_renderer
from nodes.sim.world.mjcf import HIDDEN_GROUP
from tests.support.table import build_scene


def anyhow(seed: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """A scene with the robot in some posture and the person's parts somewhere."""
    generator = np.random.default_rng(seed)
    model = mujoco.MjModel.from_xml_string(build_scene(seed).xml)
    data = mujoco.MjData(model)
    for name in JOINTS:
        if name != "gripper":
            data.joint(name).qpos = generator.uniform(*model.joint(name).range)
    data.joint("base_yaw").qpos = generator.uniform(-1, 1)
    data.mocap_pos[:] = generator.uniform(-0.5, 0.8, (model.nmocap, 3))
    mujoco.mj_kinematics(model, data)
    mujoco.mj_camlight(model, data)
    return model, data


@pytest.mark.parametrize("camera", ["head", "wrist", "room"])
@pytest.mark.parametrize("seed", range(8))
def test_every_ray_meets_what_a_ray_of_mujoco_meets(camera: str, seed: int) -> None:
    model, data = anyhow(seed)
    width, height, focal_px = 48, 36, 40.0
    across = (np.arange(width) + 0.5 - width / 2) / focal_px
    up = (height / 2 - np.arange(height) - 0.5) / focal_px
    caster = Caster(model, HIDDEN_GROUP[camera], across, up, FARTHEST_M)
    eye, axes = data.camera(camera).xpos, data.camera(camera).xmat.reshape(3, 3)
    caster.cast(data, eye, axes)
    grid = np.stack(np.broadcast_arrays(across[None, :], up[:, None], -1.0), axis=-1).reshape(-1, 3)
    norm = np.linalg.norm(grid, axis=1)
    rays = (grid / norm[:, None]) @ axes.T
    seen = np.array([group != HIDDEN_GROUP[camera] for group in range(6)], dtype=np.uint8)
    geom, distance = np.zeros(len(rays), dtype=np.int32), np.zeros(len(rays))
    mujoco.mj_multiRay(
        model, data, eye, rays.reshape(-1), seen, True, -1, geom, distance, None, len(rays), FARTHEST_M
    )  # fmt: skip
    expected_m = np.where(geom >= 0, distance / norm, np.inf)
    found = caster.grid.surface.reshape(-1)
    depth_m = np.where(found == NOTHING, np.inf, 1.0 / caster.grid.nearness.reshape(-1))
    # A ray along an edge may go to either side of it: of 1728 rays not more than a few.
    is_same = np.isclose(depth_m, expected_m, atol=1e-4)
    assert (~is_same).sum() <= 2
    assert (caster.surfaces.geom[found][is_same & (geom >= 0)] == geom[is_same & (geom >= 0)]).mean() > 0.99


def test_a_box_around_the_eye_is_seen_from_within() -> None:
    xml = """<mujoco><worldbody><camera name="head" xyaxes="0 -1 0 0 0 1"/>
    <geom type="box" size="2 3 4" rgba="1 0 0 1"/></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    rgb, depth_m = make_renderer(model, "head", 16, 12, "rays", FARTHEST_M).render(data)
    assert depth_m == pytest.approx(np.full((12, 16), 2.0), abs=1e-5)
    assert (rgb[..., 0] > 0).all()


@pytest.mark.parametrize("ahead_m", [2.0, -2.0])
@pytest.mark.parametrize(
    "shape",
    [
        'sphere" size="0.5',
        'capsule" size="0.5 0.2',
        'cylinder" size="0.5 0.5',
        'box" size="0.5 0.5 0.5',
    ],
)
def test_a_thing_alone_is_seen_ahead_and_not_behind(shape: str, ahead_m: float) -> None:
    xml = f"""<mujoco><worldbody><camera name="head" xyaxes="0 -1 0 0 0 1"/>
    <geom type="{shape}" pos="{ahead_m} 0 0" rgba="1 0 0 1"/></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    _, depth_m = make_renderer(model, "head", 16, 12, "rays", FARTHEST_M).render(data)
    if ahead_m > 0:
        assert depth_m[5:7, 7:9] == pytest.approx(np.full((2, 2), 1.5), abs=0.02)
    else:
        assert not depth_m.any()


def test_a_disc_close_behind_the_eye_is_not_seen() -> None:
    """The ball around it reaches past the eye, and no part of it does."""
    xml = """<mujoco><worldbody><camera name="head" xyaxes="0 -1 0 0 0 1"/>
    <geom type="cylinder" pos="-0.1 0 0" euler="0 90 0" size="0.5 0.02" rgba="1 0 0 1"/></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    _, depth_m = make_renderer(model, "head", 16, 12, "rays", FARTHEST_M).render(data)
    assert (depth_m == 0.0).all()


def test_a_cylinder_around_the_eye_is_seen_from_within() -> None:
    xml = """<mujoco><worldbody><camera name="head" xyaxes="0 -1 0 0 0 1"/>
    <geom type="cylinder" size="2 1" rgba="1 0 0 1"/></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    _, depth_m = make_renderer(model, "head", 16, 12, "rays", FARTHEST_M).render(data)
    assert depth_m[5:7, 7:9] == pytest.approx(np.full((2, 2), 2.0), abs=0.02)
    assert depth_m.all()


def test_a_mesh_is_refused_in_words() -> None:
    xml = """<mujoco><worldbody><camera name="head"/><geom type="ellipsoid" size="1 2 3"/></worldbody></mujoco>"""
    with pytest.raises(ValueError, match="ELLIPSOID; expected box, plane"):
        make_renderer(mujoco.MjModel.from_xml_string(xml), "head", 16, 12, "rays", FARTHEST_M)
