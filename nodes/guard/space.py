"""`Space`: where the robot's body may be and how fast it may move there; a pure part of the guard.

Joints and wheels within their own limits can still swing a long arm fast, or into a table. So each step is checked as a
whole, by the robot's outline: balls that cover its body. A step is taken only if braking after it ends in free space.
Where it would not, the whole robot is slowed down along its path. Near the end of that path, the parts move one after
another, each as far as it may.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil, cos, hypot, isfinite, sin, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodes.guard.motion_profile import Motion, Wheels, base_velocity, brake, drive, toward
from nodes.msgs import JointCommand, RobotState
from nodes.robot.protocol import Ball, BaseLimit, CartesianLimits, RobotLimits
from nodes.robot.robot_from_launch import outline_of
from runtime.errors import ParameterError

LAG_S = 0.1
"""The base is taken to drive on for this long before it brakes, s: wheels react late."""
FEWEST_LOOKS, LOOK_RAD = 3, 0.15
"""The path of a braking base is checked at this many points at least, and after each turn by this angle, rad."""
BASE = -1
"""The base's number among the parts that move; the other numbers are those of the joints."""
ROUNDING_M = 1e-9
TRIES = 5
"""Steps of the bisection for an allowed speed; where it finds none, the parts move one after another."""


Floats = NDArray[np.float64]
Outline = tuple[Ball, ...]
Pose = tuple[float, float, float]
"""x, y and heading of the base, odometry frame; m and rad."""


@dataclass(frozen=True, slots=True)
class Box:
    """A box in the odometry frame, m. Its origin and x axis are the robot's place and heading as its odometry began."""

    lows: tuple[float, float, float]
    highs: tuple[float, float, float]

    @classmethod
    def of(cls, name: str, ends: tuple[float, ...]) -> Box:
        """The box [x_low, x_high, y_low, y_high, z_low, z_high], m, of a launch file. Raises ParameterError."""
        is_box = len(ends) == 6 and all(map(isfinite, ends)) and all(ends[i] < ends[i + 1] for i in (0, 2, 4))
        if not is_box:
            raise ParameterError(
                f"guard: {name} is {list(ends)}; expected [x_low, x_high, y_low, y_high, z_low, z_high] in m, "
                "each low below its high"
            )
        return cls((ends[0], ends[2], ends[4]), (ends[1], ends[3], ends[5]))

    def beyond(self, balls: Floats) -> float:
        """How far the balls (n, 4) stick out of the box, m; negative where all are inside."""
        return float((np.maximum(self.lows - balls[:, :3], balls[:, :3] - self.highs).max(axis=1) + balls[:, 3]).max())

    def within(self, balls: Floats) -> float:
        """How far the balls (n, 4) reach into the box, m; negative where all are outside."""
        off = np.maximum(self.lows - balls[:, :3], balls[:, :3] - self.highs)
        away = np.sqrt((np.maximum(off, 0.0) ** 2).sum(axis=1)) + np.minimum(off.max(axis=1), 0.0)
        return float((balls[:, 3] - away).max())


class BodyMotion(NamedTuple):
    """The commanded motion of all joints and wheels."""

    joints: tuple[Motion, ...]
    wheels: Wheels


class Space:
    """The Cartesian limits of one robot in one place."""

    def __init__(
        self,
        limits: RobotLimits,
        keep_in: tuple[float, ...] = (),
        keep_out: Mapping[str, tuple[float, ...]] | None = None,
    ) -> None:
        """`keep_in` and each box of `keep_out` are as in `Box.of`.

        Raises ParameterError where one is no box, and where boxes are given for limits without an outline.
        """
        self.limits = limits
        self.keep_in = Box.of("keep_in", tuple(keep_in)) if keep_in else None
        self.keep_out = {name: Box.of(f"keep_out {name!r}", tuple(ends)) for name, ends in (keep_out or {}).items()}
        self.cartesian: CartesianLimits | None = limits.cartesian
        if self.cartesian is None and (self.keep_in or self.keep_out):
            raise ParameterError(
                "guard: keep_in and keep_out need the robot's body; its limits have no cartesian=CartesianLimits(...)"
            )
        self._outline: Callable[[tuple[float, ...]], Outline] = (
            outline_of(self.cartesian) if self.cartesian is not None else lambda position: ()
        )

    def follow(
        self, now: BodyMotion, command: JointCommand, state: RobotState, age_s: float, dt_s: float
    ) -> tuple[BodyMotion, str]:
        """The allowed step towards the command, and why it is not the full one, or "".

        `age_s` is the age of `state`, and `dt_s` the length of the step, in s.
        """
        limits, base = self.cartesian, self.limits.base
        everything = range(BASE, len(now.joints))
        whole = self._toward(now, command, dt_s, base, everything)
        if limits is None or dt_s <= 0.0 or (whole.joints == now.joints and whole.wheels == Wheels()):
            return whole, ""
        if base.wheel_speed_mps > limits.base_speed_out_mps and furthest_out(self._at_rest(whole)) > limits.out_m:
            base = replace(base, wheel_speed_mps=limits.base_speed_out_mps)
            whole = self._toward(now, command, dt_s, base, everything)
        if not (why := self.fault(now, whole, state, age_s, dt_s)):
            return whole, ""
        slow, fast, best = 0.0, 1.0, None
        for _ in range(TRIES):
            share = (slow + fast) / 2
            step = self._toward(now, command, dt_s, base, everything, share)
            if self.fault(now, step, state, age_s, dt_s):
                fast = share
            else:
                slow, best = share, step
        if best is not None:
            return best, why
        free: list[int] = []
        step = self._toward(now, command, dt_s, base, free)
        for part in everything:
            trial = self._toward(now, command, dt_s, base, [*free, part])
            if not self.fault(now, trial, state, age_s, dt_s):
                free, step = [*free, part], trial
        return step, why

    def fault(self, now: BodyMotion, step: BodyMotion, state: RobotState, age_s: float, dt_s: float) -> str:
        """Why this step is not allowed, or "" where it is.

        `now` is the motion before the step, and `step` the one after it. `age_s` is the age of `state` and `dt_s` the
        length of the step, in s.
        """
        limits = self.cartesian
        if limits is None:
            return ""
        here = self._outline(tuple(motion.position for motion in now.joints))
        there = self._outline(tuple(motion.position for motion in step.joints))
        v_mps, w_radps = base_velocity(step.wheels, self.limits.base)
        if fastest(here, there, v_mps, w_radps, dt_s, step.wheels.sideways_mps) > limits.tip_speed_mps:
            return f"a part of it would go faster than {limits.tip_speed_mps:g} m/s"
        rest = self._at_rest(step)
        wheel_mps = step.wheels.fastest_mps
        if wheel_mps > limits.base_speed_out_mps and furthest_out(there + rest) > limits.out_m:
            return f"the base would go faster than {limits.base_speed_out_mps:g} m/s with the arm out"
        if lowest(rest) < min(limits.floor_m, lowest(here)) - ROUNDING_M:
            return "it would reach the floor"
        if self.keep_in is None and not self.keep_out:
            return ""
        pose = (state.base_x_m, state.base_y_m, state.base_heading_rad)
        if not all(map(isfinite, pose)):
            return "where the base is, is not known"
        before = dict(self._depths([here], [pose]))
        goes_on_s = wheel_mps / self.limits.base.acceleration_mps2 / 2 + LAG_S + age_s + dt_s
        ahead_m, turned_rad, left_m = v_mps * goes_on_s, w_radps * goes_on_s, step.wheels.sideways_mps * goes_on_s
        number = max(FEWEST_LOOKS, ceil(abs(turned_rad) / LOOK_RAD))
        poses = [
            driven(pose, ahead_m * part / number, turned_rad * part / number, left_m * part / number)
            for part in range(1, number + 1)
        ]
        # The base may stop at once, too: what is at rest by then must be free here as well as at the end of its way.
        for why, depth_m in self._depths([there] + [rest] * number, [poses[0], pose, *poses[1:]]):
            if depth_m > max(0.0, before[why]) + ROUNDING_M:
                return why
        return ""

    def _at_rest(self, step: BodyMotion) -> Outline:
        """The outline at the place where the joints will have braked."""
        return self._outline(
            tuple(
                motion.position + motion.velocity * abs(motion.velocity) / (2 * limit.acceleration)
                for motion, limit in zip(step.joints, self.limits.joints, strict=True)
            )
        )

    def _toward(
        self,
        now: BodyMotion,
        command: JointCommand,
        dt_s: float,
        base: BaseLimit,
        free: Collection[int],
        share: float = 1.0,
    ) -> BodyMotion:
        """One step in which the `free` parts move on at this share of their limits, and all others brake."""
        joints = tuple(
            toward(motion, target, limit if share == 1.0 else replace(limit, speed=limit.speed * share), dt_s)
            if place in free
            else brake(motion, limit, dt_s)
            for place, (motion, target, limit) in enumerate(
                zip(now.joints, command.position, self.limits.joints, strict=True)
            )
        )
        if BASE not in free:
            return BodyMotion(joints, drive(now.wheels, 0.0, 0.0, base, dt_s))
        slow = base if share == 1.0 else replace(base, wheel_speed_mps=base.wheel_speed_mps * share)
        return BodyMotion(
            joints, drive(now.wheels, command.base_v_mps, command.base_w_radps, slow, dt_s, command.base_vy_mps)
        )

    def _depths(self, outlines: list[Outline], poses: list[Pose]) -> Iterator[tuple[str, float]]:
        """For each box, the sentence for its violation and how deep the robot is in it, m; negative where it is not."""
        placed = np.concatenate([_at(outline, pose) for outline, pose in zip(outlines, poses, strict=True)])
        if self.keep_in is not None:
            yield "it would leave keep_in", self.keep_in.beyond(placed)
        for name, box in self.keep_out.items():
            yield f"it would go into keep_out {name}", box.within(placed)


def _at(outline: Outline, pose: Pose) -> Floats:
    """The balls (n, 4) in the odometry frame."""
    (x, y, heading), balls = pose, np.array(outline)
    c, s = cos(heading), sin(heading)
    ahead, left = balls[:, 0].copy(), balls[:, 1].copy()
    balls[:, 0], balls[:, 1] = x + c * ahead - s * left, y + s * ahead + c * left
    return balls


def fastest(
    here: Outline, there: Outline, v_mps: float, w_radps: float, dt_s: float, sideways_mps: float = 0.0
) -> float:
    """The speed over the ground of the fastest ball, m/s.

    The speeds by the joints and by the base are added, because either may brake first. `here` and `there` are the
    outlines before and after `dt_s`.
    """
    return max(
        sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2) / dt_s
        + hypot(v_mps - w_radps * b[1], sideways_mps + w_radps * b[0])
        for a, b in zip(here, there, strict=True)
    )


def furthest_out(outline: Outline) -> float:
    """How far the outline reaches from the base's centre along the floor, m."""
    return max(hypot(ball[0], ball[1]) for ball in outline)


def lowest(outline: Outline) -> float:
    """The height of the outline's lowest point, m."""
    return min(ball[2] - ball[3] for ball in outline)


def driven(pose: Pose, ahead_m: float, turned_rad: float, left_m: float = 0.0) -> Pose:
    """The pose of the base after an arc: metres ahead and to the left, and a turn in rad."""
    x, y, heading = pose
    middle = heading + turned_rad / 2
    c, s = cos(middle), sin(middle)
    return x + ahead_m * c - left_m * s, y + ahead_m * s + left_m * c, heading + turned_rad
