"""`STRETCH_HAND`: how a Stretch's hand moves in space: base, lift and arm carry it, and wrist turns are made up for.

The arm is a Cartesian one: the base carries the hand ahead, the arm to the right, the lift up. While pitch and yaw of
the wrist turn, these three move back by what the turn adds, so that the point between the fingertips stays.
"""

from __future__ import annotations

import math

import numpy as np

from nodes.policy.stretch_motion import LIFT_SLACK_M, OPEN_M, travel_lift_m
from nodes.robot.protocol import PointM, Reaching, Twist
from nodes.stretch.kinematics import (
    ARM,
    DOWN_RAD,
    GRIPPER,
    HEAD_PAN,
    HEAD_TILT,
    LIFT,
    WRIST_PITCH,
    WRIST_ROLL,
    WRIST_YAW,
    Vector,
    grasp_point,
    look_at,
    solve,
)
from runtime.msgs import JOINTS, JointVector, RobotState

STEP_RAD = 1e-4
TALLEST_M = 0.68
"""What may stand where the hand passes, as the scripted policy has it."""
NEAR_M = 0.006
FASTEST_MPS, BRAKE_MPS2, GAIN_PER_S = 0.25, 0.20, 1.5


class StretchHand:
    """The `Hand` of a Stretch 3."""

    def point(self, position: JointVector) -> PointM:
        """The point between the fingertips, base frame."""
        x, y, z = grasp_point(position)
        return float(x), float(y), float(z)

    def rates(self, position: JointVector, twist: Twist) -> tuple[dict[str, float], float]:
        """Joint rates by name and base speed that move the hand so."""
        turned = _slope(position, WRIST_PITCH) * twist.pitch_radps + _slope(position, WRIST_YAW) * twist.yaw_radps
        rates = {
            "arm": -(twist.left_mps - float(turned[1])),
            "lift": twist.up_mps - float(turned[2]),
            "wrist_pitch": twist.pitch_radps,
            "wrist_yaw": twist.yaw_radps,
        }
        return {name: rate for name, rate in rates.items() if rate}, twist.ahead_mps - float(turned[0])

    def above(self, state: RobotState, thing_m: PointM) -> Reaching:
        """Lift first, then everything else at once at the height at which nothing is in the way."""
        base = (state.base_x_m, state.base_y_m, state.base_heading_rad)
        pan, tilt = look_at(thing_m, *base)
        goals = {JOINTS[HEAD_PAN]: pan, JOINTS[HEAD_TILT]: tilt}
        reach = solve(thing_m, *base)
        if reach is None:
            return Reaching({}, why_not="it is out of the arm's reach: drive until it is on the robot's right")
        lift_m = travel_lift_m(TALLEST_M, None)
        goals[JOINTS[LIFT]] = lift_m
        if state.position[LIFT] < lift_m - LIFT_SLACK_M:
            return Reaching(goals)
        goals |= {JOINTS[ARM]: reach.arm_m, JOINTS[WRIST_YAW]: 0.0, JOINTS[WRIST_PITCH]: DOWN_RAD}
        goals |= {JOINTS[WRIST_ROLL]: 0.0, JOINTS[GRIPPER]: OPEN_M}
        return Reaching(goals, _speed(reach.travel_m))


def _slope(position: JointVector, joint: int) -> Vector:
    """How the hand's point moves with a joint; m per rad."""
    more = tuple(value + STEP_RAD if place == joint else value for place, value in enumerate(position))
    moved: Vector = (grasp_point(more) - grasp_point(position)) / STEP_RAD
    return moved


def _speed(distance_m: float) -> float:
    if abs(distance_m) < NEAR_M:
        return 0.0
    fast = min(FASTEST_MPS, math.sqrt(2 * BRAKE_MPS2 * abs(distance_m)), GAIN_PER_S * abs(distance_m))
    return float(np.copysign(fast, distance_m))


STRETCH_HAND = StretchHand()
