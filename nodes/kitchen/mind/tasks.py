"""What the mind keeps in hand: skills to call, questions to people, and what was done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nodes.kitchen.mind.seen import Seen
from nodes.msgs import Reference, SeenObject
from nodes.planner.orders import Order

About = Literal["place", "yes", "which", "help", "thing"]


@dataclass(frozen=True, slots=True)
class SkillCall:
    """One skill, about one thing or place."""

    skill: str
    thing: str = ""  # id
    place: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question to a person, and what depends on the answer."""

    about: About
    text: str
    since_ns: int
    tasks: tuple[SkillCall, ...] = ()  # yes: these; place: of the thing
    instead: tuple[SkillCall, ...] = ()  # no: these
    order: Order | None = None  # which, thing
    choices: tuple[str, ...] = ()  # ids
    at_m: tuple[float, float] = (0.0, 0.0)  # help: where the thing stood
    times: int = 1


@dataclass(frozen=True, slots=True)
class CompletedCall:
    """What was done: for who says that it was wrong."""

    task: SkillCall
    origin: str  # the place where the thing stood


def call_of(skill: str, thing: SeenObject, place: str, seen: Seen) -> SkillCall:
    """A skill about a thing, with the words by which the robot tells of it."""
    name = thing.name
    if skill == "place":
        words = f"put the {name} {seen.relation(place)} the {place}"
    else:
        told = {"hand_over": "give you", "look": "look at", "point": "point at"}
        words = f"{told.get(skill, skill.replace('_', ' '))} the {name}"
    return SkillCall(skill, thing.id, place, words)


def about_alone(order: Order, things: tuple[Reference, ...]) -> Order:
    """The same order about these alone."""
    return Order(order.skill, things, order.excluding, order.place, order.relation)
