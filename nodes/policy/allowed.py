"""Which actions a policy takes on at all: by risk class and geometry, enforced below whatever model asks.

Model output is data. However persuasive the sentence that a model has read, an action outside the table is answered
with a failure. What a skill declares can only narrow this: a skill without a declared risk has the strictest limits.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from nodes.msgs import Action, Argument, Risk, RobotState, SeenObject, SeenPerson, SkillArgument, SkillSpec
from nodes.policy.living import is_living, names_living

STRICTEST: Risk = "person"

SEEN_FOR_S = 2.0
"""How long what the eyes have seen of people counts, s."""
HAND_M, PERSON_M = 0.10, 0.20
"""What is said to be so near to a hand's palm, or to the middle of a person, is taken for them."""


class RiskLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a skill of one risk class may be asked for."""

    furthest_m: float
    heights_m: tuple[float, float]
    widest_thing_m: float
    widest_place_m: float
    confirm: Literal["never", "tall", "always"]
    confirm_above_m: float  # "tall": higher things need a yes


class ActionLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The limits of all risk classes, as `allowed.toml` says them."""

    longest_text: int
    most_arguments: int
    risks: dict[str, RiskLimits]

    def of(self, spec: SkillSpec) -> RiskLimits:
        """Return the limits of a skill; those of the strictest class where it declares no risk."""
        return self.risks[spec.risk or STRICTEST]


@cache
def rules() -> ActionLimits:
    """Read the table beside this module."""
    return msgspec.convert(tomllib.loads(Path(__file__).with_name("allowed.toml").read_text("utf-8")), ActionLimits)


def touches(spec: SkillSpec | None) -> bool:
    """Whether this skill may touch what it is about; one that declares no risk may."""
    return spec is None or spec.risk not in ("still", "free")


def spares_hands(spec: SkillSpec | None) -> bool:
    """Whether a hand at the target ends it: any that touches, but not what takes from a hand or gives into one."""
    return touches(spec) and (spec is None or spec.risk != "person")


def why_not(
    action: Action, state: RobotState | None, skills: Mapping[str, SkillSpec], people: Sequence[SeenPerson] = ()
) -> str:
    """Return why the action is refused; "" where it may be taken on. Without a state no action with a place is.

    `people` are those whom the robot's own eyes see.
    """
    table, spec = rules(), skills.get(action.skill)
    if spec is None:
        return f"{str(action.skill)[:40]!r} is no skill; skills: {', '.join(skills)}"
    if len(action.text) > table.longest_text:
        return f"the action's text has {len(action.text)} characters; at most {table.longest_text}"
    if len(action.arguments) > table.most_arguments:
        return f"the action has {len(action.arguments)} arguments; at most {table.most_arguments}"
    given = {argument.name: argument for argument in action.arguments}
    known = {argument.name: argument for argument in spec.arguments}
    for name in given:
        if name not in known:
            return f"{spec.name} has no argument {name[:40]!r}; arguments: {', '.join(known) or 'none'}"
    for argument in spec.arguments:
        value = given.get(argument.name)
        problem = _wrong_value(spec, argument, value, state) or _why_not_touched(spec, argument, value, people)
        if problem:
            return problem
    if spares_hands(spec) and names_living(action.text):
        return f"{action.text[:40]!r} is about somebody who lives: a {spec.name} touches none"
    return ""


def _why_not_touched(
    spec: SkillSpec, argument: SkillArgument, given: Argument | None, people: Sequence[SeenPerson]
) -> str:
    """Why what this is about is not touched: it lives, or the robot's own eyes see somebody there."""
    if given is None or argument.type == "person" or not touches(spec):
        return ""
    if names_living(given.text) or (given.thing is not None and is_living(given.thing)):
        name = given.text[:40] if given.thing is None else given.thing.name[:40]
        return f"the {name} lives: a {spec.name} touches no person and no animal"
    if given.thing is not None and spares_hands(spec) and is_somebody_at(given.thing, people):
        return f"somebody is where the {given.thing.name[:40]} is said to be"
    return ""


def is_somebody_at(target: SeenObject, people: Sequence[SeenPerson]) -> bool:
    """Whether the eyes see a person, or a person's hand, at this place."""
    here = target.x_m, target.y_m, target.z_m
    return any(
        math.dist(here[:2], (one.x_m, one.y_m)) < PERSON_M
        or (one.hand_m is not None and math.dist(here, one.hand_m) < HAND_M + max(target.width_m, target.height_m) / 2)
        for one in people
    )


def _wrong_value(spec: SkillSpec, argument: SkillArgument, given: Argument | None, state: RobotState | None) -> str:
    what = f"{spec.name}'s {argument.name}"
    if given is None:
        return f"a {spec.name} needs a {argument.name}" if argument.is_needed else ""
    if argument.type == "text":
        return "" if len(given.text) <= rules().longest_text else f"{what} has {len(given.text)} characters"
    if argument.type == "number":
        number, low, high = given.number, argument.lowest, argument.highest
        if number is None or not math.isfinite(number):
            return f"{what} is no finite number"
        if (low is not None and number < low) or (high is not None and number > high):
            return f"{what} is {number:g}; {_range_text(low, high)}"
        return ""
    if given.thing is None:
        return f"{what} is no {argument.type}"
    if len(given.thing.label) > rules().longest_text:
        return f"{what} has a label of {len(given.thing.label)} characters"
    if state is None:
        return "the robot's state is not known"
    is_place = argument.type == "place" or given.thing.is_place
    return _why_not_there(spec, given.thing, state, is_place=is_place)


def _range_text(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return f"at least {low:g}" if low is not None else f"at most {high:g}"
    return f"expected {low:g} to {high:g}"


def _why_not_there(spec: SkillSpec, target: SeenObject, state: RobotState, *, is_place: bool) -> str:
    limits, skill = rules().of(spec), spec.name
    numbers = (target.x_m, target.y_m, target.z_m, target.width_m, target.height_m)
    if not all(math.isfinite(number) for number in numbers):
        return f"the target of the {skill} is not made of finite numbers"
    away_m = math.dist((target.x_m, target.y_m), (state.base_x_m, state.base_y_m))
    if away_m > limits.furthest_m:
        return f"the target is {away_m:.1f} m away; a {skill} goes {limits.furthest_m:g} m at most"
    lowest, highest = limits.heights_m
    if not lowest <= target.z_m <= highest:
        return f"the target is {target.z_m:.2f} m high; a {skill} is for {lowest:g} to {highest:g} m"
    widest_m = limits.widest_place_m if is_place else limits.widest_thing_m
    size_m = max(target.width_m, target.height_m)
    if not 0.0 <= size_m <= widest_m or min(target.width_m, target.height_m) < 0.0:
        return f"the target is {size_m:.2f} m large; a {skill} takes {widest_m:g} m"
    return ""
