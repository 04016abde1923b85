"""`FileKinematics`: where the hand of a robot from a file is, and how it gets elsewhere.

Kinematics are MuJoCo's own: its Jacobians and damped least squares, a few steps from where the arm is. No other library
was worth its weight for that (docs/decisions/arm-kinematics.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from nodes.msgs import JointVector
from nodes.robot.products import product
from nodes.robot.protocol import Twist
from nodes.robot_file.engine import mujoco
from nodes.robot_file.model import GRIPPER, PREFIX, RobotModel, followers, let_follow

Floats = NDArray[np.float64]

DAMPING, LOOSE_TURN = 0.02, 0.05
STEPS, MOST_STEP_RAD = 60, 0.25
PLACE_M, TURN_RAD = 5e-4, 5e-3
"""Nearer than this a posture counts as solved."""
SEEDS = 12
"""How many postures a search begins from before a pose counts as out of reach."""


@dataclass(frozen=True, slots=True)
class Pose:
    """Rotation (3, 3) and place (3,), odometry frame."""

    rotation: Floats
    place: Floats


class FileKinematics:
    """What the hand of a robot from a file does with its joints, base frame."""

    def __init__(self, robot: RobotModel, model: mujoco.MjModel) -> None:
        self.robot = robot
        self.limits = robot.limits
        self.drives = robot.table.base is not None
        self._model = model
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
        self._followers = followers(self._model)
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
        let_follow(qpos, self._followers)
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


def _rotation_vector(rotation: Floats) -> Floats:
    quat, vector = np.zeros(4), np.zeros(3)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(rotation).reshape(-1))
    mujoco.mju_quat2Vel(vector, quat, 1.0)
    return vector
