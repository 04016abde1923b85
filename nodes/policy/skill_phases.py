"""Skills of the scripted policy: tables of phases, and `step`, which goes through them.

The gripper comes from above, pointing down, with its fingers to the left and right of the thing: all sideways motion
happens at one travel height above everything on the table, where base, arm, lift, wrist and head move at once; near
things only the lift and the fingers move. Leaving in mid-skill is therefore always the same: open if nothing is held,
and go up. A picked thing that is no longer wanted goes back to where it was taken (`put_back`).

Goals are final positions: the guard turns them into motion within each joint's speed and acceleration. Elapsed time is
counted by `step`, so a stopped robot's timeouts stand still. Pure functions of values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

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
    look_at,
    solve,
)
from nodes.stretch.limits import STRETCH_3
from runtime.msgs import JointVector, RobotState

BELOW_TOP_M = 0.04
"""How far below a thing's top the point between the fingertips closes."""
GRASP_ABOVE_BOTTOM_M = 0.035
"""Closest to what the thing stands on: the ends of the fingers reach 0.02 below the point between them."""
Level = Literal["keep", "travel", "grasp", "set down"]
Until = Literal[
    "lift",
    "arm",
    "wrist",
    "base",
    "head",
    "near",
    "grasp",
    "open",
    "off",
    "point",
    "folded",
    "there",
    "rolled",
    "time",
]


@dataclass(frozen=True, slots=True)
class Spot:
    """A thing or a place: centre in the odometry frame, size, and what to call it; m."""

    name: str  # "red cup"
    x_m: float
    y_m: float
    z_m: float
    height_m: float
    heading_rad: float | None = None  # of the base, where it is a place to drive to

    @property
    def grasp_z_m(self) -> float:
        """Height at which the fingers close on it."""
        return max(self.top_m - BELOW_TOP_M, self.top_m - self.height_m + GRASP_ABOVE_BOTTOM_M)

    @property
    def top_m(self) -> float:
        """Height of its highest point."""
        return self.z_m + self.height_m / 2

    @property
    def hang_m(self) -> float:
        """How far it hangs below the point between the fingertips that hold it."""
        return self.grasp_z_m - self.top_m + self.height_m


@dataclass(frozen=True, slots=True)
class Phase:
    """One row: what each part of the robot aims for, what to wait for, and what it means when that never comes."""

    name: str
    says: str
    lift: Level
    until: tuple[Until, ...]
    timeout_s: float
    fails: str
    opens: bool | None = None  # None: the gripper stays as it is
    goes: bool = False  # base, arm and wrist go to the spot
    finds: bool = False  # the policy's own image corrects where the spot is
    needs_sight: bool = False  # not left before the policy's own image has shown the thing
    needs_thing: bool = False  # fails when the policy's own image shows that the place is empty
    carries: bool = False  # losing the thing fails the skill
    then: Literal["same", "holds", "empty"] = "same"  # what the gripper holds when the phase is over
    succeeds: bool = False  # the skill has succeeded when this phase is over; the rest is tidying up
    head_off_rad: tuple[float, float] = (0.0, 0.0)  # pan and tilt, from looking at the spot
    points: bool = False  # the wrist turns the closed gripper towards the spot
    slides: bool = False  # `goes` also while the hand is low
    folds: bool = False  # the arm is drawn in
    drives: bool = False  # the base drives to the spot, and turns as that says
    rolls_rad: float | None = None  # the wrist rolls there
    lasts_s: float = 0.0  # for how long, where it waits for "time"


LEAVE = Phase(
    "leave", "moving away from the {it}", "travel", ("open", "lift"), 8.0, "the lift does not come up", opens=True
)  # fmt: skip
LOOK = (
    Phase("look", "looking at the {it}", "keep", ("head",), 4.0, "the head does not get to the {it}", succeeds=True),
)
_NOD_RAD, _SHAKE_RAD = 0.22, 0.30
NOD = (
    Phase("down", "nodding", "keep", ("head",), 2.0, "the head does not nod", head_off_rad=(0.0, -_NOD_RAD)),
    Phase("up", "nodding", "keep", ("head",), 2.0, "the head does not nod"),
    Phase("down again", "nodding", "keep", ("head",), 2.0, "the head does not nod", head_off_rad=(0.0, -_NOD_RAD)),
    Phase("up again", "nodding", "keep", ("head",), 2.0, "the head does not nod", succeeds=True),
)
SHAKE = (
    Phase("left", "shaking the head", "keep", ("head",), 2.0, "the head does not turn", head_off_rad=(_SHAKE_RAD, 0.0)),
    Phase("right", "shaking the head", "keep", ("head",), 2.0, "the head does not turn",
          head_off_rad=(-_SHAKE_RAD, 0.0)),
    Phase("left again", "shaking the head", "keep", ("head",), 2.0, "the head does not turn",
          head_off_rad=(_SHAKE_RAD, 0.0)),
    Phase("ahead", "shaking the head", "keep", ("head",), 2.0, "the head does not turn", succeeds=True),
)  # fmt: skip
POINT = (
    Phase("point", "pointing at the {it}", "travel", ("lift", "point", "head"), 12.0,
          "the hand does not get to point at the {it}", opens=False, points=True, succeeds=True),
)  # fmt: skip
PICK = (
    Phase(
        "approach", "moving over the {it}", "travel", ("base", "lift", "arm", "wrist", "open"), 30.0,
        "the gripper does not get above the {it}", opens=True, goes=True, finds=True, needs_sight=True,
        needs_thing=True,
    ),
    Phase("lower", "lowering onto the {it}", "grasp", ("lift",), 8.0, "something stops the gripper above the {it}",
          opens=True, needs_thing=True),
    Phase("close", "closing on the {it}", "keep", ("grasp",), 2.5, "nothing is between the fingers at the {it}",
          opens=False, then="holds"),
    Phase("take", "lifting the {it}", "travel", ("off",), 4.0, "the {it} does not come up", carries=True,
          succeeds=True),
    Phase("raise", "lifting the {it}", "travel", ("lift",), 8.0, "the {it} does not come up", carries=True),
)  # fmt: skip
PLACE = (
    Phase(
        "carry", "carrying it to the {it}", "travel", ("near", "lift", "wrist"), 30.0,
        "the gripper does not get above the {it}", opens=False, goes=True, finds=True, carries=True,
    ),
    Phase("release", "letting go over the {it}", "keep", ("open",), 4.0, "the gripper does not open",
          opens=True, then="empty", succeeds=True),
    LEAVE,
)  # fmt: skip
PUT_BACK = (
    Phase(
        "return", "taking the {it} back", "travel", ("base", "lift", "arm", "wrist"), 30.0,
        "the {it} does not get back to where it stood", opens=False, goes=True, carries=True,
    ),
    Phase("set down", "setting the {it} down", "set down", ("lift",), 8.0, "something is where the {it} stood",
          carries=True),
    Phase("let go", "letting go of the {it}", "keep", ("open",), 3.0, "the gripper does not open", opens=True,
          then="empty"),
    LEAVE,
)  # fmt: skip
SET_BACK = tuple(replace(phase, succeeds=phase.then == "empty") for phase in PUT_BACK)
"""The same as a skill of its own."""


def plan(skill: tuple[Phase, ...], spot: Spot) -> tuple[tuple[Phase, Spot], ...]:
    """The phases of one skill about one spot."""
    return tuple((phase, spot) for phase in skill)


# --- going through the phases

MARGIN_M = 0.03
"""Room between what moves sideways and the tallest thing below it."""
FINGER_BELOW_M = FINGER_END_M - GRASP_REACH_M
"""How far the ends of the fingers are below the point between them."""
OPEN_M = 0.115
LIFT_SLACK_M = 0.015
"""Arm, wrist and base may move from this far below the travel height, while the lift covers the rest."""
LIFTED_OFF_M = 0.05
"""A thing that came up this far with the gripper has been picked."""
LEAN_M = 0.05
"""How far beyond the arm's end a gripper that leans outward still takes things."""
SET_DOWN_M = 0.004
"""A thing is let go this far above where it stood."""
STOWED_ARM_M, STOWED_YAW_RAD = 0.03, 2.3
"""Arm below and wrist yaw beyond these: the gripper is over the base and may pass beside a table."""

BASE_TOLERANCE_M = 0.006
NEAR_M = 0.03
"""Good enough above a bin."""
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
LOST_S = 0.4
"""How long a carried thing may seem gone before it counts as lost."""

UNSEEN_S = 2.0
"""How long the gripper waits above a thing that the policy's own image has not shown yet."""


@dataclass(frozen=True, slots=True)
class SkillProgress:
    """How far a list of phases, each about a spot, has come."""

    plan: tuple[tuple[Phase, Spot], ...]
    goal: JointVector  # the last goals: what is kept
    held: Spot | None = None  # what the gripper holds, and where it was taken from
    index: int = 0
    elapsed_s: float = 0.0
    missing_s: float = 0.0

    @property
    def phase(self) -> Phase | None:
        """The phase under way, or None when all are over."""
        return self.plan[self.index][0] if self.index < len(self.plan) else None

    @property
    def spot(self) -> Spot | None:
        """What the phase under way is about."""
        return self.plan[self.index][1] if self.index < len(self.plan) else None

    def moved_to(self, spot: Spot) -> SkillProgress:
        """The same, now knowing better where the thing of the phase under way is."""
        old = self.spot
        return replace(self, plan=tuple((phase, spot if known is old else known) for phase, known in self.plan))


@dataclass(frozen=True, slots=True)
class SkillStep:
    """What to do now. `outcome` is set once: "success" or a sentence that says why not."""

    goal: JointVector
    base_v_mps: float
    base_w_radps: float
    progress: SkillProgress
    outcome: str = ""


def begin(phases: tuple[tuple[Phase, Spot], ...], state: RobotState, held: Spot | None = None) -> SkillProgress:
    """Start from where the robot is: what a phase does not move stays there, and fingers that hold keep pressing."""
    return SkillProgress(plan=phases, goal=resting(state, held), held=held)


def resting(state: RobotState, held: Spot | None) -> JointVector:
    """The posture in which the robot comes to rest when it brakes now; fingers that hold something keep pressing."""
    ends = [
        min(max(at + v * abs(v) / (2 * joint.acceleration), joint.lowest), joint.highest)
        for at, v, joint in zip(state.position, state.velocity, STRETCH_3.joints, strict=True)
    ]
    # Noise in a velocity is no motion.
    rest = tuple(end if abs(end - at) > 1e-3 else at for end, at in zip(ends, state.position, strict=True))
    return rest if held is None else _with(rest, {GRIPPER: 0.0})


def travel_lift_m(tallest_m: float, held: Spot | None) -> float:
    """Lift at which a gripper that points down, with what it holds, passes above things that high."""
    below = FINGER_BELOW_M if held is None else max(FINGER_BELOW_M, held.hang_m)
    return tallest_m + MARGIN_M + below - ARM_Z_M + WRIST_DROP_M + GRASP_REACH_M


def out_of_reach(spot: Spot, state: RobotState) -> str:
    """Why the gripper cannot get there by driving along the heading; empty when it can."""
    if _solve(spot, state) is not None:
        return ""
    return f"the {spot.name} is out of reach: the arm does not get to y {spot.y_m:.2f} m from y {state.base_y_m:.2f} m"


def step(
    progress: SkillProgress, state: RobotState, *, period_s: float, tallest_m: float, is_seen: bool = True
) -> SkillStep:
    """One tick of the phase under way, or of the next one when that is done.

    `tallest_m` is the height of the tallest thing that the gripper may pass; `is_seen` whether the policy's own image
    confirms the spot.
    """
    phase, spot = progress.phase, progress.spot
    if phase is None or spot is None:
        return SkillStep(progress.goal, 0.0, 0.0, progress)
    reach = _solve(spot, state)
    if reach is None and phase.goes:
        return _stop(progress, out_of_reach(spot, state))
    reach = reach or Reach(0.0, state.position[LIFT], state.position[ARM], DOWN_RAD)
    travel_m = travel_lift_m(tallest_m, progress.held)
    is_low = state.position[LIFT] < travel_m - LIFT_SLACK_M
    goal = _goals(phase, spot, reach, progress.goal, state, travel_m, is_low=is_low)
    v = w = 0.0
    if phase.goes and (not is_low or not is_out(state) or phase.slides):
        v = _drive(reach.travel_m)
        w = _steer(state) if abs(v) > 0.02 else 0.0
    if phase.drives:
        v, w = _drive_to(spot, state)
    elapsed_s = progress.elapsed_s + period_s
    is_there = all(
        elapsed_s >= phase.lasts_s if until == "time" else _is_at(spot, state) if until == "there"
        else _holds(until, goal, reach, state)
        for until in phase.until
    )  # fmt: skip
    is_missing = (phase.carries and not state.is_grasping) or (phase.needs_sight and is_there and not is_seen)
    missing_s = progress.missing_s + period_s if is_missing else 0.0
    now = replace(progress, goal=goal, elapsed_s=progress.elapsed_s + period_s, missing_s=missing_s)
    if phase.carries and missing_s > LOST_S:
        return _stop(replace(now, held=None), f"the gripper lost what it held while {phase.says.format(it=spot.name)}")
    if phase.needs_sight and missing_s > UNSEEN_S:
        return _stop(now, f"the {spot.name} is not in the robot's own image")
    if is_there and not is_missing:
        held = {"same": now.held, "holds": spot, "empty": None}[phase.then]
        done = replace(now, held=held, index=now.index + 1, elapsed_s=0.0, missing_s=0.0)
        return SkillStep(goal, v, w, done, "success" if phase.succeeds else "")
    if now.elapsed_s > phase.timeout_s:
        return _stop(now, phase.fails.format(it=spot.name))
    return SkillStep(goal, v, w, now)


def retreat(progress: SkillProgress, state: RobotState) -> SkillProgress:
    """What to do after a failure: with nothing in the gripper, open and go up; otherwise stay."""
    spot = progress.spot
    if spot is None or progress.held is not None or not is_out(state):
        return replace(progress, plan=(), index=0)
    return SkillProgress(plan=((LEAVE, spot),), goal=progress.goal)


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
    return _with(kept, wanted | {joint: _in_range(joint, angle) for joint, angle in looks.items()})


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


def _stop(progress: SkillProgress, why: str) -> SkillStep:
    return SkillStep(progress.goal, 0.0, 0.0, progress, why)


def _with(position: JointVector, wanted: dict[int, float]) -> JointVector:
    return tuple(wanted.get(joint, kept) for joint, kept in enumerate(position))
