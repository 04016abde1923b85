"""Motion within limits: one step of one joint, or of the wheels, moving or braking.

Velocity here is the mean over one step. So it, and its change from step to step, are exactly what the motor is asked
for. A step is taken only if braking from its end, v^2 / 2a, still stops before the target. Braking in steps of any
length needs no more room than that. So the next step can always keep the same promise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import copysign, sqrt

from nodes.robot.protocol import BaseLimit, JointLimit, RobotLimits
from nodes.robot.robot_from_launch import load_limits
from nodes.stretch.limits import STRETCH_3
from runtime.errors import ParameterError, choices

CEILINGS: dict[str, RobotLimits] = {"stretch_3": STRETCH_3}


def limits_of(robot: str, speed_scale: float = 1.0) -> RobotLimits:
    """The limits of a robot with all speeds times `speed_scale`; braking stays as strong as the robot allows.

    Raises ParameterError for an unknown robot, for limits that no robot can have, and for a scale outside (0, 1].
    """
    ceiling = load_limits(robot) if ":" in robot or robot.endswith(".toml") else CEILINGS.get(robot)
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
    """The commanded position and velocity of one joint: m or rad, m/s or rad/s."""

    position: float
    velocity: float = 0.0


@dataclass(frozen=True, slots=True)
class Wheels:
    """Commanded speeds over the ground, m/s: of the two wheels, and to the left of a base that drives sideways."""

    left_mps: float = 0.0
    right_mps: float = 0.0
    sideways_mps: float = 0.0

    @property
    def fastest_mps(self) -> float:
        """What counts against the wheels' speed limit: no point of the ground under the base passes faster."""
        return max(abs(self.left_mps), abs(self.right_mps)) + abs(self.sideways_mps)


def toward(motion: Motion, target: float, limit: JointLimit, dt_s: float) -> Motion:
    """One step of `dt_s` seconds towards the target, within the joint's range, speed and acceleration.

    It comes to rest at the target. Only a target that is, or moves to, within the braking distance is passed: by what
    braking needs, and then approached again. Positions are in m or rad.
    """
    if dt_s <= 0.0:
        return motion
    goal = min(max(target, limit.lowest), limit.highest)
    distance = goal - motion.position
    wanted = copysign(min(limit.speed, _fastest(abs(distance), limit.acceleration, dt_s)), distance)
    return _step(motion, wanted, limit, dt_s)


def brake(motion: Motion, limit: JointLimit, dt_s: float) -> Motion:
    """One step of the braking profile: the velocity falls at the joint's acceleration limit until it is zero."""
    if dt_s <= 0.0:
        return motion
    return _step(motion, 0.0, limit, dt_s)


def drive(
    wheels: Wheels, v_mps: float, w_radps: float, limit: BaseLimit, dt_s: float, sideways_mps: float = 0.0
) -> Wheels:
    """One step of the wheels towards a base velocity, within the base's speed and acceleration.

    `v_mps` is forward, `w_radps` turns left, `sideways_mps` is to the left. All are scaled together, so that the path
    keeps its curve.
    """
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
    """The base's forward velocity in m/s and turning rate in rad/s, for these wheel speeds."""
    return (wheels.left_mps + wheels.right_mps) / 2, (wheels.right_mps - wheels.left_mps) / limit.track_m


def _fastest(distance: float, acceleration: float, dt_s: float) -> float:
    """The speed v at which one step and the braking after it, v dt + v^2 / 2a, cover exactly this distance."""
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
