"""`StretchMotion`: how a Stretch carries out the phases of skills: the lift goes up before the arm goes out.

Beside a table on its right: base, arm, lift, wrist and head move at once at the travel height; below it only the lift
and the fingers do.
"""

from __future__ import annotations

import math

import numpy as np

from nodes.msgs import JointVector, RobotState
from nodes.policy.skill_phases import (
    LIFTED_OFF_M,
    MARGIN_M,
    NEAR_M,
    SET_DOWN_M,
    Level,
    OutOfReach,
    Phase,
    PhaseAim,
    SkillProgress,
    Spot,
    Until,
    below_hand_m,
    resting_at,
    with_goals,
)
from nodes.robot.protocol import Body
from nodes.stretch.body import BODY
from nodes.stretch.kinematics import (
    ARM,
    ARM_Z_M,
    DOWN_RAD,
    FINGER_END_M,
    GRASP_REACH_M,
    GRIPPER,
    HEAD_PAN,
    HEAD_TILT,
    LIFT,
    WRIST_DROP_M,
    WRIST_OUT_M,
    WRIST_PITCH,
    WRIST_ROLL,
    WRIST_YAW,
    Reach,
    from_odometry,
    head_camera_pose,
    look_at,
    solve,
    to_odometry,
)
from nodes.stretch.limits import STRETCH_3

FINGER_BELOW_M = FINGER_END_M - GRASP_REACH_M
"""How far the ends of the fingers are below the point between them."""
OPEN_M = 0.115
LIFT_SLACK_M = 0.015
"""Arm, wrist and base may move from this far below the travel height, while the lift covers the rest."""
LEAN_M = 0.05
"""How far beyond the arm's end a gripper that leans outward still takes things."""
STOWED_ARM_M, STOWED_YAW_RAD = 0.03, 2.3
"""Arm below and wrist yaw beyond these: the gripper is over the base and may pass beside a table."""

BASE_TOLERANCE_M = 0.006
JOINT_TOLERANCE_M = 0.012
WRIST_TOLERANCE_RAD = 0.08
HEAD_TOLERANCE_RAD = 0.05
DRIVE_MPS, DRIVE_MPS2 = 0.28, 0.24
"""Below the base's limits (0.30, 0.30), so that steering and latency have room."""
DRIVE_GAIN_PER_S = 2.0
STEER_PER_S, STEER_MOST_RADPS = 1.5, 0.10
AT_M, AT_AHEAD_M, HEADING_RAD = 0.08, 0.02, 0.03
"""A base is at a spot when it is this near, abeam of it, and turned like this."""
TURN_FIRST_RAD = 0.12
"""A spot further to a side is turned to before the base drives."""
CORNER_M, CORNER_RAD = 0.12, 0.7
"""A corner of a way is passed this near; further to a side than that it is turned to first."""
TURN_RADPS, TURN_RADPS2 = 1.0, 0.8

_ASIDE = np.array([0.0, -0.6, 0.5])
_AROUND = tuple(np.array(at) for at in ((0.65, -0.55, 0.4), (0.9, 0.1, 0.3), (0.65, -0.55, 0.4), (-0.55, -0.60, 0.4)))


class StretchMotion:
    """The `SkillMotion` of a Stretch 3."""

    skills = frozenset({"pick", "place", "put_back", "look", "look_round", "point", "nod", "shake", "hold"})
    still_joints: tuple[int, ...] = (HEAD_PAN, HEAD_TILT)

    def __init__(self, body: Body = BODY) -> None:
        self.body = body

    def aim(
        self, phase: Phase, spot: Spot, progress: SkillProgress, state: RobotState, tallest_m: float
    ) -> PhaseAim | str:
        reach = _solve(spot, state)
        if reach is None and phase.goes:
            return out_of_reach(spot, state)
        reach = reach or Reach(0.0, state.position[LIFT], state.position[ARM], DOWN_RAD)
        travel_m = travel_lift_m(tallest_m, progress.held)
        is_low = state.position[LIFT] < travel_m - LIFT_SLACK_M
        goal = _goals(phase, spot, reach, progress.goal, state, travel_m, is_low=is_low)
        v = w = 0.0
        if phase.goes and (not is_low or not self.is_out(state) or phase.slides):
            v = _drive(reach.travel_m)
            w = _steer(state) if abs(v) > 0.02 else 0.0
        if phase.drives:
            v, w = _drive_to(spot, state)
        is_there = all(
            _is_at(spot, state) if until == "there" else _holds(until, goal, reach, state) for until in phase.until
        )
        return PhaseAim(goal, v, w, is_there)

    def resting(self, state: RobotState, held: Spot | None) -> JointVector:
        rest = tuple(resting_at(state, STRETCH_3))
        return rest if held is None else with_goals(rest, {GRIPPER: 0.0})

    def is_out(self, state: RobotState) -> bool:
        return is_out(state)

    def gaze(self, state: RobotState) -> Spot:
        rotation, place = head_camera_pose(state.position)
        point = place + rotation[:, 2]
        return _spot("other", state, point)

    def ahead(self, state: RobotState) -> Spot:
        """Where a table on the robot's right would be."""
        return _spot("table", state, _ASIDE)

    def around(self, state: RobotState) -> tuple[Spot, ...]:
        """A table on the robot's right, then ahead of and behind the arm."""
        return (self.ahead(state), *(_spot("room", state, at) for at in _AROUND), self.ahead(state))


def _spot(name: str, state: RobotState, point: np.ndarray) -> Spot:
    x, y, z = to_odometry(state.base_x_m, state.base_y_m, state.base_heading_rad, point)
    return Spot(name, float(x), float(y), float(z), 0.0)


def travel_lift_m(tallest_m: float, held: Spot | None) -> float:
    """Lift at which a gripper that points down, with what it holds, passes above things that high."""
    return tallest_m + MARGIN_M + below_hand_m(FINGER_BELOW_M, held) - ARM_Z_M + WRIST_DROP_M + GRASP_REACH_M


def out_of_reach(spot: Spot, state: RobotState) -> OutOfReach:
    """Why the gripper cannot get there by driving along the heading; empty when it can."""
    if _solve(spot, state) is not None:
        return OutOfReach()
    return OutOfReach(
        f"the {spot.name} is out of reach: the arm does not get to y {spot.y_m:.2f} m from y {state.base_y_m:.2f} m"
    )


def is_out(state: RobotState) -> bool:
    """The gripper is not over the base: it may meet what stands on the table."""
    return state.position[ARM] > STOWED_ARM_M or state.position[WRIST_YAW] < STOWED_YAW_RAD


def _solve(spot: Spot, state: RobotState) -> Reach | None:
    """The gripper straight down where the arm gets there; leaning out by up to `LEAN_M` where it just does not."""
    place = (spot.x_m, spot.y_m, spot.grasp_z_m)
    base = (state.base_x_m, state.base_y_m, state.base_heading_rad)
    reach = solve(place, *base, wrist_pitch_rad=DOWN_RAD)
    if reach is not None:
        return reach
    left_m = float(from_odometry(*base, np.array(place))[1])
    beyond_m = -left_m - WRIST_OUT_M - STRETCH_3.joints[ARM].highest
    if not 0.0 <= beyond_m <= LEAN_M:
        return None
    return solve(place, *base, wrist_pitch_rad=DOWN_RAD + math.asin((beyond_m + 1e-6) / GRASP_REACH_M))


def _goals(
    phase: Phase,
    spot: Spot,
    reach: Reach,
    kept: JointVector,
    state: RobotState,
    travel_m: float,
    *,
    is_low: bool,
) -> JointVector:
    """Joint goals of a phase: arm and wrist only move beside things when the gripper is above them."""
    wanted: dict[int, float] = {}
    if phase.opens is not None:
        wanted[GRIPPER] = OPEN_M if phase.opens else 0.0
    is_half_closed = phase.opens is True and state.position[GRIPPER] < OPEN_M - 0.03
    if not (is_low and is_out(state) and is_half_closed):  # fingers that still touch a thing would drag it along
        lifts: dict[Level, float] = {
            "keep": kept[LIFT],
            "travel": travel_m,
            "grasp": reach.lift_m,
            "set down": reach.lift_m + SET_DOWN_M,
        }
        wanted[LIFT] = lifts[phase.lift]
    if phase.goes and (not is_low or phase.slides):
        wanted |= {ARM: reach.arm_m, WRIST_YAW: 0.0, WRIST_PITCH: reach.wrist_pitch_rad, WRIST_ROLL: 0.0}
    if phase.points and not is_low:
        wanted |= pointing(spot, state)
    if phase.folds and not is_low:
        wanted[ARM] = 0.0
    if phase.rolls_rad is not None:
        wanted[WRIST_ROLL] = phase.rolls_rad
    pan, tilt = look_at((spot.x_m, spot.y_m, spot.z_m), state.base_x_m, state.base_y_m, state.base_heading_rad)
    looks = {HEAD_PAN: pan + phase.head_off_rad[0], HEAD_TILT: tilt + phase.head_off_rad[1]}
    return with_goals(kept, wanted | {joint: _in_range(joint, angle) for joint, angle in looks.items()})


def pointing(spot: Spot, state: RobotState) -> dict[int, float]:
    """Wrist yaw and pitch that point the gripper at a spot from where the wrist is."""
    base = (state.base_x_m, state.base_y_m, state.base_heading_rad)
    ahead, left, up = from_odometry(*base, np.array((spot.x_m, spot.y_m, spot.z_m)))
    left += WRIST_OUT_M + state.position[ARM]
    up -= ARM_Z_M + state.position[LIFT] - WRIST_DROP_M
    yaw = math.atan2(left, ahead) + math.pi / 2
    if yaw > STRETCH_3.joints[WRIST_YAW].highest:
        yaw -= 2 * math.pi
    pitch = math.atan2(up, math.hypot(ahead, left))
    return {joint: _in_range(joint, angle) for joint, angle in ((WRIST_YAW, yaw), (WRIST_PITCH, pitch))}


def _in_range(joint: int, angle: float) -> float:
    return min(max(float(angle), STRETCH_3.joints[joint].lowest), STRETCH_3.joints[joint].highest)


def _holds(until: Until, goal: JointVector, reach: Reach, state: RobotState) -> bool:
    off = [abs(wanted - measured) for wanted, measured in zip(goal, state.position, strict=True)]
    match until:
        case "lift":
            return off[LIFT] < JOINT_TOLERANCE_M
        case "arm":
            return abs(reach.arm_m - state.position[ARM]) < JOINT_TOLERANCE_M
        case "wrist":
            turned = (state.position[WRIST_YAW], state.position[WRIST_PITCH] - reach.wrist_pitch_rad)
            return max(abs(angle) for angle in turned) < WRIST_TOLERANCE_RAD
        case "base":
            return abs(reach.travel_m) < BASE_TOLERANCE_M and abs(state.base_v_mps) < 0.02
        case "near":
            return max(abs(reach.travel_m), abs(reach.arm_m - state.position[ARM])) < NEAR_M
        case "point":
            return max(off[WRIST_YAW], off[WRIST_PITCH]) < WRIST_TOLERANCE_RAD
        case "head":
            return max(off[HEAD_PAN], off[HEAD_TILT]) < HEAD_TOLERANCE_RAD
        case "grasp":
            return state.is_grasping
        case "open":
            return state.position[GRIPPER] > OPEN_M - 0.02 and not state.is_grasping
        case "folded":
            return state.position[ARM] < STOWED_ARM_M
        case "rolled":
            return off[WRIST_ROLL] < WRIST_TOLERANCE_RAD
        case "time" | "there":
            return True
        case "off":
            return state.position[LIFT] > reach.lift_m + LIFTED_OFF_M


def _drive(distance_m: float) -> float:
    """Speed along the heading that still stops at the distance."""
    if abs(distance_m) < BASE_TOLERANCE_M / 2:
        return 0.0
    fast = min(DRIVE_MPS, math.sqrt(2 * DRIVE_MPS2 * abs(distance_m)), DRIVE_GAIN_PER_S * abs(distance_m))
    return math.copysign(fast, distance_m)


def _steer(state: RobotState) -> float:
    """Turning that keeps the heading along the nearest axis of the odometry frame: furniture stands along them."""
    off_rad = state.base_heading_rad - round(state.base_heading_rad / (math.pi / 2)) * (math.pi / 2)
    return min(max(-STEER_PER_S * off_rad, -STEER_MOST_RADPS), STEER_MOST_RADPS)


def _drive_to(spot: Spot, state: RobotState) -> tuple[float, float]:
    """Speeds of a base that turns towards a spot, drives there, and turns as the spot says."""
    ahead, away, off_rad = _seen_from(spot, state)
    if spot.heading_rad is None:  # a corner of the way: passed without a stop
        is_aside = abs(off_rad) > CORNER_RAD
        return 0.0 if is_aside else DRIVE_MPS * math.cos(off_rad), _turn(off_rad) if is_aside else 1.5 * off_rad
    if away > AT_M or abs(ahead) > AT_AHEAD_M:
        if away > AT_M and abs(off_rad) > TURN_FIRST_RAD:
            return 0.0, _turn(off_rad)
        return _drive(ahead), min(max(off_rad, -0.5), 0.5) if away > AT_M else 0.0
    left_rad = _turned(spot, state)
    return 0.0, 0.0 if abs(left_rad) < HEADING_RAD / 2 else _turn(left_rad)


def _is_at(spot: Spot, state: RobotState) -> bool:
    _, away, _ = _seen_from(spot, state)
    if spot.heading_rad is None:
        return away < CORNER_M
    is_still = abs(state.base_v_mps) < 0.03 and abs(state.base_w_radps) < 0.05
    return is_still and away < AT_M and abs(_turned(spot, state)) < HEADING_RAD


def _seen_from(spot: Spot, state: RobotState) -> tuple[float, float, float]:
    """How far ahead and how far away a spot is, m, and how far to the left, rad."""
    dx, dy = spot.x_m - state.base_x_m, spot.y_m - state.base_y_m
    off_rad = math.remainder(math.atan2(dy, dx) - state.base_heading_rad, 2 * math.pi)
    away = math.hypot(dx, dy)
    return away * math.cos(off_rad), away, off_rad


def _turned(spot: Spot, state: RobotState) -> float:
    """How far the base has still to turn."""
    heading = spot.heading_rad
    return 0.0 if heading is None else math.remainder(heading - state.base_heading_rad, 2 * math.pi)


def _turn(off_rad: float) -> float:
    fast = min(TURN_RADPS, math.sqrt(2 * TURN_RADPS2 * abs(off_rad)))
    return math.copysign(fast, off_rad)
