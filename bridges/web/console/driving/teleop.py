"""From what a person holds down to a joint command: pure, one call per message of the browser.

Nothing here repeats anything: a browser that falls silent makes no command, and the guard's lifespan does the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import atan2, copysign, cos, hypot, pi, sqrt

from bridges.web.console.driving.floor_path import Way
from bridges.web.http.wire import Drive
from nodes.msgs import JointCommand, JointVector, RobotState
from nodes.robot.protocol import BaseLimit, Hand, JointLimit, PointM, RobotLimits, Twist

TURN_RADPS = 0.8
"""Fastest turn of the base; its wheels could do more than a person wants."""
HAND_MPS, HAND_RADPS = 0.13, 0.8
"""Fastest the hand goes along one axis (the lift does no more), and turns."""
LEAD_S = 0.12
"""How far ahead of the guard's output a goal is kept, so that it moves on until the next message."""
STILL = 0.02
"""Of a joint's speed: below it, a joint stands."""
ARRIVED_M = 0.04
TURNED_RAD = 0.03
PointM2 = tuple[float, float]
"""x, y on the floor, odometry frame."""
ALIGNED_RAD = 0.35
"""The base drives towards a spot once it looks there so well, and turns on the spot before."""
BRAKE_SHARE = 0.7
"""Of the base's acceleration, counted on when it comes to rest at a spot."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What hand and goal add to the joints and the base; or why that goes nowhere."""

    rates: Mapping[str, float] = field(default_factory=dict)
    goals: Mapping[str, float] = field(default_factory=dict)
    v_mps: float = 0.0
    w_radps: float = 0.0
    why_not: str = ""


def aim(
    wanted: Drive,
    limits: RobotLimits,
    hand: Hand,
    state: RobotState,
    thing_m: PointM | None,
    height_m: float = 0.0,
    way: Way | None = None,
) -> Aim:
    """What the held hand arrows, "go there" "take it" or "put it there" ask for.

    `thing_m` is where the thing of `wanted.to` is, `height_m` how tall it is; `way` leads to where there is none.
    """
    if wanted.hand:
        speed, turn = HAND_MPS * wanted.scale, HAND_RADPS * wanted.scale
        twist = Twist(
            ahead_mps=wanted.hand.get("ahead", 0.0) * speed,
            left_mps=wanted.hand.get("left", 0.0) * speed,
            up_mps=wanted.hand.get("up", 0.0) * speed,
            pitch_radps=wanted.hand.get("pitch", 0.0) * turn,
            yaw_radps=wanted.hand.get("yaw", 0.0) * turn,
        )
        rates, v_mps = hand.rates(state.position, twist)
        return Aim(rates=rates, v_mps=v_mps)
    if wanted.to is None:
        return Aim()
    fastest = wanted.scale * limits.base.wheel_speed_mps
    if thing_m is None and wanted.do != "go":
        return Aim(why_not="select a thing that the robot sees: a spot of the floor will not do")
    if thing_m is None:
        corners = way.corners if way is not None and way.corners else ((wanted.to.x_m, wanted.to.y_m),)
        v_mps, w_radps = towards(corners, wanted.to.heading_rad, state, limits.base, fastest, wanted.scale * TURN_RADPS)
        return Aim(v_mps=v_mps, w_radps=w_radps)
    match wanted.do:
        case "take":
            reaching = hand.grasp(state, thing_m, height_m)
        case "put":
            reaching = hand.place(state, thing_m, height_m)
        case _:
            reaching = hand.above(state, thing_m)
    v_mps = copysign(min(abs(reaching.base_v_mps), fastest), reaching.base_v_mps)
    return Aim(goals=reaching.goals, v_mps=v_mps, why_not=reaching.why_not)


def towards(
    corners: Sequence[PointM2],
    heading_rad: float | None,
    state: RobotState,
    base: BaseLimit,
    fastest_mps: float,
    fastest_radps: float,
) -> tuple[float, float]:
    """Base speed and turn on the way over these corners: look there first, then drive, and stop before the last one.

    `heading_rad`: how to stand there in the end, where that matters.
    """
    (x_m, y_m), is_last = corners[0], len(corners) == 1
    dx, dy = x_m - state.base_x_m, y_m - state.base_y_m
    away_m = hypot(dx, dy)
    if is_last and away_m < (ARRIVED_M if heading_rad is None else 2 * ARRIVED_M):
        off = 0.0 if heading_rad is None else (heading_rad - state.base_heading_rad + pi) % (2 * pi) - pi
        return 0.0, 0.0 if abs(off) < TURNED_RAD else copysign(min(fastest_radps, 1.5 * abs(off)), off)
    off = (atan2(dy, dx) - state.base_heading_rad + pi) % (2 * pi) - pi
    turn = copysign(min(fastest_radps, 1.5 * abs(off)), off)
    if abs(off) > ALIGNED_RAD:
        return 0.0, turn
    brake = sqrt(2 * BRAKE_SHARE * base.acceleration_mps2 * max(0.0, away_m - ARRIVED_M / 2))
    return min(fastest_mps, brake) * cos(off), turn


def command(
    wanted: Drive, limits: RobotLimits, setpoint: JointVector, velocity: JointVector, aim: Aim | None = None
) -> JointCommand:
    """The command for what is held: joints start from what the guard asks for now, so that taking over never jumps."""
    aim = aim or Aim()
    position = tuple(
        _goal(wanted, aim, joint, here, speed)
        for joint, here, speed in zip(limits.joints, setpoint, velocity, strict=True)
    )
    return JointCommand(
        position=position,
        base_v_mps=wanted.ahead * wanted.scale * limits.base.wheel_speed_mps + aim.v_mps,
        base_w_radps=wanted.left * wanted.scale * TURN_RADPS + aim.w_radps,
        base_vy_mps=wanted.aside * wanted.scale * limits.base.wheel_speed_mps if limits.base.is_omni else 0.0,
    )


def unknown_joints(wanted: Drive, joints: Sequence[JointLimit]) -> list[str]:
    """Names in the message that are no joints."""
    names = {joint.name for joint in joints}
    return sorted((set(wanted.jog) | set(wanted.goals)) - names)


def _goal(wanted: Drive, aim: Aim, joint: JointLimit, here: float, velocity: float) -> float:
    rate = wanted.jog.get(joint.name, 0.0) * joint.speed * wanted.scale + aim.rates.get(joint.name, 0.0)
    goals = {**aim.goals, **wanted.goals}
    if rate:
        rate = copysign(min(abs(rate), joint.speed), rate)
        goal = here + copysign(_lead(rate, joint), rate)
    elif joint.name in goals:
        lead = _lead(joint.speed * wanted.scale, joint)
        goal = min(max(goals[joint.name], here - lead), here + lead)
    elif abs(velocity) > STILL * joint.speed:
        goal = here + copysign(velocity * velocity / (2 * joint.acceleration), velocity)  # come to rest, no way back
    else:
        goal = here
    return min(max(goal, joint.lowest), joint.highest)


def _lead(rate: float, joint: JointLimit) -> float:
    """Where the guard's braking profile for this rate ends, and what is covered until the next message."""
    return rate * rate / (2 * joint.acceleration) + abs(rate) * LEAD_S
