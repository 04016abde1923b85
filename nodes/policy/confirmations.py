"""A risky action waits for a person's own yes; `nodes.interrupts.people` says who is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nodes.interrupts.intent import says_yes, understand
from nodes.interrupts.phrase_matcher import load
from nodes.msgs import Action, SkillSpec, Utterance
from nodes.policy.allowed import RiskLimits, rules, touches
from runtime.clock import to_ns

YES_FOR_S = 15.0
"""How long a person's yes to one action is good."""

PLEASE = "Please answer."
"""How the question before a risky action ends; the action was not taken on, and may be asked for again after a yes."""


class Confirmations:
    """Which risky actions a person has said yes to."""

    def __init__(self, knows: Callable[[str], bool] = lambda label: True) -> None:
        """`knows` says of a kind whether the policy's own eyes have a word for it; others are asked about once."""
        load()  # the phrase tables: no tick waits for them when the first word is heard
        self._knows = knows
        self._agreed: set[str] = set()  # kinds
        self._asked: tuple[str, str, str] | None = None
        self._yes_until_ns = 0

    def question(self, action: Action, skills: Mapping[str, SkillSpec], now_ns: int) -> str:
        """Return what to ask a person before this action; "" where it needs no yes or has one."""
        spec, target = skills.get(action.skill), action.target
        new = self._new_kinds(spec, action)
        if spec is None or not (new or _needs_yes(rules().of(spec), spec, action)):
            return ""
        wish = (action.skill, target.label if target is not None else "", target.colour if target is not None else "")
        if wish == self._asked and now_ns < self._yes_until_ns:
            self._asked, self._yes_until_ns = None, 0  # one yes, one action
            self._agreed |= new
            return ""
        self._asked, self._yes_until_ns = wish, 0
        name = " ".join(part for part in wish[:0:-1] if part)
        to_person = any(argument.type == "person" for argument in spec.arguments)
        what = " what I hold" if to_person else f" the {name}" if name else ""
        return f"Shall I {action.skill.replace('_', ' ')}{what}? {PLEASE}"

    def _new_kinds(self, spec: SkillSpec | None, action: Action) -> set[str]:
        """What it would touch that has no name here, and that nobody has said yes to."""
        if not touches(spec):
            return set()
        kinds = {one.thing.label for one in action.arguments if one.thing is not None and not one.thing.is_place}
        return {kind for kind in kinds if kind and not self._knows(kind)} - self._agreed

    def agree(self, now_ns: int) -> None:
        """A person agrees to what was asked last."""
        if self._asked is not None:
            self._yes_until_ns = now_ns + to_ns(YES_FOR_S)

    def hear(self, utterance: Utterance, now_ns: int, *, is_person: bool) -> None:
        """Hear somebody: a person's plain yes is for what was asked last; a correction or a stop of anybody takes it
        back."""
        if says_yes(utterance.text):
            if is_person:
                self.agree(now_ns)
        elif understand(utterance.text).wants in ("amend", "stop"):
            self._yes_until_ns = 0


def _needs_yes(limits: RiskLimits, spec: SkillSpec, action: Action) -> bool:
    if limits.confirm == "always":
        return True
    types = {argument.name: argument.type for argument in spec.arguments}
    things = [one.thing for one in action.arguments if one.thing is not None and types.get(one.name) == "thing"]
    return limits.confirm == "tall" and any(
        not thing.is_place and thing.height_m > limits.confirm_above_m for thing in things
    )
