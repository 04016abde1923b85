"""`STRETCH_HAND`: how a Stretch's hand moves in space: base, lift and arm carry it, and wrist turns are made up for.

The arm is a Cartesian one: the base carries the hand ahead, the arm to the right, the lift up. While pitch and yaw of
the wrist turn, these three move back by what the turn adds, so that the point between the fingertips stays.
"""

from __future__ import annotations

import math

import numpy as np

from nodes.msgs import JOINTS, JointVector, RobotState
from nodes.policy.onnx.inputs import pose_of
from nodes.policy.skill_phases import Spot
from nodes.policy.stretch_motion import (
    FINGER_BELOW_M,
    JOINT_TOLERANCE_M,
    LIFT_SLACK_M,
    OPEN_M,
    WRIST_TOLERANCE_RAD,
    travel_lift_m,
)
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
    Reach,
    Vector,
    grasp_point,
    look_at,
    solve,
)

STEP_RAD = 1e-4
TALLEST_M = 0.68
"""What may stand where the hand passes, as the scripted policy has it."""
NEAR_M = 0.006
LOW_NEAR_M = 0.025
"""A hand that is on its way down stays on it this far off."""
DROP_NEAR_M, STILL_MPS = 0.03, 0.03
"""Good enough above a bin, and for what falls from a hand that drives."""
CARRIED_BELOW_M = 0.10
"""How far what is carried may hang below the point between the fingertips."""
CLOSED_M = 0.006
"""Fingers that are no further apart have nothing between them."""
OPEN_SLACK_M = 0.02
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
        reach = solve(thing_m, *pose_of(state))
        if reach is None:
            return Reaching({}, why_not=TOO_FAR)
        goals = _looking(state, thing_m)
        lift_m = travel_lift_m(TALLEST_M, None) + (CARRIED_BELOW_M - FINGER_BELOW_M if state.is_grasping else 0.0)
        goals[JOINTS[LIFT]] = lift_m
        if state.position[LIFT] < lift_m - LIFT_SLACK_M:
            return Reaching(goals)
        goals |= {JOINTS[ARM]: reach.arm_m, JOINTS[WRIST_YAW]: 0.0, JOINTS[WRIST_PITCH]: DOWN_RAD}
        goals[JOINTS[WRIST_ROLL]] = 0.0
        if not state.is_grasping:
            goals[JOINTS[GRIPPER]] = OPEN_M
        return Reaching(goals, _speed(reach.travel_m))

    def grasp(self, state: RobotState, thing_m: PointM, height_m: float) -> Reaching:
        """What to do next is read off the hand: it remembers nothing, so that it may be let go of at any time."""
        if state.is_grasping:
            return Reaching({JOINTS[LIFT]: travel_lift_m(TALLEST_M, None) + CARRIED_BELOW_M - FINGER_BELOW_M})
        x, y, z = thing_m
        reach = solve((x, y, Spot("", x, y, z, height_m).grasp_z_m), *pose_of(state))
        if reach is None:
            return Reaching({}, why_not=TOO_FAR)
        if not _is_over(state, reach):
            return self.above(state, thing_m)
        is_low = abs(state.position[LIFT] - reach.lift_m) < JOINT_TOLERANCE_M
        opening = state.position[GRIPPER]
        if is_low and opening < CLOSED_M:
            return Reaching({}, why_not="nothing is between the fingers: open them, and hold it again")
        if is_low:
            return Reaching({JOINTS[GRIPPER]: 0.0, JOINTS[LIFT]: reach.lift_m})
        if opening < OPEN_M - OPEN_SLACK_M:
            return Reaching({JOINTS[GRIPPER]: OPEN_M})
        return Reaching(_looking(state, thing_m) | {JOINTS[LIFT]: reach.lift_m, JOINTS[GRIPPER]: OPEN_M})

    def place(self, state: RobotState, thing_m: PointM, height_m: float) -> Reaching:
        """Remembers nothing, either: fingers that have let go are open, and those that are shut hold nothing."""
        opening = state.position[GRIPPER]
        if not state.is_grasping and opening < CLOSED_M:
            return Reaching({}, why_not="there is nothing in the hand to put there: take something first")
        if not state.is_grasping:  # they open to the end, or what they held sticks to one of them
            return Reaching({JOINTS[GRIPPER]: OPEN_M})
        carried = self.above(state, thing_m)
        reach = solve(thing_m, *pose_of(state))
        if reach is None or carried.why_not or not _is_above(state, reach, carried.goals[JOINTS[LIFT]]):
            return carried
        return Reaching({JOINTS[GRIPPER]: OPEN_M})


TOO_FAR = "it is out of the arm's reach: drive until it is on the robot's right"


def _looking(state: RobotState, thing_m: PointM) -> dict[str, float]:
    """The head turns to where the hand goes."""
    pan, tilt = look_at(thing_m, *pose_of(state))
    return {JOINTS[HEAD_PAN]: pan, JOINTS[HEAD_TILT]: tilt}


def _is_over(state: RobotState, reach: Reach) -> bool:
    """Whether the hand points down right above the place, so that the lift alone leads there."""
    is_high = state.position[LIFT] > travel_lift_m(TALLEST_M, None) - LIFT_SLACK_M
    near_m = JOINT_TOLERANCE_M if is_high else LOW_NEAR_M
    wrist = (state.position[WRIST_YAW], state.position[WRIST_PITCH] - DOWN_RAD, state.position[WRIST_ROLL])
    is_down = max(abs(angle) for angle in wrist) < WRIST_TOLERANCE_RAD
    return is_down and max(abs(reach.travel_m), abs(reach.arm_m - state.position[ARM])) < near_m


def _is_above(state: RobotState, reach: Reach, lift_m: float) -> bool:
    """Whether what the hand carries would fall into what is below it, and nothing swings."""
    off_m = max(abs(reach.travel_m), abs(reach.arm_m - state.position[ARM]))
    is_high = state.position[LIFT] > lift_m - LIFT_SLACK_M
    return is_high and off_m < DROP_NEAR_M and abs(state.base_v_mps) < STILL_MPS


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
