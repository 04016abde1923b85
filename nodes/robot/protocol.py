"""`Robot`: what a driver needs of a robot. `RobotLimits`: what a guard may send to it. `Hand`, `Body`: its reach."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from runtime.errors import PolyrhythmError

if TYPE_CHECKING:  # numpy comes with them, and every run that starts reads this file
    import numpy as np
    from numpy.typing import NDArray

    from nodes.msgs import JointCommand, JointVector, RobotState, RobotStatus

    CameraPose = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class JointLimit:
    """Limits of one joint: range in m or rad, speed in m/s or rad/s, acceleration in m/s2 or rad/s2."""

    name: str
    lowest: float
    highest: float
    speed: float
    acceleration: float


@dataclass(frozen=True, slots=True)
class BaseLimit:
    """Limits of a base with two wheels `track_m` apart, each limited by itself; `wheel_speed_mps` 0 for one that
    stands.

    An omnidirectional base (`is_omni`) also drives sideways: the faster wheel's speed and the sideways speed add up to
    `wheel_speed_mps` at most.
    """

    wheel_speed_mps: float
    acceleration_mps2: float
    track_m: float
    is_omni: bool = False


FIXED_BASE = BaseLimit(wheel_speed_mps=0.0, acceleration_mps2=1.0, track_m=1.0)
"""The base of a robot that does not drive: no command moves its wheels."""


Ball = tuple[float, float, float, float]
"""Centre of a ball relative to the base's centre on the floor (ahead, left, up), and its radius; m."""


@dataclass(frozen=True, slots=True)
class CartesianLimits:
    """Limits of the body as a whole, by balls that cover it.

    `outline` is a pure function of joint positions, or names one as "module:function"; it returns the same number of
    balls in the same order each time. No ball moves faster than `tip_speed_mps` over the ground, or reaches below
    `floor_m`. While one reaches further than `out_m` from the base's centre, no wheel is faster than
    `base_speed_out_mps`.
    """

    outline: str | Callable[[JointVector], tuple[Ball, ...]]
    tip_speed_mps: float
    base_speed_out_mps: float
    out_m: float
    floor_m: float = 0.0


@dataclass(frozen=True, slots=True)
class RobotLimits:
    """Hard limits of one robot model; no command exceeds them.

    `joints` are in the order of all joint vectors of a graph: that of `msgs.JOINTS`, where no other robot is named.
    Without `cartesian` the guard limits joints and wheels only. `body` names a `Body`, as "module:NAME"; without one,
    nobody can look along the arm or reach with it. `urdf` names the URDF for viewers, as "package:file.urdf", with a
    joint of each name.
    """

    joints: tuple[JointLimit, ...]
    base: BaseLimit = FIXED_BASE
    cartesian: CartesianLimits | None = None
    body: str = ""
    urdf: str = ""


class RobotError(PolyrhythmError):
    """A robot that cannot be reached, or that refuses a request; the text says what to do."""


def is_complete(command: JointCommand, joints: int) -> bool:
    """Whether a command has one finite position for each of `joints` joints, and finite base velocities."""
    values = (*command.position, command.base_v_mps, command.base_w_radps, command.base_vy_mps)
    return len(command.position) == joints and all(map(math.isfinite, values))


def check_command(command: JointCommand, joints: int) -> None:
    """Raise ValueError where a command is not complete."""
    if not is_complete(command, joints):
        raise ValueError(f"joint command {command} is refused; expected {joints} finite positions")


class Robot(Protocol):
    """One robot, real or simulated. No method but `home` and `stow` blocks for longer than a control period.

    Times are stamps of the run's clock, in ns. `nodes.robot.conformance` tests each promise made here.
    """

    @property
    def is_hardware(self) -> bool:
        """Whether this is real hardware, as a constant of the class; a class that does not say so counts as real."""
        ...

    @property
    def limits(self) -> RobotLimits:
        """What this robot can do; once started, the limits of this very unit."""
        ...

    def start(self, now_ns: int) -> None:
        """Connect and become ready, without any motion. Raises RobotError where the robot cannot be reached."""
        ...

    def read(self, now_ns: int) -> RobotState:
        """The measured joint state, odometry and contact; `read_ns` is when they were measured, at most `now_ns`."""
        ...

    def status(self, now_ns: int) -> RobotStatus:
        """The robot's mode and why it does not follow commands, homing, runstop, battery and alerts."""
        ...

    def command(self, command: JointCommand) -> None:
        """Set joint targets and base velocity; they hold until the next command, `stop`, or the robot's own watchdog.

        Positions are in m or rad, velocities in m/s and rad/s. Targets are clipped to the joints' ranges, wheel speeds
        to the base's. A command has no effect unless the mode is "ready". Raises ValueError where it is incomplete or
        not finite.
        """
        ...

    def advance(self, now_ns: int) -> None:
        """Let time pass: a simulator's own, or a real robot's watchdogs and pending messages."""
        ...

    def stop(self) -> None:
        """Set the base velocity to zero and hold the joints where they are; a gripper keeps its grip."""
        ...

    def home(self) -> None:
        """Find the zero of each joint; moves, and may block until done. Raises RobotError where it is refused."""
        ...

    def stow(self) -> None:
        """Fold the robot; moves, and may block until done. Raises RobotError where it is refused."""
        ...

    def runstop(self, is_on: bool) -> None:
        """Stop all motors by the robot's own means, or release them; a release moves nothing."""
        ...

    def close(self) -> None:
        """Stop the robot and release it. May be called repeatedly, and at any time."""
        ...


PointM = tuple[float, float, float]
"""A point: x ahead, y left, z up; m."""


@dataclass(frozen=True, slots=True)
class Capsule:
    """A part of the robot that its camera may see: a line with a radius, odometry frame; m."""

    start: PointM
    end: PointM
    radius_m: float


class Body(Protocol):
    """What a robot model knows of its own body, for nodes that look and reach; pure functions of its state."""

    @property
    def skills(self) -> str:
        """Names the function of this body that carries out the scripted skills, as "module:NAME"."""
        ...

    def head_camera(self, state: RobotState) -> CameraPose:
        """Rotation (3, 3) and position (3,) of the head camera, odometry frame; columns are right, down and forward."""
        ...

    def own_parts(self, state: RobotState) -> tuple[Capsule, ...]:
        """The parts of the robot, and of what it holds, that the camera may see; odometry frame."""
        ...

    def hand_point(self, state: RobotState) -> PointM:
        """The point between the fingertips, odometry frame; m."""
        ...

    def is_steady(self, one: RobotState, two: RobotState) -> bool:
        """Whether the camera hardly moved between the two states."""
        ...


@dataclass(frozen=True, slots=True)
class Twist:
    """A velocity of the point between the fingertips: along the base's axes, and turning about itself."""

    ahead_mps: float = 0.0
    left_mps: float = 0.0
    up_mps: float = 0.0
    pitch_radps: float = 0.0
    yaw_radps: float = 0.0


@dataclass(frozen=True, slots=True)
class Reaching:
    """The next step on the way to a thing: joint targets by name, base velocity; or why there is no way."""

    goals: dict[str, float]
    base_v_mps: float = 0.0
    why_not: str = ""


class MovesHand(Protocol):
    """The kinematics that a joystick needs; a pure function of values."""

    def rates(self, position: JointVector, twist: Twist) -> tuple[dict[str, float], float]:
        """Joint velocities by name, m/s or rad/s, and the base's in m/s, that move the hand with this twist."""
        ...


class Hand(Protocol):
    """The kinematics of one robot model, for nodes that move its hand; pure functions of values."""

    def point(self, position: JointVector) -> PointM:
        """The point between the fingertips, base frame; m."""
        ...

    def rates(self, position: JointVector, twist: Twist) -> tuple[dict[str, float], float]:
        """As `MovesHand.rates`."""
        ...

    def above(self, state: RobotState, thing_m: PointM) -> Reaching:
        """One step towards a place above a point of the odometry frame, with the fingers pointing down.

        The fingers open on the way, unless they hold something.
        """
        ...

    def grasp(self, state: RobotState, thing_m: PointM, height_m: float) -> Reaching:
        """One step towards holding a thing: go above it, descend with open fingers, close them, lift it.

        `thing_m` is its centre in the odometry frame, `height_m` its height.
        """
        ...

    def place(self, state: RobotState, thing_m: PointM, height_m: float) -> Reaching:
        """One step towards releasing what is held over a thing: carry it there, open the fingers, rise."""
        ...
