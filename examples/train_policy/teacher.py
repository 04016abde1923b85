"""The teacher: what the scripted policy would command, as a function of what is felt at one moment.

The scripted policy remembers in which phase it is; a pupil that came otherwise would be told otherwise in the same
place. This one takes the phase from the state, with hysteresis in the state as well: a hand that is low may be further
off than one that is about to go down, and fingers that have begun to close go on. Its goals are absolute, so that
where the robot stands still short of one it is told to go on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nodes.msgs import Action, JointVector, RobotState
from nodes.policy.onnx.inputs import pose_of, target_of
from nodes.policy.sight import spot_of
from nodes.policy.skill_phases import LIFTED_OFF_M, NEAR_M, PICK, PLACE, Phase, begin, plan, with_goals
from nodes.policy.stretch_motion import (
    HEAD_TOLERANCE_RAD,
    LIFT_SLACK_M,
    OPEN_M,
    WRIST_TOLERANCE_RAD,
    StretchMotion,
    travel_lift_m,
)
from nodes.stretch.kinematics import (
    ARM,
    ARM_Z_M,
    DOWN_RAD,
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
    look_at,
)
from nodes.stretch.limits import STRETCH_3

MOTION = StretchMotion()
TALLEST_M = 0.68
CUP_M = 0.10
"""How high what is carried is taken to be: nobody feels that."""

ABOVE_M, BELOW_M, HELD_M = 0.01, 0.025, 0.05
"""How far off the gripper may be before it goes down; once it is low; when it holds something."""
OPEN_ENOUGH_M, EMPTY_M = OPEN_M - 0.02, 0.03
"""The gripper is open; it has closed on nothing."""
LOW_M, AT_M = 0.03, 0.012
"""Above the height of the grasp: low; there."""
SLOW_MPS = 0.03
HEAD_NEAR_RAD = 0.035
"""Nearer than the scripted policy's tolerance: who says that it is done should be sure."""

APPROACH, LOWER, CLOSE, TAKE, _ = PICK
CARRY, RELEASE, _ = PLACE


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is right at one moment: goals of the joints, the base's speed, and whether the action is done."""

    goal: JointVector
    base_v_mps: float
    is_done: bool


def taught(action: Action, state: RobotState) -> Lesson:
    """Return what the scripted policy would command here, whatever came before."""
    assert action.target is not None
    spot = spot_of(action.target)
    if action.skill == "look":
        return Lesson(with_goals(state.position, _gaze(action, state)), 0.0, _head_off(action, state) < HEAD_NEAR_RAD)
    phase = _pick_phase(action, state) if action.skill == "pick" else _place_phase(action, state)
    carried = spot if phase is TAKE else replace(spot, height_m=CUP_M) if action.skill == "place" else None
    progress = replace(begin(plan((phase,), spot), state, carried, motion=MOTION), goal=_kept(phase, action, state))
    aim = MOTION.aim(phase, spot, progress, state, TALLEST_M)
    if isinstance(aim, str):
        return Lesson(progress.goal, 0.0, is_done(action, state))
    goal = list(aim.goal)
    _, lift_m = off_from(action, state)
    if phase is APPROACH and state.position[GRIPPER] < EMPTY_M and state.position[LIFT] < lift_m + LOW_M < goal[LIFT]:
        goal[GRIPPER], goal[LIFT] = 0.0, travel_lift_m(TALLEST_M, None)  # a folded hand opens once it is up
    if phase is RELEASE:
        goal[LIFT] = travel_lift_m(TALLEST_M, carried)
    return Lesson(tuple(goal), aim.base_v_mps, is_done(action, state))


def within(joint: int, value: float) -> float:
    """The nearest position that the joint has, m or rad."""
    limit = STRETCH_3.joints[joint]
    return min(max(float(value), limit.lowest), limit.highest)


def lift_for(grasp_z_m: float) -> float:
    """The lift at which the fingers of a gripper that points down close at this height."""
    return grasp_z_m - ARM_Z_M + WRIST_DROP_M + GRASP_REACH_M


def point_down(row: list[float]) -> None:
    """The wrist as it grasps."""
    row[WRIST_YAW], row[WRIST_PITCH], row[WRIST_ROLL] = 0.0, DOWN_RAD, 0.0


def off_from(action: Action, state: RobotState) -> tuple[float, float]:
    """How far the gripper is from above the target, and the lift that would grasp it, m."""
    assert action.target is not None
    spot = spot_of(action.target)
    ahead, left, up = target_of(action, state)
    lift_m = lift_for(up + spot.grasp_z_m - spot.z_m)
    return max(abs(ahead), abs(-left - WRIST_OUT_M - state.position[ARM])), lift_m


def is_done(action: Action, state: RobotState) -> bool:
    """Whether the action is done, by what is felt."""
    off_m, lift_m = off_from(action, state)
    if action.skill == "pick":
        return state.is_grasping and off_m < HELD_M and state.position[LIFT] > lift_m + LIFTED_OFF_M
    if action.skill == "place":
        return not state.is_grasping and off_m < 2 * NEAR_M and state.position[GRIPPER] > OPEN_ENOUGH_M
    return _head_off(action, state) < HEAD_TOLERANCE_RAD


def _gaze(action: Action, state: RobotState) -> dict[int, float]:
    assert action.target is not None
    pan, tilt = look_at((action.target.x_m, action.target.y_m, action.target.z_m), *pose_of(state))
    return {HEAD_PAN: within(HEAD_PAN, pan), HEAD_TILT: tilt}


def _head_off(action: Action, state: RobotState) -> float:
    return max(abs(angle - state.position[joint]) for joint, angle in _gaze(action, state).items())


def _is_straight(state: RobotState) -> bool:
    return max(abs(state.position[WRIST_YAW]), abs(state.position[WRIST_PITCH] - DOWN_RAD)) < WRIST_TOLERANCE_RAD


def _is_ready(state: RobotState) -> bool:
    """Straight and slow: a hand that still moves would miss what it comes down on."""
    return _is_straight(state) and max(abs(state.velocity[ARM]), abs(state.base_v_mps)) < SLOW_MPS


def _pick_phase(action: Action, state: RobotState) -> Phase:
    if state.is_grasping:
        return TAKE
    off_m, lift_m = off_from(action, state)
    above_m, opening_m = state.position[LIFT] - lift_m, state.position[GRIPPER]
    if opening_m < OPEN_ENOUGH_M:
        is_closing = opening_m > EMPTY_M and above_m < LOW_M and off_m < HELD_M
        return CLOSE if is_closing else APPROACH
    is_low = state.position[LIFT] < travel_lift_m(TALLEST_M, None) - LIFT_SLACK_M
    if off_m > (BELOW_M if is_low else ABOVE_M) or not (is_low or _is_ready(state)):
        return APPROACH
    return CLOSE if above_m < AT_M else LOWER


def _place_phase(action: Action, state: RobotState) -> Phase:
    if not state.is_grasping:
        return RELEASE
    carried = replace(spot_of(action.target), height_m=CUP_M) if action.target is not None else None
    is_high = state.position[LIFT] > travel_lift_m(TALLEST_M, carried) - LIFT_SLACK_M
    return RELEASE if off_from(action, state)[0] < NEAR_M and is_high and _is_straight(state) else CARRY


def _kept(phase: Phase, action: Action, state: RobotState) -> JointVector:
    """Where a joint goes that the phase does not move: above the target once the gripper is near that."""
    rest = list(state.position)
    rest[GRIPPER] = 0.0 if state.is_grasping else rest[GRIPPER]
    if not phase.goes and off_from(action, state)[0] < HELD_M:
        rest[ARM] = within(ARM, -target_of(action, state)[1] - WRIST_OUT_M)
        point_down(rest)
    if phase is CLOSE:
        rest[LIFT] = off_from(action, state)[1]
    return tuple(rest)
