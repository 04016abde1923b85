"""The declared skills of a policy: `PolicySkill`, those of ours, and how a package adds one without touching them.

A launch file names a package's skill: `params = { skills = ["my_robot.wave:WAVE"] }`. See docs/skills.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module

import msgspec

from nodes.msgs import Action, RobotState, SkillArgument, SkillCatalogue, SkillSpec
from nodes.policy.skill_phases import Phase, Spot
from runtime.errors import ParameterError

Plan = tuple[tuple[Phase, Spot], ...]
Phases = Callable[[Action, RobotState, Spot | None], Plan | str]
"""From the action, the robot's state and what it holds to phases; or why not, "" where there is nothing to do."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LONGEST_SENTENCE = 200
_MOST_WORDS = 20

THING = SkillArgument(name="thing", type="thing")
PLACE = SkillArgument(name="place", type="place")

SPECS: Mapping[str, SkillSpec] = {
    spec.name: spec
    for spec in (
        SkillSpec(
            name="pick", sentence="Grasp the thing from above and lift it.", arguments=(THING,),
            before=("hand empty", "thing seen"), after=("holding",), usual_s=9.0, risk="contact", undo="put_back",
        ),
        SkillSpec(
            name="place", sentence="Bring what is held to the place and let go of it there.", arguments=(PLACE,),
            before=("holding", "place seen"), after=("hand empty",), usual_s=7.0, risk="contact", undo="pick",
        ),
        SkillSpec(
            name="put_back", sentence="Set what is held down where it was taken from.",
            before=("holding",), after=("hand empty",), usual_s=8.0, risk="contact", undo="pick",
        ),
        SkillSpec(
            name="look", sentence="Turn the head to a thing or a place.",
            arguments=(SkillArgument(name="thing", type="thing", is_needed=False),), usual_s=1.0, risk="still",
        ),
        SkillSpec(
            name="look_round", sentence="Turn the head slowly, to see what there is.", usual_s=8.0, risk="still",
        ),
        SkillSpec(
            name="point", sentence="Point the closed gripper at a thing or a place.", arguments=(THING,),
            before=("hand empty",), usual_s=4.0, risk="free",
        ),
        SkillSpec(name="nod", sentence="Nod, which says yes.", usual_s=2.0, risk="still"),
        SkillSpec(name="shake", sentence="Shake the head, which says no.", usual_s=2.5, risk="still"),
        SkillSpec(name="hold", sentence="Keep still as it is.", usual_s=0.0, risk="still", words=("wait",)),
    )
}  # fmt: skip
"""What the policies of ours can do, as far as each of them does it."""


class PolicySkill(msgspec.Struct, frozen=True):
    """A skill of a package: what it declares, and its phases."""

    spec: SkillSpec
    phases: Phases


def catalogue_of(specs: Iterable[SkillSpec]) -> SkillCatalogue:
    """The message that announces them."""
    return SkillCatalogue(skills=tuple(specs))


def load_skills(names: Iterable[str], known: Iterable[str]) -> dict[str, PolicySkill]:
    """The skills called "module:name", by their own name. Raises ParameterError, with all that is wrong."""
    found: dict[str, PolicySkill] = {}
    taken = set(known)
    for name in names:
        skill = _imported(name)
        problems = problems_of(skill.spec)
        if skill.spec.name in taken:
            problems.append(f"a skill {skill.spec.name!r} is declared already")
        if problems:
            raise ParameterError(f"policy: skill {name!r}: {'; '.join(problems)}")
        taken.add(skill.spec.name)
        found[skill.spec.name] = skill
    for skill in found.values():
        if skill.spec.undo and skill.spec.undo not in taken:
            raise ParameterError(
                f"policy: skill {skill.spec.name!r} says that {skill.spec.undo!r} takes it back, which nobody declares"
            )
    return found


def _imported(name: str) -> PolicySkill:
    module, _, attribute = name.partition(":")
    try:
        skill = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as problem:
        raise ParameterError(f"policy: skill {name!r} is not found ({problem}); expected module:NAME") from problem
    if not isinstance(skill, PolicySkill):
        raise ParameterError(f"policy: skill {name!r} is a {type(skill).__name__}; expected a PolicySkill")
    return skill


def problems_of(spec: SkillSpec) -> list[str]:
    """What is wrong with a declaration, in sentences."""
    found = []
    if not _NAME.fullmatch(spec.name):
        found.append(f"the name is {spec.name[:40]!r}; expected small letters, digits and _, 40 at most")
    if not 0 < len(spec.sentence) <= _LONGEST_SENTENCE:
        found.append(f"the sentence has {len(spec.sentence)} characters; expected 1 to {_LONGEST_SENTENCE}")
    if not 0.0 <= spec.usual_s < math.inf:
        found.append(f"usual_s is {spec.usual_s}; expected a number of seconds")
    if len(spec.words) > _MOST_WORDS or any(not 0 < len(word) <= 40 for word in spec.words):
        found.append(f"expected {_MOST_WORDS} words at most, of 40 characters at most")
    names = [argument.name for argument in spec.arguments]
    for argument in spec.arguments:
        if not _NAME.fullmatch(argument.name) or names.count(argument.name) > 1:
            found.append(f"argument {argument.name[:40]!r}: expected one of a name of small letters")
        low, high = argument.lowest, argument.highest
        if argument.type != "number" and (low is not None or high is not None):
            found.append(f"argument {argument.name!r} is a {argument.type}; only a number has a range")
        if low is not None and high is not None and low > high:
            found.append(f"argument {argument.name!r}: lowest is {low:g}, above highest, {high:g}")
    return found
