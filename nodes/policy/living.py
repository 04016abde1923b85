"""What is alive and never a target of a deed that touches: people, parts of them and animals, by whatever word."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import msgspec

from nodes.interrupts.phrase_matcher import words_of
from nodes.msgs import SeenObject

_PARTS = re.compile(r"[,;:()/|\[\]{}\n]+")
SHORTEST_ENDING = 4
"""Letters of a word that also counts as the end of a longer one: "Kinderhand"."""
COMPOUNDS = ("de", "nl")
_ARTICLE = "ال"

Words = tuple[str, ...]


class LivingWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words, as `living.toml` has them, by language."""

    about: dict[str, tuple[str, ...]]
    behind: dict[str, tuple[str, ...]]
    amount: dict[str, tuple[str, ...]]
    not_: dict[str, tuple[str, ...]] = msgspec.field(name="not")
    person: dict[str, tuple[str, ...]]
    part: dict[str, tuple[str, ...]]
    animal: dict[str, tuple[str, ...]]

    @property
    def by_language(self) -> dict[str, frozenset[Words]]:
        """All words of each language, as they are compared."""
        tables = (self.person, self.part, self.animal)
        return {name: frozenset(words_of(one) for table in tables for one in table[name]) for name in self.person}


@cache
def _table() -> tuple[LivingWords, dict[str, frozenset[Words]], frozenset[Words]]:
    text = Path(__file__).with_name("living.toml").read_text("utf-8")
    found = msgspec.convert(tomllib.loads(text), LivingWords)
    return found, found.by_language, frozenset(words_of(one) for one in found.not_["any"])


def is_living(target: SeenObject) -> bool:
    """Whether label or colour name a person, a part of one or an animal, in any language of the reflex."""
    return any(names_living(text) for text in (target.label, target.colour, target.name))


@cache
def names_living(label: str) -> bool:
    """Whether a label is about something that lives: "left hand" is, "hand towel" is not."""
    table, by_language, things = _table()
    for part in _PARTS.split(label):
        said = words_of(part.replace("_", " ").replace("-", " "))
        words = tuple(word for one in said if (word := one.rstrip("0123456789")))  # "hand 2", "child1"
        if not words or words in things or any(words[-len(thing) :] == thing for thing in things):
            continue
        if any(_is_about(words, language, known, table) for language, known in by_language.items()):
            return True
    return False


def _is_about(words: Words, language: str, known: frozenset[Words], table: LivingWords) -> bool:
    behind, amounts = table.behind.get(language, ()), table.amount["any"]
    tells_more = {at + 1 for at, word in enumerate(words) if word in behind and not (at and words[at - 1] in amounts)}
    if language in table.about["first"]:
        return any(_without_article(words[:size]) in known for size in (1, 2))
    if language in table.about["last"]:
        head = words[: min((at - 1 for at in tells_more if at > 1), default=len(words))]
        if any(head[-size:] in known for size in range(1, len(head) + 1)):
            return True
        endings = (one[0] for one in known if len(one) == 1 and len(one[0]) >= SHORTEST_ENDING)
        return language in COMPOUNDS and any(head[-1].endswith(one) for one in endings)
    return any(
        words[at : at + size] in known and at not in tells_more
        for size in (1, 2, 3)
        for at in range(len(words) - size + 1)
    )


def _without_article(words: Words) -> Words:
    return (words[0].removeprefix(_ARTICLE), *words[1:])
