"""`Robot`: what a driver needs of a robot, and `RobotLimits`: what a guard may let through to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from runtime.msgs import JointCommand, RobotState


@dataclass(frozen=True, slots=True)
class JointLimit:
    """Range, speed and acceleration of one joint; m or rad, per s, per s2."""

    name: str
    lowest: float
    highest: float
    speed: float
    acceleration: float


@dataclass(frozen=True, slots=True)
class BaseLimit:
    """A differential base: each wheel is clamped, not v and w apart."""

    wheel_speed_mps: float
    acceleration_mps2: float
    track_m: float


@dataclass(frozen=True, slots=True)
class RobotLimits:
    """Hard ceilings of one robot model; joints in the order of `msgs.JOINTS`."""

    joints: tuple[JointLimit, ...]
    base: BaseLimit


class Robot(Protocol):
    """One robot, real or simulated. Nothing here blocks for longer than a control period."""

    limits: RobotLimits

    def start(self, now_ns: int) -> None:
        """Connect and become ready. Never moves."""
        ...

    def read(self, now_ns: int) -> RobotState:
        """Joint state, odometry and contact as of now."""
        ...

    def command(self, command: JointCommand) -> None:
        """Set joint targets and base velocity; they hold until the next command or `stop`."""
        ...

    def advance(self, now_ns: int) -> None:
        """Let the robot's own time catch up with now (simulators); nothing on a real one."""
        ...

    def stop(self) -> None:
        """Base velocity zero, joints held where they are."""
        ...

    def close(self) -> None:
        """Release the robot, stopped, in a safe posture."""
        ...
