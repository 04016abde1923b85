"""`ImaginedRobot`: a robot at a table with motion but without physics: things are held or not, nothing is touched.

Twenty times as fast as the simulated one, for what most of a lesson is about: where to go, and when to close and open.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import msgspec
import numpy as np

from nodes.msgs import JointCommand, RobotState
from nodes.sim.messages import ObjectTruth
from nodes.sim.world.table_scene import SIZES_M, TABLE_HEIGHT_M, is_in_bin, lay_table
from nodes.stretch.kinematics import GRIPPER, grasp_point, to_odometry
from nodes.stretch.limits import STOW, STRETCH_3

WIDTHS_M, HEIGHTS_M = (0.04, 0.09), (0.05, 0.18)
"""Of the things of a lesson: no two tables have the same ones."""
TURNED_RAD = 0.02
"""The robot stands so much askew beside its table, one standard deviation."""
BESIDE_M = 0.03
SQUEEZED_M = 0.002
"""How far fingers close beyond where they meet a thing."""
NOISE = np.array((0.0005, 0.0005, 0.002, 0.002, 0.002, 0.0005, 0.002, 0.002))
"""Of measured positions, one standard deviation; of velocities ten times that."""


@dataclass
class ImaginedRobot:
    """Its joints and base follow commands within their limits of speed and acceleration."""

    seed: int

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.noise = np.random.default_rng(self.seed)
        self.position, self.velocity = np.array(STOW), np.zeros(8)
        self.pose = [0.0, 0.0, self.dice.gauss(0.0, TURNED_RAD)]
        self.v_mps = 0.0
        self.now_ns = 0
        self.held = -1
        self.off = (0.0, 0.0, 0.0)  # of the held thing from between the fingers
        self.sizes = {name: (self.dice.uniform(*WIDTHS_M), self.dice.uniform(*HEIGHTS_M)) for name in SIZES_M}
        self.things = [
            ObjectTruth(
                name=thing.name, label=thing.label, colour=thing.colour,
                x_m=thing.x_m, y_m=thing.y_m, z_m=TABLE_HEIGHT_M + self.sizes[thing.name][1] / 2, is_in_bin=False,
            )
            for thing in lay_table(self.seed)
        ]  # fmt: skip
        self.speed = np.array([joint.speed for joint in STRETCH_3.joints])
        self.acceleration = np.array([joint.acceleration for joint in STRETCH_3.joints])
        self.lowest = np.array([joint.lowest for joint in STRETCH_3.joints])
        self.highest = np.array([joint.highest for joint in STRETCH_3.joints])

    def state(self) -> RobotState:
        """What is felt now."""
        at, moves = self.noise.normal(size=8) * NOISE, self.noise.normal(size=8) * 10 * NOISE
        return RobotState(
            read_ns=self.now_ns,
            position=tuple((self.position + at).tolist()),
            velocity=tuple((self.velocity + moves).tolist()),
            effort=(0.0,) * 8,
            base_x_m=self.pose[0],
            base_y_m=self.pose[1],
            base_heading_rad=self.pose[2],
            base_v_mps=self.v_mps,
            base_w_radps=0.0,
            is_grasping=self.held >= 0,
        )

    def follow(self, command: JointCommand, period_s: float) -> None:
        """Move for a while as commanded."""
        goal = np.clip(np.array(command.position), self.lowest, self.highest)
        stop = self._blocked(goal)
        if stop is not None:
            goal[GRIPPER] = max(goal[GRIPPER], stop)
        away = goal - self.position
        fast = np.minimum(self.speed, np.sqrt(2 * self.acceleration * np.abs(away)))
        wanted = np.copysign(np.minimum(fast, np.abs(away) / period_s), away)
        most = self.acceleration * period_s
        self.velocity = np.clip(wanted, self.velocity - most, self.velocity + most)
        is_over = np.abs(self.velocity) * period_s >= np.abs(away)
        is_over &= np.sign(self.velocity) == np.sign(away)
        self.velocity = np.where(is_over, away / period_s, self.velocity)
        self.position = self.position + self.velocity * period_s
        limit = STRETCH_3.base.acceleration_mps2 * period_s
        asked = min(max(command.base_v_mps, -0.3), 0.3)
        self.v_mps = min(max(asked, self.v_mps - limit), self.v_mps + limit)
        heading = self.pose[2]
        self.pose[0] += self.v_mps * math.cos(heading) * period_s
        self.pose[1] += self.v_mps * math.sin(heading) * period_s
        self.now_ns += round(period_s * 1e9)
        self._hold(stop is not None and command.position[GRIPPER] < stop - 0.005)

    def _hand(self) -> tuple[float, float, float]:
        x, y, z = to_odometry(self.pose[0], self.pose[1], self.pose[2], grasp_point(tuple(self.position.tolist())))
        return float(x), float(y), float(z)

    def _blocked(self, goal: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float | None:
        """The opening at which the fingers meet a thing, if they close on one."""
        if self.held >= 0:
            return self.sizes[self.things[self.held].name][0] - SQUEEZED_M
        x, y, z = self._hand()
        for thing in self.things:
            width, height = self.sizes[thing.name]
            is_beside = abs(thing.x_m - x) < BESIDE_M and abs(thing.y_m - y) < BESIDE_M
            if is_beside and abs(thing.z_m - z) < height / 2 and self.position[GRIPPER] >= width - 2 * SQUEEZED_M:
                return width - SQUEEZED_M
        return None

    def _hold(self, is_pressed: bool) -> None:
        x, y, z = self._hand()
        if self.held >= 0:
            thing = self.things[self.held]
            if is_pressed:
                self._put(self.held, x + self.off[0], y + self.off[1], z + self.off[2])
                return
            is_over_bin = is_in_bin(thing.x_m, thing.y_m, 0.3)
            self._put(
                self.held, thing.x_m, thing.y_m, 0.2 if is_over_bin else TABLE_HEIGHT_M + self.sizes[thing.name][1] / 2
            )
            self.held = -1
            return
        if not is_pressed:
            return
        for number, thing in enumerate(self.things):
            width, height = self.sizes[thing.name]
            is_beside = abs(thing.x_m - x) < BESIDE_M and abs(thing.y_m - y) < BESIDE_M
            is_met = self.position[GRIPPER] <= width
            if is_beside and is_met and abs(thing.z_m - z) < height / 2:
                self.held, self.off = number, (0.0, thing.y_m - y, thing.z_m - z)
                return

    def _put(self, number: int, x_m: float, y_m: float, z_m: float) -> None:
        thing = self.things[number]
        moved = {"x_m": x_m, "y_m": y_m, "z_m": z_m, "is_in_bin": is_in_bin(x_m, y_m, z_m)}
        self.things[number] = msgspec.structs.replace(thing, **moved)  # type: ignore[type-var]
