"""`Painter`: what head and wrist camera saw in a lesson, drawn afterwards; and where in it the things were.

A picture is older than what is felt: the head's by up to one tick, the wrist's by up to a fifth of a second.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, fields

import cv2
import mujoco
import numpy as np
from numpy.typing import NDArray

from examples.train_visuomotor.lessons import BIN, HEIGHT_PX, NAMES, WIDTH_PX, Rows, plane_of
from nodes.msgs import JOINTS
from nodes.robot_file.model import followers, let_follow
from nodes.sim.camera import WorldView, model_of
from nodes.sim.messages import World
from nodes.sim.world.room_mjcf import CAMERA_FOVY_DEG
from nodes.sim.world.table_scene import BIN_XY_M, TABLE_HEIGHT_M
from nodes.stretch.kinematics import GRIPPER, from_odometry, head_camera_pose, wrist_camera_pose

CAMERAS = {"head": (160, 120), "wrist": (96, 72)}
"""As launch/laptop.toml has them; the policy makes them smaller."""
LATE_TICKS = {"head": 1, "wrist": 5}
A_HAND = 0.15
"""In so many pictures a person's hand is somewhere above the table."""
HIDDEN_M = 0.08


@dataclass
class Scenes:
    """Pictures with all that is known of them; (n, ...)."""

    head: NDArray[np.uint8]
    wrist: NDArray[np.uint8]
    felt: NDArray[np.float32]  # joints, velocity, grasp, v
    place: NDArray[np.float32]  # (n, 9, 2): each thing, then the bin, in the base's frame when it was felt
    head_px: NDArray[np.float32]  # (n, 9, 2)
    wrist_px: NDArray[np.float32]
    head_seen: NDArray[np.bool_]  # (n, 9)
    wrist_seen: NDArray[np.bool_]
    stands: NDArray[np.bool_]  # (n, 9): on the table, not held
    about: NDArray[np.int64]  # (n,): the lesson's own target, or -1
    held: NDArray[np.int64]

    def save(self, file: str) -> None:
        np.savez(file, **{one.name: getattr(self, one.name) for one in fields(self)})

    @staticmethod
    def load(file: str) -> Scenes:
        with np.load(file) as kept:
            return Scenes(**{one.name: kept[one.name] for one in fields(Scenes)})


def together(parts: list[Scenes]) -> Scenes:
    return Scenes(**{one.name: np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Scenes)})


def small(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """As `PolicySession` makes a picture fit."""
    return cv2.resize(rgb, (WIDTH_PX, HEIGHT_PX), interpolation=cv2.INTER_AREA).astype(np.uint8)


class Painter:
    """Draws the kitchen as a row of a lesson's truth has it."""

    def __init__(self) -> None:
        model = self.model = model_of()
        self.views = {name: WorldView(model, name, *size) for name, size in CAMERAS.items()}
        self.followers = followers(model)
        self.thing = [int(model.joint(f"{name.replace(' ', '_')}_free").qposadr[0]) for name in NAMES[:BIN]]
        names = [name for name in JOINTS if name != "gripper"]
        self.joint = [int(model.joint(name).qposadr[0]) for name in names]
        self.felt = [JOINTS.index(name) for name in names]
        self.base = [int(model.joint(name).qposadr[0]) for name in ("base_x", "base_y", "base_yaw")]
        self.fingers = [int(model.joint(name).qposadr[0]) for name in ("finger_left", "finger_right")]
        self.hand = int(model.body("hand").mocapid[0])
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        self.parked = data.mocap_pos.copy()

    def draw(self, camera: str, true: tuple[float, ...], hand: tuple[float, float, float] | None) -> tuple[
        NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_]
    ]:  # fmt: skip
        """The small picture, where each thing is in it (9, 2), and whether it is seen there (9,)."""
        qpos = self.model.qpos0.copy()
        joints, pose, things = true[:8], true[8:11], np.array(true[11:]).reshape(-1, 3)
        qpos[self.joint] = [joints[place] for place in self.felt]
        qpos[self.base] = pose
        qpos[self.fingers] = joints[GRIPPER] / 2
        let_follow(qpos, self.followers)
        for place, where in zip(self.thing, things, strict=True):
            qpos[place : place + 3] = where
        mocap = self.parked.copy()
        if hand is not None:
            mocap[self.hand] = hand
        rgb, depth = self.views[camera].see(World(stepped_ns=0, qpos=qpos, mocap_pos=mocap))
        points = np.vstack([things, [(*BIN_XY_M, plane_of(BIN))]])
        pixel, seen = project(camera, joints, pose, points, depth)
        return small(rgb), pixel, seen


def project(
    camera: str, joints: tuple[float, ...], pose: tuple[float, ...], points: NDArray[np.float64],
    depth: NDArray[np.float32],
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:  # fmt: skip
    """Where points of the odometry frame are in the small picture, and whether nothing hides them."""
    rotation, place = (head_camera_pose if camera == "head" else wrist_camera_pose)(tuple(joints))
    local = (from_odometry(pose[0], pose[1], pose[2], points) - place) @ rotation
    width, height = CAMERAS[camera]
    focal = height / 2 / np.tan(np.radians(CAMERA_FOVY_DEG[camera]) / 2)
    ahead = np.maximum(local[:, 2], 0.02)
    u, v = width / 2 + focal * local[:, 0] / ahead, height / 2 + focal * local[:, 1] / ahead
    column, row = np.clip(u, 0, width - 1).astype(int), np.clip(v, 0, height - 1).astype(int)
    is_in = (local[:, 2] > 0.02) & (u >= 0) & (u < width) & (v >= 0) & (v < height)
    found = depth[row, column]
    is_seen = is_in & ((found == 0) | (np.abs(found - local[:, 2]) < HIDDEN_M))
    # The middle of a bin's opening is air; what is behind it is its floor.
    is_seen[-1] = is_in[-1] and bool(found[-1] > local[-1, 2] - HIDDEN_M)
    pixel = np.stack([u * WIDTH_PX / width, v * HEIGHT_PX / height], 1)
    return pixel.astype(np.float32), is_seen


def paint(rows: Rows, seed: int, every: int, painter: Painter) -> Scenes:
    """Every so manieth moment of a lesson, about."""
    dice = random.Random(f"pictures/{seed}")
    found: dict[str, list[object]] = {one.name: [] for one in fields(Scenes)}
    hand = None
    for tick in range(dice.randrange(every), len(rows.felt), every):
        if tick < max(LATE_TICKS.values()):
            continue
        if dice.random() < 0.05:
            hand = (dice.uniform(-0.5, 0.7), dice.uniform(-1.0, -0.3), dice.uniform(0.55, 0.9))
        for camera, late in LATE_TICKS.items():
            true = rows.true[tick - dice.randint(0, late)]
            rgb, pixel, seen = painter.draw(camera, true, hand if dice.random() < 3 * A_HAND else None)
            found[camera].append(rgb)
            found[f"{camera}_px"].append(pixel)
            found[f"{camera}_seen"].append(seen)
        things = np.array(rows.true[tick][11:]).reshape(-1, 3)
        points = np.vstack([things, [(*BIN_XY_M, 0.0)]])
        about, held = rows.about[tick]
        x, y, heading = rows.pose[tick]
        stands = [things[number, 2] > TABLE_HEIGHT_M and number != held for number in range(BIN)]
        found["felt"].append(rows.felt[tick])
        found["place"].append(from_odometry(x, y, heading, points)[:, :2])
        found["stands"].append([*stands, True])
        found["about"].append(about)
        found["held"].append(held)
    return scenes_of(found)


def scenes_of(found: dict[str, list[object]]) -> Scenes:
    """The same as arrays."""
    kinds = {"head": np.uint8, "wrist": np.uint8, "about": np.int64, "held": np.int64, "stands": np.bool_,
             "head_seen": np.bool_, "wrist_seen": np.bool_}  # fmt: skip
    return Scenes(**{name: np.array(values, kinds.get(name, np.float32)) for name, values in found.items()})
