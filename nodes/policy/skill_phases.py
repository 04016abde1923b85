"""Skills of the scripted policy: tables of phases, and `step`, which goes through them.

The gripper comes from above, pointing down, with its fingers to the left and right of the thing: all sideways motion
happens at one travel height above everything on the table, where all parts move at once; near things the hand only goes
up or down, and the fingers move. Leaving in mid-skill is therefore always the same: open if nothing is held, and go up.
A picked thing that is no longer wanted goes back to where it was taken (`put_back`).

Goals are final positions: the guard turns them into motion within each joint's speed and acceleration. Elapsed time is
counted by `step`, so a stopped robot's timeouts stand still. Pure functions of values. How the parts of one robot
reach the goals of a phase is its `SkillMotion`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from nodes.msgs import JointVector, RobotState
from nodes.robot.protocol import Body, RobotLimits

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
    label: str = ""  # its kind alone, in whatever word it was asked for

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
    gaze_radps: float = 0.0  # the head turns so slowly; 0: as fast as the guard lets it


LEAVE = Phase(
    "leave", "moving away from the {it}", "travel", ("open", "lift"), 8.0, "the lift does not come up", opens=True
)  # fmt: skip
LOOK = (
    Phase("look", "looking at the {it}", "keep", ("head",), 4.0, "the head does not get to the {it}", succeeds=True),
)
LOOK_ROUND = Phase(
    "look round", "looking round", "keep", ("head",), 15.0, "the head does not get round", gaze_radps=0.6
)
"""One stretch of the way round: slow enough for eyes to see what passes."""
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
SET_DOWN = (
    replace(SET_BACK[0], says="carrying it to the {it}", fails="the gripper does not get above the {it}"),
    replace(SET_BACK[1], says="setting it down on the {it}", fails="something is in the way on the {it}"),
    replace(SET_BACK[2], says="letting go on the {it}"),
    LEAVE,
)
"""The same on a free spot of something flat."""


def plan(skill: tuple[Phase, ...], spot: Spot) -> tuple[tuple[Phase, Spot], ...]:
    """The phases of one skill about one spot."""
    return tuple((phase, spot) for phase in skill)


# --- going through the phases

MARGIN_M = 0.03
"""Room between what moves sideways and the tallest thing below it."""
LIFTED_OFF_M = 0.05
"""A thing that came up this far with the gripper has been picked."""
SET_DOWN_M = 0.004
"""A thing is let go this far above where it stood."""
TOUCHED_M = 0.01
"""So much higher after each contact of the thing that was set down: it hangs lower in the gripper than was thought."""
NEAR_M = 0.03
"""Good enough above a bin."""
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
    beyond_m: float = 0.0  # how far behind the middle of a place, seen from the base, something is let go

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


class OutOfReach(str):
    """Why a phase cannot be, where no posture of the robot brings its hand there; "" where one does."""


@dataclass(frozen=True, slots=True)
class PhaseAim:
    """Goals of one tick of a phase, and whether all is there that the phase waits for, its time apart."""

    goal: JointVector
    base_v_mps: float
    base_w_radps: float
    is_there: bool


class SkillMotion(Protocol):
    """How one robot model carries out phases. Pure functions of values."""

    body: Body
    skills: frozenset[str]
    """Which of our skills it can do."""
    still_joints: tuple[int, ...]
    """Places of the joints that move nothing but a gaze."""

    def aim(
        self, phase: Phase, spot: Spot, progress: SkillProgress, state: RobotState, tallest_m: float
    ) -> PhaseAim | str:
        """What to ask of joints and base now; or why the phase cannot be, in words."""
        ...

    def resting(self, state: RobotState, held: Spot | None) -> JointVector:
        """The posture in which it comes to rest when it brakes now; fingers that hold something keep pressing."""
        ...

    def is_out(self, state: RobotState) -> bool:
        """Whether the gripper may meet what stands around the robot."""
        ...

    def gaze(self, state: RobotState) -> Spot:
        """What the head looks at now: a nod ends where it began."""
        ...

    def ahead(self, state: RobotState) -> Spot:
        """Where to look for things when nobody says where."""
        ...

    def around(self, state: RobotState) -> tuple[Spot, ...]:
        """What to look at one after the other to see all round, the likeliest place first and last."""
        ...


def begin(
    phases: tuple[tuple[Phase, Spot], ...], state: RobotState, held: Spot | None = None, *, motion: SkillMotion
) -> SkillProgress:
    """Start from where the robot is: what a phase does not move stays there, and fingers that hold keep pressing."""
    return SkillProgress(plan=phases, goal=motion.resting(state, held), held=held)


def step(
    progress: SkillProgress,
    state: RobotState,
    *,
    motion: SkillMotion,
    period_s: float,
    tallest_m: float,
    is_seen: bool = True,
) -> SkillStep:
    """One tick of the phase under way, or of the next one when that is done.

    `tallest_m` is the height of the tallest thing that the gripper may pass; `is_seen` whether the policy's own image
    confirms the spot.
    """
    phase, spot = progress.phase, progress.spot
    if phase is None or spot is None:
        return SkillStep(progress.goal, 0.0, 0.0, progress)
    aim = motion.aim(phase, _let_go_at(phase, spot, progress.beyond_m, state), progress, state, tallest_m)
    if isinstance(aim, str):
        return _stop(progress, aim)
    goal, v, w = _slowed(phase, aim.goal, progress, motion, period_s), aim.base_v_mps, aim.base_w_radps
    elapsed_s = progress.elapsed_s + period_s
    is_there = aim.is_there and ("time" not in phase.until or elapsed_s >= phase.lasts_s)
    is_missing = (phase.carries and not state.is_grasping) or (phase.needs_sight and is_there and not is_seen)
    missing_s = progress.missing_s + period_s if is_missing else 0.0
    now = replace(progress, goal=goal, elapsed_s=elapsed_s, missing_s=missing_s)
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


def _slowed(
    phase: Phase, goal: JointVector, progress: SkillProgress, motion: SkillMotion, period_s: float
) -> JointVector:
    """The goal with the head no further from its last one than the phase turns it in one tick."""
    if not phase.gaze_radps:
        return goal
    most = phase.gaze_radps * period_s
    return tuple(
        min(max(at, before - most), before + most) if number in motion.still_joints else at
        for number, (at, before) in enumerate(zip(goal, progress.goal, strict=True))
    )


def _let_go_at(phase: Phase, spot: Spot, beyond_m: float, state: RobotState) -> Spot:
    x_m, y_m = spot.x_m - state.base_x_m, spot.y_m - state.base_y_m
    if not (phase.goes and phase.carries and beyond_m and (away_m := math.hypot(x_m, y_m))):
        return spot
    share = beyond_m / away_m
    return replace(spot, x_m=spot.x_m + share * x_m, y_m=spot.y_m + share * y_m)


def retreat(progress: SkillProgress, state: RobotState, *, motion: SkillMotion) -> SkillProgress:
    """What to do after a failure: with nothing in the gripper, open and go up; otherwise stay."""
    spot = progress.spot
    if spot is None or progress.held is not None or not motion.is_out(state):
        return replace(progress, plan=(), index=0)
    return SkillProgress(plan=((LEAVE, spot),), goal=progress.goal)


def below_hand_m(finger_below_m: float, held: Spot | None) -> float:
    """How far the hand, with what it holds, reaches below the point between the fingertips."""
    return finger_below_m if held is None else max(finger_below_m, held.hang_m)


def resting_at(state: RobotState, limits: RobotLimits) -> list[float]:
    """Where the joints come to rest when they brake now."""
    ends = [
        min(max(at + v * abs(v) / (2 * joint.acceleration), joint.lowest), joint.highest)
        for at, v, joint in zip(state.position, state.velocity, limits.joints, strict=True)
    ]
    # Noise in a velocity is no motion.
    return [end if abs(end - at) > 1e-3 else at for end, at in zip(ends, state.position, strict=True)]


def with_goals(position: JointVector, wanted: Mapping[int, float]) -> JointVector:
    """The posture with some joints elsewhere."""
    return tuple(wanted.get(joint, kept) for joint, kept in enumerate(position))


def _stop(progress: SkillProgress, why: str) -> SkillStep:
    return SkillStep(progress.goal, 0.0, 0.0, progress, why)
