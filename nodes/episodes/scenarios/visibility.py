"""What one participant of an episode knows when it begins: pure functions from a cast to a view.

SOTOPIA (ICLR 2024), section 2.1: one's own profile and goal always; others' goals never; of family, friends and
partners everything but secrets; of acquaintances name, occupation, pronouns and public information; of strangers
nothing. Names are told to all, as in the published prompts, because turns are addressed by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from nodes.episodes.scenarios.library import Library
from nodes.episodes.scenarios.markup import EVERYONE, text_for, viewer_of
from nodes.episodes.scenarios.profiles import Character, ProfileError, Relationship, Scenario, Task

UNKNOWN = "Unknown"

PUBLIC = ("occupation", "pronouns", "public_info")
CLOSE = (
    "age",
    "gender",
    *PUBLIC,
    "big_five",
    "moral_values",
    "schwartz_values",
    "personality",
    "decision_style",
    "mbti",
)
EVERYTHING: tuple[str, ...] = (*CLOSE, "secret")
FIELDS_BY_RELATIONSHIP: dict[Relationship, tuple[str, ...]] = {
    Relationship.STRANGER: (),
    Relationship.KNOW_BY_NAME: (),
    Relationship.ACQUAINTANCE: PUBLIC,
    Relationship.FRIEND: CLOSE,
    Relationship.ROMANTIC: CLOSE,
    Relationship.FAMILY: CLOSE,
}
"""What of a profile somebody sees beside the name."""

LABELS = {
    "age": "age",
    "gender": "gender",
    "occupation": "occupation",
    "pronouns": "pronouns",
    "public_info": "known about them",
    "big_five": "personality traits",
    "moral_values": "moral values",
    "schwartz_values": "personal values",
    "personality": "personality",
    "decision_style": "way of deciding",
    "mbti": "MBTI type",
    "secret": "secret",
}


RELATION_WORDS = {
    Relationship.STRANGER: "stranger",
    Relationship.KNOW_BY_NAME: "acquaintance, known to you by name only",
    Relationship.ACQUAINTANCE: "acquaintance",
    Relationship.FRIEND: "friend",
    Relationship.ROMANTIC: "partner",
    Relationship.FAMILY: "relative",
}


class Mode(StrEnum):
    """Who is told what."""

    AGENTS = "agents"  # each what the relationships allow
    MINDREADERS = "mindreaders"  # each everything, others' goals and secrets included
    SCRIPT = "script"  # one writer knows everything and plays all


class PersonView(msgspec.Struct, frozen=True, kw_only=True):
    """One participant as somebody sees them."""

    seat: int
    name: str
    is_self: bool
    relationship: Relationship | None  # to the viewer; None for oneself, and where a writer looks
    shown: dict[str, str]  # field of the profile -> text; the secret only where it may be seen
    goal: str | None  # None: unknown
    knows: dict[str, str]  # private facts
    story: str  # what the viewer and this one both know about the two of them

    @property
    def is_known(self) -> bool:
        """False for a stranger, of whom there is only the name."""
        return self.relationship is None or self.relationship > Relationship.STRANGER


class Briefable(msgspec.Struct, frozen=True, kw_only=True):
    """All that one viewer knows at the start; `seat` is None for a script's writer, the judge and the log."""

    seat: int | None
    mode: Mode
    context: str
    people: tuple[PersonView, ...]  # by seat

    def background(self, seat: int) -> str:
        """What is known of one participant, as one paragraph; "Unknown" where nothing is."""
        person = self.people[seat]
        lines = [f"{LABELS[field]}: {text}" for field, text in person.shown.items()]
        if not lines:
            return UNKNOWN
        return "; ".join(line.rstrip(". ") for line in lines) + "."

    def goal(self, seat: int) -> str:
        """The goal of one participant; "Unknown" where it is not told."""
        goal = self.people[seat].goal
        return UNKNOWN if goal is None else goal

    def knowledge(self, seat: int) -> str:
        """The private facts told to the viewer about one seat, a line each; "" where there are none."""
        return "\n".join(f"- {key}: {text}" if text else f"- {key}" for key, text in self.people[seat].knows.items())

    def text(self) -> str:
        """The view as a block for a prompt: scenario, participants, backgrounds, facts, goals."""
        lines = [f"Scenario: {self.context}", f"Participants: {_listed([person.name for person in self.people])}"]
        for person in self.people:
            lines.append(f"{person.name}'s background: {self.background(person.seat)}")
        for person in self.people:
            if person.relationship is not None and person.is_known:
                lines.append(f"{person.name} is your {RELATION_WORDS[person.relationship]}. {person.story}".rstrip())
        for person in self.people:
            if person.knows:
                lines.append(f"What {person.name} knows:\n{self.knowledge(person.seat)}")
        for person in self.people:
            lines.append(f"{person.name}'s goal: {self.goal(person.seat)}")
        return "\n".join(lines)


class Cast(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario with its people, and how they stand to each other: all that views are made from."""

    scenario: Scenario
    people: tuple[Character, ...]  # by seat
    stories: dict[tuple[int, int], str] = {}  # (lower seat, higher seat) -> what both know about the two of them

    def __post_init__(self) -> None:
        if len(self.people) != self.scenario.seats:
            raise ProfileError(
                f"scenario {self.scenario.id}: {len(self.people)} characters; expected {self.scenario.seats}"
            )
        names = [person.name.casefold() for person in self.people]
        for name in names:
            if names.count(name) > 1:
                raise ProfileError(f"scenario {self.scenario.id}: two participants are called {name!r}; rename one")

    def story(self, first: int, second: int) -> str:
        """What two seats both know about themselves; "" where nothing is written, or where they are strangers here."""
        if self.scenario.relationship_between(first, second) <= Relationship.KNOW_BY_NAME:
            return ""
        return self.stories.get((min(first, second), max(first, second)), "")


def cast_of(library: Library, task: Task) -> Cast:
    """The cast of a task; raises ProfileError for a scenario or a character that the library does not hold.

    How they stand to each other is the scenario's word; the library adds the story of those it knows to stand so.
    """
    scenario = library.scenario(task.scenario)
    stories: dict[tuple[int, int], str] = {}
    for second in range(min(len(task.characters), scenario.seats)):
        for first in range(second):
            bond = library.bond(task.characters[first], task.characters[second])
            if bond and bond.story and bond.relationship == scenario.relationship_between(first, second):
                stories[first, second] = bond.story
    return Cast(scenario=scenario, people=tuple(map(library.character, task.characters)), stories=stories)


def view(cast: Cast, seat: int, mode: Mode = Mode.AGENTS, *, name_only: bool = False) -> Briefable:
    """What the participant in a seat knows; with `name_only` the characters are names without profiles.

    Raises ProfileError for a seat that the scenario does not have, and for SCRIPT, whose one writer has no seat.
    """
    if not 0 <= seat < cast.scenario.seats:
        raise ProfileError(f"scenario {cast.scenario.id}: no seat {seat}; seats are 0 to {cast.scenario.seats - 1}")
    if mode is Mode.SCRIPT:
        raise ProfileError("mode script: its writer has no seat; ask for full_view")
    sees_all = mode is Mode.MINDREADERS
    reader = EVERYONE if sees_all else viewer_of(seat)
    people = tuple(
        _person(
            cast,
            other,
            relationship=None if other == seat else cast.scenario.relationship_between(seat, other),
            is_self=other == seat,
            reader=reader if other == seat or sees_all else None,
            story="" if other == seat else cast.story(seat, other),
            name_only=name_only,
        )
        for other in range(cast.scenario.seats)
    )
    return Briefable(seat=seat, mode=mode, context=text_for(cast.scenario.context, reader), people=people)


def full_view(cast: Cast, *, name_only: bool = False) -> Briefable:
    """Everything about everybody: for the writer of a script, the judge and the log."""
    people = tuple(
        _person(cast, seat, relationship=None, is_self=False, reader=EVERYONE, name_only=name_only)
        for seat in range(cast.scenario.seats)
    )
    return Briefable(seat=None, mode=Mode.SCRIPT, context=text_for(cast.scenario.context, EVERYONE), people=people)


def _person(
    cast: Cast,
    seat: int,
    *,
    relationship: Relationship | None,
    is_self: bool,
    reader: str | None,
    name_only: bool,
    story: str = "",
) -> PersonView:
    """One participant; with a `reader` (the viewer's name) all of them, without one what the relationship allows."""
    character = cast.people[seat]
    allowed = FIELDS_BY_RELATIONSHIP[relationship or Relationship.STRANGER]
    fields = allowed if reader is None else EVERYTHING
    return PersonView(
        seat=seat,
        name=character.name,
        is_self=is_self,
        relationship=relationship,
        shown={} if name_only else _shown(character, fields),
        story="" if name_only else story,
        goal=None if reader is None else text_for(cast.scenario.goals[seat], reader),
        knows={} if reader is None else dict(cast.scenario.facts_of(seat).knows),
    )


def _shown(character: Character, fields: Sequence[str]) -> dict[str, str]:
    shown: dict[str, str] = {}
    for field in fields:
        value = getattr(character, field)
        text = ", ".join(value) if isinstance(value, tuple) else str(value or "")
        if text.strip():
            shown[field] = text
    return shown


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
