"""Which actions a policy takes on at all: an allow-list with ranges, enforced below whatever model asks.

Model output is data. However persuasive the sentence that a model has read, an action outside this table is answered
with a failure, and a risky one waits for a person's own yes, which only `heard` brings and no model can say.
"""

from __future__ import annotations

import math
import tomllib
from functools import cache
from pathlib import Path

import msgspec

from nodes.interrupts.intent import says_yes, understand
from runtime.clock import to_ns
from runtime.msgs import Action, RobotState, SeenObject, Utterance

YES_FOR_S = 15.0
"""How long a person's yes to one action is good."""

PLEASE = "Please say yes."
"""How the question before a risky action ends; the action was not taken on, and may be asked for again after a yes."""


class SkillRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one skill may be asked for."""

    needs_target: bool
    labels: tuple[str, ...]
    furthest_m: float
    heights_m: tuple[float, float]
    widest_m: float
    confirm: tuple[str, ...]


class ActionLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole table."""

    longest_text: int
    skills: dict[str, SkillRule]


@cache
def rules() -> ActionLimits:
    """The table beside this module."""
    return msgspec.convert(tomllib.loads(Path(__file__).with_name("allowed.toml").read_text("utf-8")), ActionLimits)


def why_not(action: Action, state: RobotState | None) -> str:
    """Why the action is refused; "" where it may be taken on. Without a state nothing that has a place is."""
    table = rules()
    rule = table.skills.get(action.skill)
    if rule is None:
        return f"{str(action.skill)[:40]!r} is no skill; skills: {', '.join(table.skills)}"
    if len(action.text) > table.longest_text:
        return f"the action's text has {len(action.text)} characters; at most {table.longest_text}"
    target = action.target
    if target is None:
        return f"a {action.skill} needs a target" if rule.needs_target else ""
    if action.skill in ("hold", "nod", "shake"):
        return ""  # looks at no target
    if state is None:
        return "the robot's state is not known"
    return _why_not_there(action.skill, rule, target, state)


def _why_not_there(skill: str, rule: SkillRule, target: SeenObject, state: RobotState) -> str:
    numbers = (target.x_m, target.y_m, target.z_m, target.width_m, target.height_m)
    if not all(math.isfinite(number) for number in numbers):
        return f"the target of the {skill} is not made of finite numbers"
    if target.label not in rule.labels:
        return f"a {skill} of {target.label[:40]!r} is not allowed; allowed: {', '.join(rule.labels)}"
    away_m = math.dist((target.x_m, target.y_m), (state.base_x_m, state.base_y_m))
    if away_m > rule.furthest_m:
        return f"the target is {away_m:.1f} m away; a {skill} goes {rule.furthest_m:g} m at most"
    lowest, highest = rule.heights_m
    if not lowest <= target.z_m <= highest:
        return f"the target is {target.z_m:.2f} m high; a {skill} is for {lowest:g} to {highest:g} m"
    if not 0.0 <= max(target.width_m, target.height_m) <= rule.widest_m or min(target.width_m, target.height_m) < 0.0:
        return f"the target is {max(target.width_m, target.height_m):.2f} m large; a {skill} takes {rule.widest_m:g} m"
    return ""


class Confirmations:
    """Which risky actions a person has said yes to."""

    def __init__(self) -> None:
        self._asked: tuple[str, str, str] | None = None
        self._yes_until_ns = 0

    def question(self, action: Action, now_ns: int) -> str:
        """What to ask a person before this action; "" where it needs no yes or has one."""
        rule, target = rules().skills.get(action.skill), action.target
        label = target.label if target is not None else ""
        if rule is None or ("*" not in rule.confirm and label not in rule.confirm):
            return ""
        wish = (action.skill, label, target.colour if target is not None else "")
        if wish == self._asked and now_ns < self._yes_until_ns:
            self._asked, self._yes_until_ns = None, 0  # one yes, one action
            return ""
        self._asked, self._yes_until_ns = wish, 0
        return f"Shall I {action.skill} the {' '.join(part for part in wish[:0:-1] if part)}? {PLEASE}"

    def hear(self, utterance: Utterance, now_ns: int) -> None:
        """A yes is for what was asked last; a correction or a stop after it takes it back, and nothing else is one."""
        if self._asked is not None and says_yes(utterance.text):
            self._yes_until_ns = now_ns + to_ns(YES_FOR_S)
        elif understand(utterance.text).wants in ("amend", "stop"):
            self._yes_until_ns = 0
