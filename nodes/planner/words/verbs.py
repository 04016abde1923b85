"""Verbs as rows over a bag of roles: what an order asks for, by what stands beside its verb. Pure functions."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import msgspec

from nodes.planner.words.lexicon import lexicon_file
from nodes.planner.words.parser import Clause, Noun

Targets = list[tuple[str, Noun | None]]
"""Prepositions and what stands behind them."""
BACK = frozenset(lexicon_file().words["backs"])
WATER = frozenset({"tap", "faucet", "water"})


class VerbRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of `verbs.toml`."""

    when: str = ""
    skill: str = ""
    then: str = ""
    why: str = ""
    what: str = ""


@cache
def _rows() -> dict[str, tuple[VerbRow, ...]]:
    text = Path(__file__).with_name("verbs.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, tuple[VerbRow, ...]])


def row_of(verb: str, bag: frozenset[str]) -> VerbRow | None:
    """The first row that fits; None of a verb without rows, which is a skill by itself."""
    return next((row for row in _rows().get(verb, ()) if all(_is_so(one, bag) for one in row.when.split())), None)


def _is_so(condition: str, bag: frozenset[str]) -> bool:
    bare = condition.removeprefix("!")
    mark = bare[:1] if bare[:1] in "+@=?~" else ""
    return any(f"{mark}{one}" in bag for one in bare[len(mark) :].split("|")) != condition.startswith("!")


def bag_of(clause: Clause, nouns: Sequence[Noun], targets: Targets, source: str) -> frozenset[str]:
    """What stands beside a verb, but for what only the conversation tells.

    `targets` are where to; `over` and `under` are read from them. What is offered, told before or asked twice is added
    by who knows the conversation.
    """
    behind = [noun for _, noun in targets if noun is not None]
    over = [noun for relation, noun in targets if noun is not None and relation in ("other", "on")][:1]
    under = [noun for relation, noun in targets if relation == "other"][:1]
    first = nouns[0] if nouns else Noun()
    names = [word for noun in nouns for word in (noun.kind or noun.unknown).split()]
    names += [word for word in clause.left if word in ("space", "room")]
    roles = {
        "thing": bool(nouns), "pronoun": any(noun.pronoun for noun in nouns), "source": bool(source),
        "offered": any(noun.is_offered for noun in nouns), "request": clause.is_request,
        "to_me": clause.to_me, "from_me": clause.from_me,
        "named": bool(first.kind or first.colour),
        "first_is_kind": bool(first.kind), "first_is_place": bool(first.place), "first_is_unknown": bool(first.unknown),
        "first_is_pronoun": bool(first.pronoun),
        "other_deed": any(noun.unknown and not noun.is_vague for noun in nouns),
        "goal": bool(targets), "goal_is_named": bool(behind), "goal_is_place": any(noun.place for noun in behind),
        "goal_is_named_place": any(noun.place or noun.unknown for noun in behind),
        "goal_is_to": any(relation == "to" for relation, _ in targets),
        "goal_is_where_it_is": all(relation in ("in", "on", "from") for relation, _ in targets),
        "first_goal_is_place": bool(targets and targets[0][1] is not None and targets[0][1].place),
        "over_kind": bool(over and over[0].kind), "over_place": bool(over and over[0].place),
        "under_water": bool(under and under[0] is not None and WATER.intersection(under[0].unknown.split())),
        "left": bool(clause.left), "left_to": "to" in clause.left, f"left_{' '.join(clause.left)}": bool(clause.left),
        "back_adverb": bool(BACK.intersection(clause.adverbs)),
    }  # fmt: skip
    marked = [
        *_marked("+", clause.particles), *_marked("@", clause.adverbs), *_marked("=", (clause.word,)),
        *_marked("?", (noun.unknown for noun in nouns)), *_marked("~", names),
    ]  # fmt: skip
    return frozenset((*(role for role, is_so in roles.items() if is_so), *marked))


def _marked(mark: str, words: Iterable[str]) -> list[str]:
    return [f"{mark}{word.replace(' ', '_')}" for word in words]
