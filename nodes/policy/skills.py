"""Skills of the scripted policy as tables of phases; `skill_steps` goes through them.

The gripper comes from above, pointing down, with its fingers to the left and right of the thing: all sideways motion
happens at one travel height above everything on the table, where base, arm, lift, wrist and head move at once; near
things only the lift and the fingers move. Leaving in mid-skill is therefore always the same: open if nothing is held,
and go up. A picked thing that is no longer wanted goes back to where it was taken (`put_back`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

BELOW_TOP_M = 0.04
"""How far below a thing's top the point between the fingertips closes."""
GRASP_ABOVE_BOTTOM_M = 0.035
"""Closest to what the thing stands on: the ends of the fingers reach 0.02 below the point between them."""
Level = Literal["keep", "travel", "grasp", "set down"]
Until = Literal["lift", "arm", "wrist", "base", "head", "near", "grasp", "open", "off", "point"]


@dataclass(frozen=True, slots=True)
class Spot:
    """A thing or a place: centre in the odometry frame, size, and what to call it; m."""

    name: str  # "red cup"
    x_m: float
    y_m: float
    z_m: float
    height_m: float

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
