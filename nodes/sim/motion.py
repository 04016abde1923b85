"""How the simulated robot moves its set points: joints at a bounded speed, wheels by a bounded ramp."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from nodes.robot.protocol import BaseLimit, RobotLimits

Vector = NDArray[np.float64]
Rows = NDArray[np.float64]

_ROUNDING = 1.0 + 1e-9
"""A way that ends within rounding of its target ends there."""

COMMAND_PERIOD_S = 0.02
"""A new target is approached over one period of the commands, so that a stream of them gives a smooth set point."""


class JointSetPoints:
    """Set points of all joints, following the targets no faster than each joint can."""

    def __init__(self, limits: RobotLimits, position: Vector) -> None:
        self._lowest = np.array([joint.lowest for joint in limits.joints])
        self._highest = np.array([joint.highest for joint in limits.joints])
        self._speed = np.array([joint.speed for joint in limits.joints])
        self.position = position.copy()
        self.target = position.copy()
        self.velocity = np.zeros_like(position)
        self._is_still = True

    def aim(self, target: Vector, within_s: float = COMMAND_PERIOD_S) -> None:
        """Move towards a target, clipped to the joints' ranges, to be there by then as far as their speeds allow."""
        # Least and most by hand: np.clip takes several times as long for so few numbers.
        self.target = np.minimum(np.maximum(target, self._lowest), self._highest)
        wanted = (self.target - self.position) / within_s
        self.velocity = np.minimum(np.maximum(wanted, -self._speed), self._speed)
        self._is_still = False

    def hold(self, position: Vector) -> None:
        """Stand still at a position."""
        self.position = np.clip(position, self._lowest, self._highest)
        self.target = self.position.copy()
        self.velocity = np.zeros_like(self.position)
        self._is_still = True

    def fold(self, posture: Vector, *, first: int) -> bool:
        """Move towards a posture, one joint before all others; True once it is reached. To be called repeatedly."""
        target = posture
        is_there = np.abs(self.position - posture) < 1e-6
        if not is_there[first]:
            target = self.position.copy()
            target[first] = posture[first]
        self.aim(target)
        return bool(is_there.all())

    def steps(self, number: int, step_s: float) -> tuple[Rows, Rows]:
        """Advance by so many steps of time; positions and velocities after each of them, a row each."""
        if self._is_still:
            shape = (number, len(self.position))
            return np.broadcast_to(self.position, shape), np.broadcast_to(self.velocity, shape)
        move = self.velocity * _times(number, step_s)
        is_there = np.abs(move) * _ROUNDING >= np.abs(self.target - self.position)
        positions = np.where(is_there, self.target, self.position + move)
        velocities = np.where(is_there, 0.0, self.velocity)
        self.position, self.velocity = positions[-1], velocities[-1]
        self._is_still = bool(is_there[-1].all())
        return positions, velocities


@cache
def _times(number: int, step_s: float) -> Rows:
    """When so many steps are over, a row each."""
    times: Rows = np.arange(1.0, number + 1.0)[:, None] * step_s
    return times


class WheelSpeeds:
    """Speeds of the two wheels: each is clamped by itself, and changes no faster than the base may accelerate.

    A base that is omni goes sideways with what its faster wheel leaves of the wheels' speed.
    """

    def __init__(self, limit: BaseLimit) -> None:
        self._limit = limit
        self._target = (0.0, 0.0, 0.0)
        self._speed = (0.0, 0.0, 0.0)

    def aim(self, v_mps: float, w_radps: float, vy_mps: float = 0.0) -> None:
        """Ask for a forward and a turning velocity of the base, and one to the left."""
        half_turn = w_radps * self._limit.track_m / 2
        most = self._limit.wheel_speed_mps
        left, right = min(max(v_mps - half_turn, -most), most), min(max(v_mps + half_turn, -most), most)
        rest = most - max(abs(left), abs(right)) if self._limit.is_omni else 0.0
        self._target = (left, right, min(max(vy_mps, -rest), rest))

    def step(self, step_s: float) -> None:
        """Advance by one step of time."""
        if self._speed == self._target:
            return
        change = self._limit.acceleration_mps2 * step_s
        (left, right, aside), (left_target, right_target, aside_target) = self._speed, self._target
        self._speed = (
            left + min(max(left_target - left, -change), change),
            right + min(max(right_target - right, -change), change),
            aside + min(max(aside_target - aside, -change), change),
        )

    @property
    def velocity(self) -> tuple[float, float]:
        """Forward (m/s) and turning (rad/s) velocity of the base."""
        left, right, _ = self._speed
        return (left + right) / 2, (right - left) / self._limit.track_m

    @property
    def sideways_mps(self) -> float:
        """Velocity of the base to the left, m/s."""
        return self._speed[2]
