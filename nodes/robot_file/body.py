"""`FileBody`: where hand and camera of a robot from a file are, which pixels are its own, and how its hand gets there.

Kinematics are MuJoCo's own: its Jacobians and damped least squares, a few steps from where the arm is. No other library
was worth its weight for that (docs/decisions/arm-kinematics.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from nodes.msgs import JointVector, RobotState
from nodes.robot.products import product
from nodes.robot.protocol import Ball, Capsule, PointM, Twist
from nodes.robot_file.engine import mujoco
from nodes.robot_file.model import GRIPPER, RobotModel, load_robot
from nodes.robot_file.table import CameraTable
from runtime.errors import UserError

Floats = NDArray[np.float64]

PREFIX = "robot/"
"""Before all names of the robot's model, which may be those of the room that it stands in."""
HEAD = "head"
"""What the camera is called that policies see by."""
DAMPING, LOOSE_TURN = 0.02, 0.05
STEPS, MOST_STEP_RAD = 60, 0.25
PLACE_M, TURN_RAD = 5e-4, 5e-3
"""Nearer than this a posture counts as solved."""
SEEDS = 12
"""How many postures a search begins from before a pose counts as out of reach."""
MARGIN_M = 0.012
"""Around its own parts, for the pixels that a camera blends at an edge."""
HELD_RADIUS_M, HELD_M = 0.065, 0.11
"""What is held is taken to fill this, from the point between the fingertips on."""
STEADY_RAD, STEADY_M = 0.02, 0.015


@dataclass(frozen=True, slots=True)
class Pose:
    """Rotation (3, 3) and place (3,), odometry frame."""

    rotation: Floats
    place: Floats


class FileBody:
    """The `Body` of a robot from a file.

    Kinematics are in the frame of its base. That of a robot which stands still is the odometry frame, which is where
    its room begins; one that drives begins in its room where `mount_m` and `yaw_rad` say.
    """

    skills = "nodes.policy.arm_motion:ArmMotion"

    def __init__(self, robot: RobotModel) -> None:
        self.robot = robot
        self.limits = robot.limits
        self.drives = robot.table.base is not None
        self._model = mounted(robot).compile()
        self._data = mujoco.MjData(self._model)
        self._lock = Lock()  # a policy looks in one lane and moves in another
        self._groups = [
            [int(self._model.joint(PREFIX + one).qposadr[0]) for one in each.carriers] for each in robot.driven
        ]
        self._dofs = [
            [int(self._model.joint(PREFIX + one).dofadr[0]) for one in each.carriers] for each in robot.driven
        ]
        self._lowest = np.array([joint.lowest for joint in self.limits.joints])
        self._highest = np.array([joint.highest for joint in self.limits.joints])
        self._followers = list(_followers(self._model))
        names = [joint.name for joint in self.limits.joints]
        self.gripper = names.index(GRIPPER) if GRIPPER in names else None
        self._arm = np.array([place for place in range(len(names)) if place != self.gripper])
        hand = robot.table.hand
        self._hand_site = mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_SITE, PREFIX + hand)
        self._hand_body = (
            int(self._model.site_bodyid[self._hand_site])
            if self._hand_site >= 0
            else self._model.body(PREFIX + hand).id
        )
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
        cosine = ((turn * other_turn).sum() - 1.0) / 2.0
        return math.acos(min(max(float(cosine), -1.0), 1.0)) < STEADY_RAD and bool(
            np.abs(place - other_place).max() < STEADY_M
        )

    # --- kinematics

    def rates(self, position: JointVector, twist: Twist) -> tuple[dict[str, float], float]:
        """Joint velocities by name, m/s or rad/s, that move the hand with this twist; its base stands.

        Ahead is where the front of the robot is. An arm of less than six joints keeps to the way, and turns as it must.
        """
        with self._lock:
            self._pose(position)
            jacobian = self._jacobian(self._hand_pose().place)
        yaw_rad = 0.0 if self.drives else self.robot.table.yaw_rad
        c, s, turn = math.cos(yaw_rad), math.sin(yaw_rad), 1.0 if len(self._arm) >= 6 else LOOSE_TURN
        ahead, left, pitch = twist.ahead_mps, twist.left_mps, turn * twist.pitch_radps
        wanted = (
            c * ahead - s * left,
            s * ahead + c * left,
            twist.up_mps,
            -s * pitch,
            c * pitch,
            turn * twist.yaw_radps,
        )
        moves = _damped(jacobian * np.array([1.0] * 3 + [turn] * 3)[:, None], np.array(wanted), DAMPING * turn).tolist()
        return {self.limits.joints[place].name: rate for place, rate in zip(self._arm, moves, strict=True)}, 0.0

    def _jacobian(self, place: Floats) -> Floats:
        """Of the hand by the joints that carry it (6, n): m, then rad; the posture is set."""
        by_place, by_turn = np.zeros((3, self._model.nv)), np.zeros((3, self._model.nv))
        mujoco.mj_jac(self._model, self._data, by_place, by_turn, place, self._hand_body)
        columns = np.vstack([by_place, by_turn])
        return np.stack([columns[:, dofs].mean(axis=1) for dofs in self._dofs], axis=1)[:, self._arm]

    def base_pose(self, state: RobotState) -> tuple[Floats, Floats]:
        """Rotation (3, 3) and place (3,) of its base, odometry frame."""
        if not self.drives:
            return np.eye(3), np.zeros(3)
        c, s = math.cos(state.base_heading_rad), math.sin(state.base_heading_rad)
        turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        return turn, np.array([state.base_x_m, state.base_y_m, 0.0])

    def hand(self, position: JointVector) -> Pose:
        """Where the hand is, base frame: z out of the gripper, y along its opening."""
        with self._lock:
            self._pose(position)
            return self._hand_pose()

    def towards(self, wanted: Pose, near: JointVector) -> tuple[JointVector, float, float]:
        """The posture nearest to that pose of its base's frame, searched from one nearby; what it misses by, m and rad.

        The gripper stays as it is.
        """
        with self._lock:
            return self._search(wanted, np.array(near))

    def reaching(self, wanted: Pose, near: JointVector) -> JointVector | None:
        """A posture with the hand in that pose, or None where none is found from `SEEDS` beginnings."""
        generator = np.random.default_rng(0)
        beginnings = [np.array(near), np.array(self.robot.folded)]
        beginnings += [generator.uniform(self._lowest, self._highest) for _ in range(SEEDS - 2)]
        for beginning in beginnings:
            if self.gripper is not None:
                beginning[self.gripper] = near[self.gripper]
            with self._lock:
                found, off_m, off_rad = self._search(wanted, beginning)
            if off_m < 4 * PLACE_M and off_rad < 4 * TURN_RAD:
                return found
        return None

    def _search(self, wanted: Pose, position: Floats) -> tuple[JointVector, float, float]:
        for step in range(STEPS + 1):
            self._pose(position)
            here = self._hand_pose()
            off = wanted.place - here.place
            turn = _rotation_vector(product(wanted.rotation, here.rotation.T))
            off_m, off_rad = math.hypot(*off.tolist()), math.hypot(*turn.tolist())
            if (off_m < PLACE_M and off_rad < TURN_RAD) or step == STEPS:
                break
            jacobian = self._jacobian(here.place)
            change = _damped(jacobian, np.concatenate([off, turn]), DAMPING)
            change *= min(1.0, MOST_STEP_RAD / max(float(np.abs(change).max()), 1e-12))
            moved = position.copy()
            moved[self._arm] += change
            position = np.minimum(np.maximum(moved, self._lowest), self._highest)
        return tuple(position.tolist()), off_m, off_rad

    def _pose(self, position: JointVector | Floats) -> None:
        qpos = self._data.qpos
        for value, places, driven in zip(position, self._groups, self.robot.driven, strict=True):
            qpos[places] = driven.factor * value + driven.offset
        for follower, leader, polynomial in self._followers:
            qpos[follower] = sum(part * qpos[leader] ** power for power, part in enumerate(polynomial))
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_comPos(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)

    def _hand_pose(self) -> Pose:
        data = self._data
        if self._hand_site >= 0:
            return Pose(data.site_xmat[self._hand_site].reshape(3, 3).copy(), data.site_xpos[self._hand_site].copy())
        return Pose(data.xmat[self._hand_body].reshape(3, 3).copy(), data.xpos[self._hand_body].copy())


def _damped(jacobian: Floats, wanted: Floats, damping: float) -> Floats:
    """How the joints are to move, so that the hand moves nearly so: damped least squares."""
    square, solution = product(jacobian, jacobian.T) + damping**2 * np.eye(6), np.zeros(6)
    mujoco.mju_cholFactor(square, 0.0)
    mujoco.mju_cholSolve(solution, square, wanted)
    return product(solution, jacobian)


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


def _followers(model: mujoco.MjModel) -> list[tuple[int, int, list[float]]]:
    """Joints that an equality of the model ties to another: their places, and the polynomial."""
    return [
        (
            int(model.jnt_qposadr[model.eq_obj1id[number]]),
            int(model.jnt_qposadr[model.eq_obj2id[number]]),
            [float(part) for part in model.eq_data[number, :5]],
        )
        for number in range(model.neq)
        if model.eq_type[number] == mujoco.mjtEq.mjEQ_JOINT and model.eq_obj2id[number] >= 0
    ]


def _bar(model: mujoco.MjModel, geom: int) -> tuple[Floats, Floats, float]:
    """A line with a radius that covers a geom, in its own frame: middle, half of the line, radius."""
    box = model.geom_aabb[geom]
    middle, sizes = box[:3].copy(), box[3:].copy()
    longest = int(sizes.argmax())
    radius = math.hypot(*np.delete(sizes, longest).tolist())
    half = np.zeros(3)
    half[longest] = max(float(sizes[longest]) - radius / 2, 0.0)
    return middle, half, radius + MARGIN_M


def _rotation_vector(rotation: Floats) -> Floats:
    quat, vector = np.zeros(4), np.zeros(3)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(rotation).reshape(-1))
    mujoco.mju_quat2Vel(vector, quat, 1.0)
    return vector


def _point(place: Floats) -> PointM:
    x, y, z = place.tolist()
    return x, y, z
