"""What can be ordered, and what a robot knows of its surroundings: values for every planner, by rules or by a model.

No grammar is loaded with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from nodes.msgs import Reference, Scene, SeenObject, SkillSpec

ALL = 0
"""`count` of a reference that means all that fit."""
MOST_ORDERS = 8
LEAVE = "leave"
"""The skill, as it were, of a question which thing is to be left alone."""
ALIASES = {"wait": "hold"}
"""What the parser calls a skill, and what a robot may call it."""


@dataclass(frozen=True, slots=True)
class OrderVocabulary:
    """What there can be and what can be done: all that an order may name."""

    kinds: frozenset[str]
    places: frozenset[str]
    skills: frozenset[str]
    waste: frozenset[str] = frozenset()  # places where things are thrown away
    deep: frozenset[str] = frozenset()  # places out of which the hand takes nothing
    aimless: frozenset[str] = frozenset()  # skills that are about no thing
    skill_words: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Order(msgspec.Struct, frozen=True):
    """One thing to do."""

    skill: str
    things: tuple[Reference, ...] = ()
    excluding: tuple[Reference, ...] = ()
    place: str = ""
    relation: str = ""

    def about(self, things: tuple[Reference, ...]) -> Order:
        """The same order about these."""
        return msgspec.structs.replace(self, things=things)


class Unnamed(msgspec.Struct, frozen=True):
    """What is to be left alone and has no name in the words: "that one", "the one you hold". The scene tells which."""

    how: Literal["shown", "held", "other", "described", "told"] = (
        "shown"  # told: of what was just said to be somebody's
    )
    label: str = ""  # "that cup"
    count: int = 1  # "two of the cups"
    named: Reference | None = None  # what it is by the words before alone, where they tell


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the robot believes to be there, and what it can do."""

    scene: Scene = field(default_factory=Scene)
    skills: tuple[SkillSpec, ...] = ()
    target: SeenObject | None = None  # what the VLM says that the robot holds or goes for
    is_stopped: bool | None = None  # as the guard says; None: nobody does

    @property
    def world(self) -> OrderVocabulary:
        """The words that an order may use here."""
        kinds = {thing.label for thing in self.scene.things if not thing.is_place} | set(self.scene.kinds)
        places = {thing.label for thing in self.scene.things if thing.is_place} | set(self.scene.places)
        names = {spec.name for spec in self.skills}
        names |= {alias for alias, name in ALIASES.items() if name in names} | {"undo"}
        needs = {spec.name for spec in self.skills for one in spec.arguments if one.type == "thing" and one.is_needed}
        aimless = {spec.name for spec in self.skills} - needs
        return OrderVocabulary(
            kinds=frozenset(kinds - places),
            places=frozenset(places),
            skills=frozenset(names),
            waste=frozenset(thing.label for thing in self.scene.things if "waste" in thing.state),
            deep=frozenset(thing.label for thing in self.scene.things if "deep" in thing.state),
            aimless=frozenset(aimless - {"place", "put_back"}),
            skill_words=tuple((spec.name, tuple(spec.words)) for spec in self.skills if spec.words),
        )

    def spec(self, skill: str) -> SkillSpec | None:
        """The declaration of a skill."""
        name = ALIASES.get(skill, skill)
        return next((spec for spec in self.skills if spec.name == name), None)


def is_vague(one: Reference) -> bool:
    """Whether it means one thing, or a number of them, by its kind alone: "the cup", "two of the cups"."""
    return one.count != ALL and not (one.id or one.colour or one.source) and one.label not in ("", "*")


def covers(pattern: Reference, one: Reference) -> bool:
    """Whether a pattern of kind and colour, either of which may be open, is met."""
    return pattern.label in ("*", one.label) and pattern.colour in ("", one.colour)
