from __future__ import annotations

import mujoco
import numpy as np

from nodes.msgs import JOINTS
from nodes.sim.world.room_mjcf import CAMERA_FOVY_DEG
from nodes.sim.world.world_file import load_world
from nodes.stretch.limits import STOW, STRETCH_3
from tests.support.table import build_scene


def test_every_seed_gives_a_model_of_the_same_shape_and_look() -> None:
    models = [mujoco.MjModel.from_xml_string(build_scene(seed).xml) for seed in (0, 1)]
    assert models[0].nq == models[1].nq
    np.testing.assert_array_equal(models[0].geom_rgba, models[1].geom_rgba)


def test_the_stretch_of_the_file_moves_as_far_as_its_limits_say_and_sees_as_wide_as_the_room_s_cameras() -> None:
    model = mujoco.MjModel.from_xml_string(build_scene().xml)
    for joint in STRETCH_3.joints:
        if joint.name != "gripper":
            np.testing.assert_array_equal(model.joint(joint.name).range, (joint.lowest, joint.highest))
    gripper = next(joint for joint in STRETCH_3.joints if joint.name == "gripper")
    for side in ("left", "right"):  # half of the opening each
        low, high = model.joint(f"finger_{side}").range
        assert low <= gripper.lowest / 2
        assert gripper.highest / 2 <= high
    assert {name: model.camera(name).fovy.item() for name in CAMERA_FOVY_DEG} == CAMERA_FOVY_DEG


def test_nothing_falls_or_rolls_by_itself() -> None:
    scene = build_scene(2)
    model = mujoco.MjModel.from_xml_string(scene.xml)
    data = mujoco.MjData(model)
    for name, value in zip(JOINTS, STOW, strict=True):
        if name != "gripper":
            data.joint(name).qpos = value
            data.actuator(name).ctrl = value
    mujoco.mj_step(model, data, 500)
    for thing in scene.things:
        np.testing.assert_allclose(data.body(thing.name).xpos, (thing.x_m, thing.y_m, thing.z_m), atol=0.003)


def test_the_collaborator_waits_outside_the_view() -> None:
    model = mujoco.MjModel.from_xml_string(build_scene().xml)
    data = mujoco.MjData(model)
    assert model.nmocap == 2
    for part, place in load_world("table").person.items():
        np.testing.assert_allclose(data.mocap_pos[model.body(part).mocapid[0]], place)
