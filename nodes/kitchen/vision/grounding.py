"""Which seen thing some words mean: "the crimson beaker left of the bowl". Words of `household.toml`, and what is seen.

A noun that no table holds does not decide; then colour, state and place have to. Where none of them is said, nothing is
meant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from runtime.msgs import Scene, SeenObject

SIDES = {"left": -1.0, "right": 1.0}
NEAR_M = 0.45


class Vocabulary(msgspec.Struct, frozen=True):
    """What people call kinds and colours."""

    nouns: dict[str, tuple[str, ...]]
    colours: dict[str, tuple[str, ...]]


@cache
def meaning() -> Vocabulary:
    """The table of `grounding.toml`."""
    return msgspec.toml.decode(Path(__file__).with_name("grounding.toml").read_bytes(), type=Vocabulary)


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
    plain = re.sub(r"[^a-z -]", "", words.lower())
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


def ground_in(words: str, scene: Scene) -> list[SeenObject]:
    """The same of a whole scene."""
    places = {one.subject: one.object for one in scene.relations if one.relation in ("on", "in")}
    return ground(words, [one for one in scene.things if not one.is_place], places)


def _best(
    words: str, things: Sequence[SeenObject], places: Mapping[str, str],
    likely: Mapping[str, Mapping[str, float]] | None,
) -> list[SeenObject]:  # fmt: skip
    scores = {one.id: _fits(words, one, places.get(one.id, ""), (likely or {}).get(one.id)) for one in things}
    best = max(scores.values(), default=0.0)
    return [one for one in things if scores[one.id] >= 0.8 * best]


def _fits(plain: str, one: SeenObject, place: str, likely: Mapping[str, float] | None) -> float:
    table, score = meaning(), 1.0
    kinds = [kind for kind, nouns in table.nouns.items() if _has(plain, nouns)]
    states = [word for word in ("dirty", "full", "empty", "open") if re.search(rf"\b{word}\b", plain)]
    named = re.search(r"\b(?:in|on) the ([a-z ]+?)\s*$", plain)
    colours = [colour for colour, names in table.colours.items() if _has(plain, names)]
    if "orange" in kinds and re.search(r"\borange [a-z]", plain):  # "the orange mug"
        kinds.remove("orange")
        colours.append("orange")
    if kinds:
        share = likely or {one.label: 1.0}
        score *= max(max(share.get(kind, 0.0) for kind in kinds), 0.01)
    if colours:
        score *= 1.0 if one.colour in [colour if colour != "clear" else "" for colour in colours] else 0.05
    for word in states:
        is_so = not {"full", "half full"} & set(one.state) if word == "empty" else word in " ".join(one.state)
        score *= 1.0 if is_so else 0.15
    if named and place:
        score *= 1.0 if named[1] == place else 0.1
    return score if kinds or colours or states or (named and place) else 0.0


def _has(plain: str, names: Sequence[str]) -> bool:
    return any(re.search(rf"\b{name}s?\b", plain) for name in names)


def _stands(one: SeenObject, mark: SeenObject, relation: str) -> float:
    if relation in SIDES:
        return 1.0 if (one.u_px - mark.u_px) * SIDES[relation] > 0 else 0.02
    return math.exp(-math.dist((one.x_m, one.y_m), (mark.x_m, mark.y_m)) / NEAR_M)
