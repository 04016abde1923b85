"""Claims about `nodes/perception/objects.py`, measured against the simulated kitchen."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

from nodes.msgs import JOINTS, RobotState, SeenObject
from nodes.perception.colors import colour_codes, name_colour
from nodes.perception.objects import find_objects, is_at_foot, place_is_empty
from nodes.perception.point_cloud import Shot, back_project
from nodes.sim.camera import FARTHEST_M
from nodes.sim.rendering.renderer import RayRenderer
from nodes.sim.world.table_scene import BIN_XY_M, BIN_Z_M, TABLE_HEIGHT_M
from nodes.sim.world.world_file import Thing
from nodes.stretch import kinematics as k
from nodes.stretch.body import BODY
from nodes.stretch.limits import STOW
from tests.support.table import build_scene

SEEDS = range(24)


@dataclass(frozen=True)
class View:
    """A picture of the kitchen with what is known about it."""

    things: tuple[Thing, ...]
    rgb: NDArray[np.uint8]
    depth_m: NDArray[np.float32]
    focal_px: float
    state: RobotState

    def find(self) -> tuple[SeenObject, ...]:
        shot = Shot(self.depth_m, self.focal_px, *BODY.head_camera(self.state))
        return find_objects(self.rgb, shot, own=BODY.own_parts(self.state))

    def place(self, thing: Thing) -> tuple[float, float]:
        """Column and row of the thing's centre."""
        rotation, position = BODY.head_camera(self.state)
        right, down, forward = (np.array([thing.x_m, thing.y_m, thing.z_m]) - position) @ rotation
        return 80 + self.focal_px * right / forward, 60 + self.focal_px * down / forward


def look(
    seed: int,
    at: tuple[float, float, float] = (0.0, -0.65, 0.5),
    *,
    base: tuple[float, float] = (0.0, 0.0),
    gripper_out: bool = False,
    fallen: tuple[float, float] | None = None,
) -> View:
    scene = build_scene(seed)
    model = mujoco.MjModel.from_xml_string(scene.xml)
    data = mujoco.MjData(model)
    position = list(STOW)
    if gripper_out:
        position[:6] = [0.9, 0.3, 0.0, k.DOWN_RAD, 0.0, 0.11]
    base_x, heading = base
    position[k.HEAD_PAN], position[k.HEAD_TILT] = k.look_at(at, base_x, 0.0, heading)
    joints = {"base_x": base_x, "base_yaw": heading}
    joints |= {name: value for name, value in zip(JOINTS, position, strict=True) if name != "gripper"}
    joints |= {f"tube_{n}": position[k.ARM] * n / 4 for n in (1, 2, 3)}
    joints |= {f"finger_{side}": position[k.GRIPPER] / 2 for side in ("left", "right")}
    for name, value in joints.items():
        data.qpos[model.joint(name).qposadr[0]] = value
    if fallen is not None:
        first = model.joint(f"{scene.things[0].name}_free").qposadr[0]
        data.qpos[first : first + 3] = (*fallen, scene.things[0].height_m / 2)
    mujoco.mj_forward(model, data)
    camera = RayRenderer(model, "head", 160, 120, FARTHEST_M)
    rgb, depth = camera.render(data)
    zeros = (0.0,) * len(JOINTS)
    state = RobotState(
        read_ns=0, position=tuple(position), velocity=zeros, effort=zeros, base_x_m=base_x, base_y_m=0.0,
        base_heading_rad=heading, base_v_mps=0.0, base_w_radps=0.0,
    )  # fmt: skip
    return View(scene.things, rgb, depth, camera.focal_px, state)


def nearest(seen: tuple[SeenObject, ...], thing: Thing) -> tuple[SeenObject | None, float]:
    things = [one for one in seen if one.label != "bin"]
    distances = [math.hypot(one.x_m - thing.x_m, one.y_m - thing.y_m) for one in things]
    if not distances or min(distances) > 0.06:
        return None, math.inf
    best = int(np.argmin(distances))
    return things[best], distances[best]


def test_every_thing_on_the_table_is_found_and_named_within_a_centimetre() -> None:
    errors = []
    for seed in SEEDS:
        view = look(seed)
        seen = view.find()
        for thing in view.things:
            one, error = nearest(seen, thing)
            assert one is not None, f"seed {seed}: {thing.name} not found in {seen}"
            assert (one.label, one.colour) == (thing.label, thing.colour), f"seed {seed}"
            assert one.height_m == pytest.approx(thing.height_m, abs=0.01)
            errors.append(error)
        assert len([one for one in seen if one.label != "bin"]) == len(view.things)
    middle, most = np.percentile(errors, [50, 95])
    assert middle < 0.004
    assert most < 0.009


def test_what_is_sure_is_right_with_the_arm_in_the_picture() -> None:
    sure = right = missed = 0
    for seed in SEEDS:
        for base, at in (((-0.1, -0.03), (-0.2, -0.6, 0.5)), ((0.5, 0.0), (0.66, -0.58, 0.4))):
            view = look(seed, at, base=base, gripper_out=True)
            seen = [one for one in view.find() if one.label != "bin"]
            for thing in view.things:
                one, error = nearest(tuple(seen), thing)
                if one is not None:
                    seen.remove(one)
                    if one.confidence >= 0.5:
                        sure += 1
                        right += (one.label, one.colour) == (thing.label, thing.colour) and error < 0.012
            missed += sum(one.confidence >= 0.5 for one in seen)
    assert sure > 120
    assert right == sure
    assert missed == 0  # nothing is seen for sure where there is nothing


def test_the_bin_is_found_beside_the_table() -> None:
    for seed in range(4):
        boxes = [one for one in look(seed, (0.5, -0.6, 0.4), base=(0.2, 0.05)).find() if one.label == "bin"]
        assert len(boxes) == 1
        assert boxes[0].confidence >= 0.5
        assert (boxes[0].x_m, boxes[0].y_m) == pytest.approx(BIN_XY_M, abs=0.02)
        assert boxes[0].z_m + boxes[0].height_m / 2 == pytest.approx(BIN_Z_M[1], abs=0.02)


def test_depth_that_jumps_by_millimetres_does_not_matter() -> None:
    generator = np.random.default_rng(1)
    for seed in range(4):
        view = look(seed)
        noise = generator.normal(0.0, 0.001, view.depth_m.shape).astype(np.float32)
        noisy = View(view.things, view.rgb, view.depth_m + noise, view.focal_px, view.state)
        seen = noisy.find()
        for thing in view.things:
            one, error = nearest(seen, thing)
            assert one is not None
            assert one.colour == thing.colour
            assert error < 0.02


def test_a_place_is_empty_only_where_the_camera_looks_through_it() -> None:
    view = look(0)
    rotation, position = BODY.head_camera(view.state)

    def is_empty(x: float, y: float, z: float) -> bool:
        return place_is_empty(Shot(view.depth_m, view.focal_px, rotation, position), (x, y, z))

    thing = view.things[0]
    assert not is_empty(thing.x_m, thing.y_m, thing.z_m)
    assert is_empty(thing.x_m, thing.y_m + 0.02, thing.z_m + 0.2)
    assert not is_empty(0.0, -0.6, TABLE_HEIGHT_M - 0.2)  # hidden below the table
    assert not is_empty(3.0, 3.0, 0.5)  # behind the camera


def test_without_depth_or_table_there_is_nothing() -> None:
    view = look(0)
    rotation, position = BODY.head_camera(view.state)
    assert find_objects(view.rgb, Shot(np.zeros_like(view.depth_m), view.focal_px, rotation, position)) == ()
    wall, ahead = np.full_like(view.depth_m, 2.0), np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]])
    assert find_objects(view.rgb, Shot(wall, view.focal_px, ahead, position)) == ()


def test_back_projection_puts_the_middle_pixel_straight_ahead() -> None:
    points = back_project(Shot(np.full((3, 3), 2.0, dtype=np.float32), 100.0, np.eye(3), np.array([1.0, 0.0, 0.0])))
    assert points[:, 4] == pytest.approx([1.0, 0.0, 2.0])
    assert points[:, 5] == pytest.approx([1.02, 0.0, 2.0])


@pytest.mark.parametrize(
    ("hsv", "name"),
    [((0, 230, 200), "red"), ((178, 230, 200), "red"), ((13, 240, 250), "orange"), ((12, 200, 80), "brown"),
     ((25, 235, 240), "yellow"), ((66, 210, 150), "green"), ((91, 210, 100), "teal"), ((113, 220, 200), "blue"),
     ((140, 190, 160), "purple"), ((0, 10, 220), "white"), ((100, 30, 120), "grey"), ((0, 0, 20), "black")],
)  # fmt: skip
def test_colours_have_names(hsv: tuple[int, int, int], name: str) -> None:
    pixels = np.array([hsv] * 9, dtype=np.uint8)
    assert name_colour(colour_codes(pixels), pixels[:, 2]) == name


@pytest.mark.parametrize("fallen", [None, (0.9, -0.2), (-0.5, -0.35), (0.6, 0.1)])
def test_a_thing_on_the_floor_is_found_there_and_nothing_else_is(fallen: tuple[float, float] | None) -> None:
    for seed in range(6):
        x, y = fallen or (0.6, -0.2)
        view = look(seed, (x, y, 0.0), fallen=fallen)
        low = [one for one in view.find() if not one.is_place and one.z_m < TABLE_HEIGHT_M / 2]
        assert [(one.label, one.colour) for one in low] == (
            [(view.things[0].label, view.things[0].colour)] if fallen else []
        )
        assert all(math.dist((one.x_m, one.y_m), (x, y)) < 0.02 for one in low)


def test_what_shows_at_a_corner_of_a_box_is_of_the_box_and_what_lies_beside_it_is_not() -> None:
    def seen(x_m: float, y_m: float, width_m: float) -> SeenObject:
        return SeenObject(
            id="",
            label="",
            colour="grey",
            x_m=x_m,
            y_m=y_m,
            z_m=0.03,
            width_m=width_m,
            height_m=0.05,
            u_px=3.0,
            v_px=80.0,
        )

    box = seen(0.618, -0.578, 0.191)
    assert is_at_foot(seen(0.570, -0.484, 0.016), box)  # a corner, as a moving head saw it at a picture's edge
    assert not is_at_foot(seen(0.45, -0.40, 0.07), box)
