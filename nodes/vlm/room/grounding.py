"""Which seen thing some words mean: "the crimson teacup left of the bowl".

Words of `grounding.toml` mean one kind or colour. Those of `derived_words.toml`, which nobody wrote down by hand, may
mean several, or what is only like them. A noun that neither holds does not decide; then colour, state and place have
to. Where none of them is said, nothing is meant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import msgspec

from nodes.msgs import Scene, SeenObject

SIDES = {"left": -1.0, "right": 1.0}
NEAR_M = 0.45
STATES = ("dirty", "full", "empty", "open")
LONGEST = 3
"""Words of a name."""


class Vocabulary(msgspec.Struct, frozen=True):
    """What people call kinds and colours: the words of each; of several where they stand together, as "glass, mug".

    `like` has nouns for what is of none of the kinds, but nearest to them.
    """

    nouns: dict[str, tuple[str, ...]]
    colours: dict[str, tuple[str, ...]]
    like: dict[str, tuple[str, ...]] = {}


Meanings = dict[str, frozenset[str]]


def vocabulary(name: str) -> Vocabulary:
    """A table beside this file."""
    return msgspec.toml.decode(Path(__file__).with_name(name).read_bytes(), type=Vocabulary)


@cache
def meanings() -> tuple[Meanings, Meanings, Meanings]:
    """By each noun the kinds that it names; by others, which kinds they are like; by each name, colours."""
    found: tuple[Meanings, Meanings, Meanings] = {}, {}, {}
    for name in ("derived_words.toml", "grounding.toml"):  # what was written by hand overrules
        table = vocabulary(name)
        for by_word, rows in zip(found, (table.nouns, table.like, table.colours), strict=True):
            by_word.update({word: frozenset(many.split(", ")) for many, words in rows.items() for word in words})
    return found


@dataclass(frozen=True, slots=True)
class Meant:
    """What words say of a thing; empty where they do not say it."""

    kinds: frozenset[str]
    is_like: bool  # these kinds, and may be none of them
    colours: frozenset[str]
    states: tuple[str, ...]
    place: str


@lru_cache(maxsize=64)
def read(plain: str) -> Meant:
    """What some plain words (a to z) say of one thing."""
    nouns, like, colours = meanings()
    named = re.search(r"\b(?:in|on) the ([a-z ]+?)\s*$", plain)
    states = tuple(word for word in STATES if re.search(rf"\b{word}\b", plain))
    kinds, is_like, of_colour = frozenset[str](), False, frozenset[str]()
    for one in re.split(r"\b(?:and|or)\b", re.split(r"\b(?:in|on|at|from|with)\b", plain)[0]):
        for phrase in one.split(" of "):  # "a piece of fruit": the first part that says a kind
            words = [word for word in phrase.split() if word not in ("coloured", "colored")]
            start, end, found = _last(words, like | nouns, colours)
            kinds |= found
            is_like |= bool(found) and not _meanings(words[start:end], nouns)
            of_colour |= _all(words[:start] + words[end:], colours)
            if found:
                break
    return Meant(kinds, is_like, of_colour, states, named[1] if named else "")


def is_named(words: str, one: SeenObject) -> bool:
    """Whether words say the kind of a thing, no kind that is only like it, and no other colour."""
    meant = read(_plain(words))
    is_coloured_so = not meant.colours or (one.colour or "clear") in meant.colours
    return meant.kinds == {one.label} and not meant.is_like and is_coloured_so


def _plain(words: str) -> str:
    return re.sub(r"[^a-z -]", "", words.lower())


def ground(
    words: str,
    things: Sequence[SeenObject],
    places: Mapping[str, str],
    likely: Mapping[str, Mapping[str, float]] | None = None,
) -> list[SeenObject]:
    """All things that the words fit best: one where they are clear, none where nothing fits.

    `places` tells on or in what each thing stands; `likely` how likely each kind is, by thing, where that is known.
    Left and right are as the image shows them.
    """
    plain = _plain(words)
    own, _, beside = re.split(r"\b((?:to the )?(?:left|right) of|next to|beside|near)\b", plain + " ", maxsplit=1) if (
        re.search(r"\b(left of|right of|next to|beside|near)\b", plain)) else (plain, "", "")  # fmt: skip
    relation = next((one for one in ("left", "right", "beside", "next", "near") if re.search(rf"\b{one}\b", plain)), "")
    scores = {one.id: _fits(own, one, places.get(one.id, ""), (likely or {}).get(one.id)) for one in things}
    if beside.strip():
        marks = _best(beside, things, places, likely)
        for one in things:
            scores[one.id] *= max((_stands(one, mark, relation) for mark in marks if mark.id != one.id), default=0.2)
    best = max(scores.values(), default=0.0)
    return [one for one in things if scores[one.id] >= 0.8 * best] if best > 0.02 else []


def ground_in(words: str, scene: Scene, likely: Mapping[str, Mapping[str, float]] | None = None) -> list[SeenObject]:
    """The same of a whole scene."""
    places = {one.subject: one.object for one in scene.relations if one.relation in ("on", "in")}
    return ground(words, [one for one in scene.things if not one.is_place], places, likely)


def _best(
    words: str, things: Sequence[SeenObject], places: Mapping[str, str],
    likely: Mapping[str, Mapping[str, float]] | None,
) -> list[SeenObject]:  # fmt: skip
    scores = {one.id: _fits(words, one, places.get(one.id, ""), (likely or {}).get(one.id)) for one in things}
    best = max(scores.values(), default=0.0)
    return [one for one in things if scores[one.id] >= 0.8 * best]


def _fits(plain: str, one: SeenObject, place: str, likely: Mapping[str, float] | None) -> float:
    meant, score = read(plain), 1.0
    if meant.kinds:
        share = likely or {one.label: 1.0}
        score *= max(sum(share.get(kind, 0.0) for kind in meant.kinds), 0.01)
    if meant.colours:
        score *= 1.0 if (one.colour or "clear") in meant.colours else 0.05
    for word in meant.states:
        is_so = not {"full", "half full"} & set(one.state) if word == "empty" else word in " ".join(one.state)
        score *= 1.0 if is_so else 0.15
    if meant.place and place:
        score *= 1.0 if meant.place == place else 0.1
    return score if meant.kinds or meant.colours or meant.states or (meant.place and place) else 0.0


def _meanings(words: Sequence[str], table: Meanings) -> frozenset[str]:
    """What some words together mean, in the singular or the plural."""
    name = " ".join(words)
    found = (table.get(one) for one in (name, name.removesuffix("s"), name.removesuffix("es")))
    return next((one for one in found if one), frozenset())


def _last(words: Sequence[str], nouns: Meanings, colours: Meanings) -> tuple[int, int, frozenset[str]]:
    """The last noun, where it starts and ends, and what it means. What is no colour before other words is no noun."""
    for end in range(len(words), 0, -1):
        for start in range(max(end - LONGEST, 0), end):
            found = _meanings(words[start:end], nouns)
            if found and (end == len(words) or not _meanings(words[start:end], colours)):
                return start, end, found
    return len(words), len(words), frozenset()


def _all(words: Sequence[str], colours: Meanings) -> frozenset[str]:
    """All colours that are named, the longest names first."""
    start, found = 0, frozenset[str]()
    while start < len(words):
        for end in range(min(start + LONGEST, len(words)), start, -1):
            if one := _meanings(words[start:end], colours):
                found, start = found | one, end - 1
                break
        start += 1
    return found


def _stands(one: SeenObject, mark: SeenObject, relation: str) -> float:
    if relation in SIDES and one.u_px and mark.u_px:  # in one image; else nobody knows which side that is
        return 1.0 if (one.u_px - mark.u_px) * SIDES[relation] > 0 else 0.02
    return math.exp(-math.dist((one.x_m, one.y_m), (mark.x_m, mark.y_m)) / NEAR_M)
