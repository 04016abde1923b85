"""The teacher: what a robot that stands so should do about a target. It remembers nothing.

The scripted policy remembers in which phase it is; a pupil that came otherwise would be told otherwise. Here the phase
follows from the joints alone. Its hysteresis lies in the state: the lower the gripper, the further off it may be before
it goes up again. Goals are absolute, so that a pupil that is a little wrong comes to rest where it should.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from examples.train_policy.teacher import point_down, within
from nodes.msgs import RobotState
from nodes.policy.stretch_motion import DRIVE_GAIN_PER_S, DRIVE_MPS, DRIVE_MPS2, OPEN_M, is_out
from nodes.stretch.kinematics import (
    ARM,
    DOWN_RAD,
    GRIPPER,
    HEAD_PAN,
    HEAD_TILT,
    LIFT,
    WRIST_OUT_M,
    WRIST_PITCH,
    WRIST_ROLL,
    WRIST_YAW,
    look_at,
)
from nodes.stretch.limits import STOW

TRAVEL_M = 0.885
"""The lift at which the gripper passes above all that stands on the table, with a cup in it."""
UP_SLACK_M = 0.03
NEAR_M, NEAR_LOW_M = 0.007, 0.022
"""How far off the gripper may be above a thing before it goes down, and beside it before it goes up again."""
GRASP_SLACK_M = 0.014
RELEASE_M, GONE_M = 0.045, 0.15
"""So near it lets go; what was let go nearer than the other one is taken to have fallen in."""
MISSED_M = 0.03
"""An opening that none of the things leaves: there is nothing between the fingers."""
WAY_OPEN_M = OPEN_M - 0.02
STRAIGHT_RAD = 0.08
SLOW_MPS, STILL_MPS = 0.03, 0.015
STILL_M = 0.002
LIFTED_M = 0.06


@dataclass(frozen=True, slots=True)
class Aim:
    """What an action is about, in the base's frame now: x ahead, y left, z up, and the lift that grasps it; m."""

    skill: str
    ahead_m: float
    left_m: float
    up_m: float
    lift_m: float


def wanted(aim: Aim, state: RobotState) -> tuple[tuple[float, ...], float]:
    """The row to command, ten columns, and whether the action is done (1.0)."""
    row = list(state.position)
    pan, tilt = look_at((aim.ahead_m, aim.left_m, aim.up_m), 0.0, 0.0, 0.0)
    row[HEAD_PAN], row[HEAD_TILT] = (within(joint, at) for joint, at in ((HEAD_PAN, pan), (HEAD_TILT, tilt)))
    if state.is_grasping:
        row[GRIPPER] = 0.0
    if aim.skill == "look":
        off = max(abs(row[joint] - state.position[joint]) for joint in (HEAD_PAN, HEAD_TILT))
        return (*row, 0.0, 0.0), float(off < 0.05)
    arm_m = within(ARM, -aim.left_m - WRIST_OUT_M)
    lift_m, arm_now_m, gripper_m = state.position[LIFT], state.position[ARM], state.position[GRIPPER]
    off_m = max(abs(aim.ahead_m), abs(arm_m - arm_now_m))
    is_high = lift_m > TRAVEL_M - UP_SLACK_M
    turned = (state.position[WRIST_YAW], state.position[WRIST_PITCH] - DOWN_RAD)
    is_straight = max(map(abs, turned)) < STRAIGHT_RAD
    v_mps, done, goes = 0.0, 0.0, False
    if aim.skill == "place":
        row[LIFT] = TRAVEL_M
        if state.is_grasping and not (off_m < RELEASE_M and is_high and is_straight):
            row[GRIPPER], goes = 0.0, True
        else:
            row[GRIPPER] = OPEN_M
            done = float(not state.is_grasping and gripper_m > WAY_OPEN_M and off_m < GONE_M)
    elif state.is_grasping:
        row[LIFT], row[GRIPPER], row[ARM] = TRAVEL_M, 0.0, arm_m if off_m < NEAR_LOW_M else arm_now_m
        point_down(row)
        done = float(lift_m > aim.lift_m + LIFTED_M)
    else:
        way = (TRAVEL_M - lift_m) / (TRAVEL_M - aim.lift_m)
        allowed_m = NEAR_M + (NEAR_LOW_M - NEAR_M) * min(max(way, 0.0), 1.0)
        is_down = lift_m < aim.lift_m + GRASP_SLACK_M
        is_slow = max(abs(state.base_v_mps), abs(state.velocity[ARM])) < SLOW_MPS or not is_high
        is_open = gripper_m > WAY_OPEN_M or (is_down and gripper_m > MISSED_M)
        row[GRIPPER] = OPEN_M
        if off_m < allowed_m and is_straight and is_open and is_slow:
            row[LIFT], row[ARM] = aim.lift_m, arm_m
            is_still = (
                abs(state.velocity[LIFT]) < STILL_MPS or gripper_m < WAY_OPEN_M
            )  # a finger that presses and sinks is a contact
            row[GRIPPER] = 0.0 if is_down and is_still else OPEN_M
            point_down(row)
        else:
            is_stuck = not is_high and is_out(state) and gripper_m < WAY_OPEN_M and not is_down
            row[LIFT], goes = lift_m if is_stuck and gripper_m > MISSED_M else TRAVEL_M, True
    if goes:
        is_stowed = not is_out(state)
        if is_high:
            row[ARM] = arm_m
            point_down(row)
        elif is_stowed:
            row[ARM], row[WRIST_YAW], row[WRIST_PITCH], row[WRIST_ROLL] = 0.0, *STOW[WRIST_YAW : WRIST_ROLL + 1]
        if is_high or is_stowed:
            v_mps = _drive(aim.ahead_m)
    return (*row, v_mps, 0.0), done


def _drive(distance_m: float) -> float:
    if abs(distance_m) < STILL_M:
        return 0.0
    fast = min(DRIVE_MPS, math.sqrt(2 * DRIVE_MPS2 * abs(distance_m)), DRIVE_GAIN_PER_S * abs(distance_m))
    return math.copysign(fast, distance_m)
