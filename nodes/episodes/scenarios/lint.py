"""`lint`: what in a scenario makes its episodes tell less than they seem to: casts, goals, what is given away.

Rules look at words; a finding is a place to read, not a verdict. Facts and files are checked when a library is read.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Literal

import msgspec

from nodes.episodes.scenarios.library import Library
from nodes.episodes.scenarios.profiles import Scenario
from nodes.episodes.scenarios.sampling import allowed_casts, namesake
from nodes.episodes.scenarios.visibility import EVERYONE, text_for

Code = Literal[
    "no-cast",
    "few-casts",
    "same-goals",
    "short-goal",
    "strategy",
    "goal-in-context",
    "name-in-context",
    "namesakes",
    "placeholder",
    "unjudged",
    "unjudged-seat",
    "one-sided",
    "left-out",
]

WRONG: frozenset[Code] = frozenset(
    {"no-cast", "same-goals", "short-goal", "strategy", "goal-in-context", "left-out", "namesakes", "placeholder"}
)
"""Those that should be mended; the others are good to know."""

FEWEST_GOAL_WORDS = 4
SHARE_GIVEN_AWAY = 0.75
"""So much of a private goal in the shared context, and everybody knows it."""

_TACTICS = re.compile(
    r"\b(?:(?:start|begin|open) by\b|bluff|pretend to|step by step|tactic|strateg|make (?:the|a) first offer|"
    r"do not reveal|don't reveal|flatter|guilt|offer (?:him|her|them) \w+ first)",
    re.IGNORECASE,
)
_HINT = re.compile(r"<strategy_hint>.*?</strategy_hint>", re.DOTALL)
_COMMON_WORDS = (
    "a about after again all also am an and any are as at be because been before being but by can could did do does "
    "doing down each few for from further had has have having he her here hers him his how i if in into is it its "
    "just me more most my no nor not now of off on once only or other our out over own same she should so some such "
    "than that the their them then there these they this those through to too under until up very was we were what "
    "when where which while who whom why will with would you your yours secretly really never ever one two want"
)
_COMMON = frozenset(_COMMON_WORDS.split())


class LintFinding(msgspec.Struct, frozen=True):
    """One place in one scenario, which `name` calls by its codename too; or a row of the set that could not be read."""

    scenario: str
    code: Code
    text: str
    name: str

    @property
    def is_wrong(self) -> bool:
        """Whether it should be mended."""
        return self.code in WRONG


def lint(library: Library, casts: int = 5) -> list[LintFinding]:
    """All findings, by scenario. `casts`: so many each scenario should have in this library (the paper has 5)."""
    left_out = [LintFinding("", "left-out", row, library.name) for row in library.left_out]
    namesakes = [
        LintFinding(task.scenario, "namesakes", f"task {task.id}: two participants are called {twice}", task.id)
        for task in library.tasks.values()
        if (twice := namesake(library, task.characters))
    ]
    return (
        left_out
        + namesakes
        + [
            LintFinding(scenario.id, code, text, scenario.label)
            for scenario in library.scenarios.values()
            for code, text in _findings(library, scenario, casts)
        ]
    )


def _findings(library: Library, scenario: Scenario, casts: int) -> Iterator[tuple[Code, str]]:
    count = len(allowed_casts(library, scenario, random.Random(0)))
    if count < casts:
        code: Code = "few-casts" if count else "no-cast"
        yield code, f"{count} casts of this library fit its constraints; expected {casts} or more"
    goals = [text_for(goal, EVERYONE) for goal in scenario.goals]
    context = text_for(scenario.context, EVERYONE)
    if len({goal.casefold() for goal in goals}) < len(goals):
        yield "same-goals", "two seats have the same goal word by word"
    for seat, goal in enumerate(goals):
        if len(goal.split()) < FEWEST_GOAL_WORDS:
            yield "short-goal", f"seat {seat}: {goal!r} is too short to be judged"
        if tactic := _TACTICS.search(_HINT.sub("", scenario.goals[seat])):
            text = f"seat {seat}: {tactic[0]!r} tells how; put it into <strategy_hint>, or leave it out"
            yield "strategy", text
        words = content_words(goal)
        shared = words & content_words(context)
        if len(words) > FEWEST_GOAL_WORDS and len(shared) >= SHARE_GIVEN_AWAY * len(words):
            text = f"seat {seat}: the shared context holds {len(shared)} of the goal's {len(words)} words"
            yield "goal-in-context", text
    for character in library.characters.values():
        if re.search(rf"\b{re.escape(character.name)}\b", context):
            yield "name-in-context", f"it names {character.name}, whoever is cast"
    if found := placeholder_in(scenario.context, *scenario.goals):
        yield "placeholder", f"{found!r} stands for a name that nobody filled in"
    yield from _deal_findings(scenario)
    if scenario.deal is None and not scenario.wins and not any(facts.seeks for facts in scenario.facts):
        yield "unjudged", "no deal, fact or win: rules tell only who gave way"


_PLACEHOLDER = re.compile(
    r"\b(?:agent|participant|character|person|player|speaker|user)[ _]?(?:\d+|[AB]\b)|\{\w*\}|<(?:name|other|"
    r"agent)\w*>|\[(?:your|the|other)?[ _]?(?:name|agent|other|person|insert[^\]]*)[^\]]*\]|\bXXX+\b",
    re.IGNORECASE,
)


def placeholder_in(*texts: str) -> str:
    """The first words in these texts that stand for a name, as "Agent1" or "{other}"; "" where there are none."""
    return next((found[0] for text in texts if (found := _PLACEHOLDER.search(text))), "")


def _deal_findings(scenario: Scenario) -> Iterator[tuple[Code, str]]:
    """Seats of whom rules cannot tell what the deal is worth to them, and a number that nobody wants otherwise."""
    deal = scenario.deal
    if deal is None or not scenario.facts:
        return
    wants = [facts.wants for facts in scenario.facts]
    for seat, facts in enumerate(scenario.facts):
        knows_worth = bool(facts.wants) if deal.unit else bool(facts.worth)
        if not (knows_worth or facts.seeks or facts.does or facts.spares):
            what = "wants is neither low nor high" if deal.unit else "worth says of no item what it is worth"
            yield "unjudged-seat", f"seat {seat}: {what}; the deal does not bind it, and rules cannot tell what it got"
    if deal.unit and wants and len(set(wants)) == 1 and wants[0]:
        yield "one-sided", f"all seats want the number {wants[0]}: there is nobody to agree with"


@cache
def content_words(text: str) -> frozenset[str]:
    """The stems of the words that carry meaning."""
    words = {word for word in re.findall(r"[a-z0-9]+", text.lower()) if len(word) > 2} - _COMMON
    return frozenset(re.sub(r"(?<=\w{3})(?:ingly|edly|ing|ies|ied|ed|es|s|ly)$", "", word) for word in words)
