"""`Robot`: what a driver needs of a robot; `RobotLimits`: what a guard may let through to it; `Hand`: its reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from runtime.errors import PolyrhythmError

if TYPE_CHECKING:  # numpy comes with them, and every run that starts reads this file
    import numpy as np
    from numpy.typing import NDArray

    from runtime.msgs import JointCommand, JointVector, RobotState, RobotStatus

    CameraPose = tuple[NDArray[np.float64], NDArray[np.float64]]


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
    """A base: each of two wheels `track_m` apart is clamped, not v and w apart. `wheel_speed_mps` 0: it does not drive.

    One that is omni may drive sideways as well: the faster wheel and the way sideways share `wheel_speed_mps`.
    """

    wheel_speed_mps: float
    acceleration_mps2: float
    track_m: float
    is_omni: bool = False


FIXED_BASE = BaseLimit(wheel_speed_mps=0.0, acceleration_mps2=1.0, track_m=1.0)
"""That of a robot that does not drive: whatever is asked of its wheels, they stand."""


Ball = tuple[float, float, float, float]
"""Centre ahead, left and up of the base's, on the floor, and radius; m."""


@dataclass(frozen=True, slots=True)
class CartesianLimits:
    """What holds for the body as a whole, by the balls that cover it.

    `outline` is a pure function of joint positions, or names one as "module:function": always as many balls, in one
    order. No ball goes faster than `tip_speed_mps` over the ground nor deeper than `floor_m`; with one further than
    `out_m` from the base's centre no wheel goes faster than `base_speed_out_mps`.
    """

    outline: str | Callable[[JointVector], tuple[Ball, ...]]
    tip_speed_mps: float
    base_speed_out_mps: float
    out_m: float
    floor_m: float = 0.0


@dataclass(frozen=True, slots=True)
class RobotLimits:
    """Hard ceilings of one robot model.

    Its joints are in the order of all joint vectors in a graph for it; `msgs.JOINTS`, where no other robot is named.
    Without `cartesian` its guard keeps the limits of joints and wheels only. `body` names the `Body` that goes with
    them, as "module:NAME"; without one nobody can look along its arm or reach with it. `urdf` names its URDF for
    viewers, as "package:file.urdf", with a joint of each name.
    """

    joints: tuple[JointLimit, ...]
    base: BaseLimit = FIXED_BASE
    cartesian: CartesianLimits | None = None
    body: str = ""
    urdf: str = ""


class RobotError(PolyrhythmError):
    """A robot that cannot be had, or that refuses what it was asked; the text says what to do."""


class Robot(Protocol):
    """One robot, real or simulated. Nothing here but `home` and `stow` blocks for longer than a control period.

    `nodes.robot.conformance` tells in tests what each of these promises means.
    """

    @property
    def is_hardware(self) -> bool:
        """Whether this is a real one, as a constant of its class; a class that does not say counts as one."""
        ...

    @property
    def limits(self) -> RobotLimits:
        """What this robot can do; those of the robot itself once it is started."""
        ...

    def start(self, now_ns: int) -> None:
        """Connect and become ready. Never moves. Raises RobotError in words where the robot cannot be had."""
        ...

    def read(self, now_ns: int) -> RobotState:
        """Joint state, odometry and contact; `read_ns` is when they were measured, at most now."""
        ...

    def status(self, now_ns: int) -> RobotStatus:
        """Whether it follows commands and why not, homing, runstop, battery and alerts."""
        ...

    def command(self, command: JointCommand) -> None:
        """Set joint targets and base velocity; they hold until the next command, `stop`, or the robot's own watchdog.

        Targets are clipped to the joints' ranges, wheel speeds to the base's. Without effect while the mode is not
        "ready". Raises ValueError where the command is not complete and finite.
        """
        ...

    def advance(self, now_ns: int) -> None:
        """Let time pass: a simulator's own, a real robot's watchdogs and what is due to be sent."""
        ...

    def stop(self) -> None:
        """Base velocity zero, joints held where they are; a gripper keeps its grip."""
        ...

    def home(self) -> None:
        """Find the joints' zeros; moves, and may block until done. Raises RobotError where it is refused."""
        ...

    def stow(self) -> None:
        """Fold the robot; moves, and may block until done. Raises RobotError where it is refused."""
        ...

    def runstop(self, is_on: bool) -> None:
        """Stop all motors by the robot's own means, or let them run again; after that nothing moves by itself."""
        ...

    def close(self) -> None:
        """Release the robot, stopped. May be called again, and at any time."""
        ...


PointM = tuple[float, float, float]
"""x ahead, y left, z up; m."""


@dataclass(frozen=True, slots=True)
class Capsule:
    """A part of the robot that its own camera may see: a line with a radius, odometry frame; m."""

    start: PointM
    end: PointM
    radius_m: float


class Body(Protocol):
    """What a robot model knows of its own body, for who looks and reaches: pure functions of its state."""

    @property
    def skills(self) -> str:
        """What carries out the scripted skills with it, as "module:NAME" of a function of this body."""
        ...

    def head_camera(self, state: RobotState) -> CameraPose:
        """Rotation (right, down, forward in columns) and position of the camera of policies, odometry frame."""
        ...

    def own_parts(self, state: RobotState) -> tuple[Capsule, ...]:
        """What of the robot, and of what it holds, that camera may see; odometry frame."""
        ...

    def hand_point(self, state: RobotState) -> PointM:
        """The point between the fingertips, odometry frame."""
        ...

    def is_steady(self, one: RobotState, two: RobotState) -> bool:
        """Whether that camera hardly moved between the two."""
        ...


@dataclass(frozen=True, slots=True)
class Twist:
    """How the point between the fingertips is to move: along the base's axes, and turning about itself."""

    ahead_mps: float = 0.0
    left_mps: float = 0.0
    up_mps: float = 0.0
    pitch_radps: float = 0.0
    yaw_radps: float = 0.0


@dataclass(frozen=True, slots=True)
class Reaching:
    """The next piece of a way to a thing: joint goals by name, base speed; or why there is no way."""

    goals: dict[str, float]
    base_v_mps: float = 0.0
    why_not: str = ""


class Hand(Protocol):
    """The kinematics of one robot model, for who moves its hand. Pure functions of values."""

    def point(self, position: JointVector) -> PointM:
        """The point between the fingertips, base frame."""
        ...

    def rates(self, position: JointVector, twist: Twist) -> tuple[dict[str, float], float]:
        """Joint rates by name and base speed that move the hand so."""
        ...

    def above(self, state: RobotState, thing_m: PointM) -> Reaching:
        """One step on the way to above a thing of the odometry frame, fingers pointing down.

        They open on the way, but not where they hold something.
        """
        ...

    def grasp(self, state: RobotState, thing_m: PointM, height_m: float) -> Reaching:
        """One step on the way to have that thing: above it, down with open fingers, close, and up with it.

        `thing_m` is its middle in the odometry frame, `height_m` how tall it is.
        """
        ...

    def place(self, state: RobotState, thing_m: PointM, height_m: float) -> Reaching:
        """One step on the way to let go of what is held over that thing: carry it there, open, and up."""
        ...
