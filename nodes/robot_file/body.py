"""`FileBody`: where the camera of a robot from a file is, and which pixels are its own."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nodes.msgs import JointVector, RobotState
from nodes.robot.products import angle_between, product, turn_z
from nodes.robot.protocol import Ball, Capsule, PointM
from nodes.robot_file.engine import mujoco
from nodes.robot_file.inverse_kinematics import FileKinematics, Floats
from nodes.robot_file.model import PREFIX, RobotModel, load_robot
from nodes.robot_file.table import CameraTable
from runtime.errors import UserError

HEAD = "head"
"""What the camera is called that policies see by."""
MARGIN_M = 0.012
"""Around its own parts, for the pixels that a camera blends at an edge."""
HELD_RADIUS_M, HELD_M = 0.065, 0.11
"""What is held is taken to fill this, from the point between the fingertips on."""
STEADY_RAD, STEADY_M = 0.02, 0.015


class FileBody(FileKinematics):
    """The `Body` of a robot from a file.

    Kinematics are in the frame of its base. That of a robot which stands still is the odometry frame, which is where
    its room begins; one that drives begins in its room where `mount_m` and `yaw_rad` say.
    """

    skills = "nodes.policy.arm_motion:ArmMotion"

    def __init__(self, robot: RobotModel) -> None:
        super().__init__(robot, mounted(robot).compile())
        self._head = mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_CAMERA, PREFIX + HEAD)
        shown = [
            geom
            for geom in range(self._model.ngeom)
            if (self._model.geom_bodyid[geom] or self.drives)
            and self._model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_PLANE
        ]
        bars = [_bar(self._model, geom) for geom in shown]
        middles, halves = (np.array([bar[place] for bar in bars]).reshape(-1, 3) for place in range(2))
        self._bars = np.array(shown, dtype=np.int64), middles, halves, [bar[2] for bar in bars]
        self._balls = self._make_balls()
        self._on_floor = [
            ball
            for ball, geom in enumerate(self._balls[0].tolist())
            if self._model.body_weldid[self._model.geom_bodyid[geom]] == 0
        ]

    def _make_balls(self) -> tuple[NDArray[np.int64], Floats, list[float]]:
        """Geom, place in its frame (n, 3) and radius of each ball: along the bars of all parts that move."""
        geoms, places, radii = [], [], []
        for geom, middle, half, radius in zip(*self._bars, strict=True):
            is_base = self._model.body_weldid[self._model.geom_bodyid[geom]] == 0
            if is_base and not self.drives:
                continue  # its pedestal
            number = max(1, math.ceil(2 * math.hypot(*half.tolist()) / (1.5 * radius)) + 1)
            for share in np.linspace(-1.0, 1.0, number) if number > 1 else (0.0,):
                geoms.append(geom)
                places.append(middle + share * half)
                radii.append(float(radius))
        return np.array(geoms, dtype=np.int64), np.array(places).reshape(-1, 3), radii

    # --- the promises of a Body

    def head_camera(self, state: RobotState) -> tuple[Floats, Floats]:
        if self._head < 0:
            raise UserError(
                f"{self.robot.path}: the robot has no camera {HEAD!r}; name one in its model, or in [cameras.{HEAD}]"
            )
        with self._lock:
            self._pose(state.position)
            axes = self._data.cam_xmat[self._head].reshape(3, 3)  # right, up, backward
            turn, place = self.base_pose(state)
            return product(turn, axes * (1.0, -1.0, -1.0)), place + product(turn, self._data.cam_xpos[self._head])

    def own_parts(self, state: RobotState) -> tuple[Capsule, ...]:
        with self._lock:
            self._pose(state.position)
            geoms, middles, halves, radii = self._bars
            turns = self._data.geom_xmat.reshape(-1, 3, 3)[geoms]
            base, origin = self.base_pose(state)
            middles = self._data.geom_xpos[geoms] + np.einsum("nij,nj->ni", turns, middles)
            at = origin + product(middles, base.T)
            along = product(np.einsum("nij,nj->ni", turns, halves), base.T)
            ends = zip((at - along).tolist(), (at + along).tolist(), radii, strict=True)
            found = [Capsule(tuple(start), tuple(end), radius) for start, end, radius in ends]
            if state.is_grasping:
                hand = self._hand_pose()
                ahead, place = product(base, hand.rotation[:, 2]), origin + product(base, hand.place)
                end = place + HELD_M * ahead
                found.append(Capsule(_point(place - 0.05 * ahead), _point(end), HELD_RADIUS_M))
            return tuple(found)

    def outline(self, position: JointVector) -> tuple[Ball, ...]:
        """The balls that cover what moves of it, base frame; see `nodes.robot.protocol.CartesianLimits`.

        Those of a base that drives stand on the floor, so that they do not hide an arm that goes below it.
        """
        geoms, places, radii = self._balls
        with self._lock:
            self._pose(position)
            turns = self._data.geom_xmat.reshape(-1, 3, 3)[geoms]
            centres = (self._data.geom_xpos[geoms] + np.einsum("nij,nj->ni", turns, places)).tolist()
        for place in self._on_floor:
            centres[place][2] = max(centres[place][2], self.robot.table.floor_m + radii[place])
        return tuple((x, y, z, radius) for (x, y, z), radius in zip(centres, radii, strict=True))

    def hand_point(self, state: RobotState) -> PointM:
        turn, place = self.base_pose(state)
        return _point(place + product(turn, self.hand(state.position).place))

    def is_steady(self, one: RobotState, two: RobotState) -> bool:
        (turn, place), (other_turn, other_place) = self.head_camera(one), self.head_camera(two)
        is_still = bool(np.abs(place - other_place).max() < STEADY_M)
        return is_still and angle_between(turn, other_turn) < STEADY_RAD

    def base_pose(self, state: RobotState) -> tuple[Floats, Floats]:
        """Rotation (3, 3) and place (3,) of its base, odometry frame."""
        if not self.drives:
            return np.eye(3), np.zeros(3)
        return turn_z(state.base_heading_rad), np.array([state.base_x_m, state.base_y_m, 0.0])


def body_of_file(name: str) -> FileBody:
    """The body of the robot that a robot file describes. Raises UserError."""
    return FileBody(load_robot(name))


def mounted(robot: RobotModel) -> mujoco.MjSpec:
    """The model in the frame of its base, with the cameras of its robot file."""
    spec = mujoco.MjSpec()
    if robot.table.base is None:
        put_into(spec, spec.worldbody, robot, robot.table.mount_m, robot.table.yaw_rad)
    else:
        put_into(spec, spec.worldbody, robot, (0.0, 0.0, robot.table.mount_m[2]))
    return spec


def put_into(
    room: mujoco.MjSpec, parent: mujoco.MjsBody, robot: RobotModel, place_m: PointM, yaw_rad: float = 0.0
) -> None:
    """Set the robot on a body of a room, all its names with `PREFIX`."""
    spec = robot.spec()
    for name, camera in robot.table.cameras.items():
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, np.ascontiguousarray(camera_axes(camera) * (1.0, -1.0, -1.0)).reshape(-1))
        spec.body(camera.link).add_camera(name=name, pos=camera.place_m, fovy=camera.fovy_deg, quat=quat.tolist())
    half = yaw_rad / 2
    turn = [math.cos(half), 0.0, 0.0, math.sin(half)]
    frame = parent.add_frame(pos=place_m, quat=turn)
    room.attach(spec, frame=frame, prefix=PREFIX)


def camera_axes(camera: CameraTable) -> Floats:
    """Right, down and forward (3, 3, in columns) of a camera in the frame of its link, upright where there is an up."""
    ahead = np.array(camera.looks_at_m or (*camera.place_m[:2], camera.place_m[2] + 1.0)) - camera.place_m
    ahead /= math.hypot(*ahead.tolist())
    up = np.array((0.0, 0.0, 1.0)) if abs(ahead[2]) < 0.99 else np.array((0.0, 1.0, 0.0))
    right = np.cross(ahead, up)
    right /= math.hypot(*right.tolist())
    return np.stack([right, np.cross(ahead, right), ahead], axis=1)


def _bar(model: mujoco.MjModel, geom: int) -> tuple[Floats, Floats, float]:
    """A line with a radius that covers a geom, in its own frame: middle, half of the line, radius."""
    box = model.geom_aabb[geom]
    middle, sizes = box[:3].copy(), box[3:].copy()
    longest = int(sizes.argmax())
    radius = math.hypot(*np.delete(sizes, longest).tolist())
    half = np.zeros(3)
    half[longest] = max(float(sizes[longest]) - radius / 2, 0.0)
    return middle, half, radius + MARGIN_M


def _point(place: Floats) -> PointM:
    x, y, z = place.tolist()
    return x, y, z
