"""Motion within limits: one joint or two wheels at a time, every tick, moving or braking.

Velocity here is the mean over one step, so it and its change per step are exactly what the motor is asked for. A step
is only taken if braking from where it ends, v^2 / 2a, still stops before the target. In steps of any length a brake
needs no more than that. So the next step can always keep the promise again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import copysign, sqrt

from nodes.robot.protocol import BaseLimit, JointLimit, RobotLimits
from nodes.robot.robot_from_launch import is_file, load_limits
from nodes.stretch.limits import STRETCH_3
from runtime.errors import ParameterError, choices

CEILINGS: dict[str, RobotLimits] = {"stretch_3": STRETCH_3}


def limits_of(robot: str, speed_scale: float = 1.0) -> RobotLimits:
    """The limits of that robot with all speeds scaled down; braking stays as strong as the robot allows.

    Raises ParameterError for an unknown robot, for limits that no robot can have, and for a scale outside (0, 1].
    """
    ceiling = load_limits(robot) if ":" in robot or is_file(robot) else CEILINGS.get(robot)
    if ceiling is None:
        known = f'{choices(CEILINGS)}, or limits of your own, as "module:NAME"'
        raise ParameterError(f"guard: robot {robot!r} is unknown; known: {known}")
    if not 0.0 < speed_scale <= 1.0:
        raise ParameterError(f"guard: speed_scale is {speed_scale}; expected more than 0 and at most 1, the ceiling")
    body = ceiling.cartesian
    return replace(
        ceiling,
        joints=tuple(replace(joint, speed=joint.speed * speed_scale) for joint in ceiling.joints),
        base=replace(ceiling.base, wheel_speed_mps=ceiling.base.wheel_speed_mps * speed_scale),
        cartesian=body
        and replace(
            body,
            tip_speed_mps=body.tip_speed_mps * speed_scale,
            base_speed_out_mps=body.base_speed_out_mps * speed_scale,
        ),
    )


@dataclass(frozen=True, slots=True)
class Motion:
    """Where a joint is asked to be, and how fast it is asked to go there; m or rad, per s."""

    position: float
    velocity: float = 0.0


@dataclass(frozen=True, slots=True)
class Wheels:
    """Speeds of the two wheels over the ground, and of a base that drives sideways, to the left; m/s."""

    left_mps: float = 0.0
    right_mps: float = 0.0
    sideways_mps: float = 0.0

    @property
    def fastest_mps(self) -> float:
        """What counts against a base's wheel speed: no point of the ground under it passes faster."""
        return max(abs(self.left_mps), abs(self.right_mps)) + abs(self.sideways_mps)


def toward(motion: Motion, target: float, limit: JointLimit, dt_s: float) -> Motion:
    """One step toward the target: fast, never past it or out of the joint's range, never beyond speed or acceleration.

    A target that moves behind the braking distance is overshot by what braking needs, and returned to.
    """
    if dt_s <= 0.0:
        return motion
    goal = min(max(target, limit.lowest), limit.highest)
    distance = goal - motion.position
    wanted = copysign(min(limit.speed, _fastest(abs(distance), limit.acceleration, dt_s)), distance)
    return _step(motion, wanted, limit, dt_s)


def brake(motion: Motion, limit: JointLimit, dt_s: float) -> Motion:
    """One step of the braking profile: velocity falls by the joint's acceleration until it is zero."""
    if dt_s <= 0.0:
        return motion
    return _step(motion, 0.0, limit, dt_s)


def drive(
    wheels: Wheels, v_mps: float, w_radps: float, limit: BaseLimit, dt_s: float, sideways_mps: float = 0.0
) -> Wheels:
    """One step toward the speeds that give v, w and the way sideways, scaled together to keep the curve."""
    if dt_s <= 0.0:
        return wheels
    left = v_mps - w_radps * limit.track_m / 2
    right = v_mps + w_radps * limit.track_m / 2
    fastest = Wheels(left, right, sideways_mps).fastest_mps
    if fastest > limit.wheel_speed_mps:
        left *= limit.wheel_speed_mps / fastest
        right *= limit.wheel_speed_mps / fastest
        sideways_mps *= limit.wheel_speed_mps / fastest
    change = Wheels(left - wheels.left_mps, right - wheels.right_mps, sideways_mps - wheels.sideways_mps)
    largest, allowed = change.fastest_mps, limit.acceleration_mps2 * dt_s
    if largest <= allowed:
        return Wheels(left, right, sideways_mps)
    return Wheels(
        wheels.left_mps + change.left_mps * allowed / largest,
        wheels.right_mps + change.right_mps * allowed / largest,
        wheels.sideways_mps + change.sideways_mps * allowed / largest,
    )


def base_velocity(wheels: Wheels, limit: BaseLimit) -> tuple[float, float]:
    """Forward velocity in m/s and turning in rad/s of a base whose wheels go that fast."""
    return (wheels.left_mps + wheels.right_mps) / 2, (wheels.right_mps - wheels.left_mps) / limit.track_m


def _fastest(distance: float, acceleration: float, dt_s: float) -> float:
    """The v for which one step and the brake after it, v dt + v^2 / 2a, cover just this distance."""
    # The quadratic's root in the form that loses no digits when the distance is small.
    change = acceleration * dt_s
    return 2 * acceleration * distance / (change + sqrt(change * change + 2 * acceleration * distance))


def _step(motion: Motion, wanted: float, limit: JointLimit, dt_s: float) -> Motion:
    change = limit.acceleration * dt_s
    velocity = min(max(wanted, motion.velocity - change), motion.velocity + change)
    position = motion.position + velocity * dt_s
    # Against rounding at the ends only: a joint that was measured outside its range is not pulled in by a jump.
    lowest, highest = min(limit.lowest, motion.position), max(limit.highest, motion.position)
    return Motion(min(max(position, lowest), highest), velocity)
