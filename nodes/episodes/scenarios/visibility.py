"""What one participant of an episode knows when it begins: pure functions from a cast to a view.

SOTOPIA (ICLR 2024), section 2.1: one's own profile and goal always; others' goals never; of family, friends and
partners everything but secrets; of acquaintances name, occupation, pronouns and public information; of strangers
nothing. Names are told to all, as in the published prompts, because turns are addressed by name.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Literal, get_args

import msgspec

from nodes.episodes.scenarios.library import Library
from nodes.episodes.scenarios.profiles import Character, ProfileError, Relationship, Scenario, Task

EVERYONE = "environment"
"""The viewer that sees every part: the judge, the log, the writer of a script."""


TAG = re.compile(r"<(/?)([A-Za-z_][\w.-]*)((?:\s[^<>]*|/)?)>")
BROKEN = re.compile(r"<[A-Za-z_][^<>]*\sviewer\s*=")
"""What is left of a private part's tag that never ended."""
VIEWER = re.compile(r"""viewer\s*=\s*["']?([\w-]+)""")


def text_for(marked: str, viewer: str) -> str:
    """What one viewer ("agent_0", "agent_1", ..., or EVERYONE) reads of a text; tags are gone."""
    if "<" not in marked and "&" not in marked:
        return marked.strip()
    shown: list[str] = []
    tags: list[tuple[str, bool]] = []  # open ones: name, whether this viewer may read inside
    hidden = 0  # how many of the open ones it may not
    at = 0
    for tag in TAG.finditer(marked):
        if not hidden:
            shown.append(marked[at : tag.start()])
        at = tag.end()
        is_end, name, attributes = bool(tag[1]), tag[2].lower(), tag[3]
        if is_end:
            # A stray or crossing end tag closes nothing, so it cannot open a private part to others.
            if tags and tags[-1][0] == name:
                hidden -= not tags.pop()[1]
        elif not attributes.rstrip().endswith("/"):
            tags.append((name, _may_read(attributes, viewer)))
            hidden += not tags[-1][1]
    if not hidden:
        shown.append(marked[at:])
    text = "".join(shown)
    broken = BROKEN.search(text)
    if broken and viewer != EVERYONE:
        text = text[: broken.start()]
    return unescape(text).strip()


def _may_read(attributes: str, viewer: str) -> bool:
    if "viewer" not in attributes or viewer == EVERYONE:
        return True
    return set(VIEWER.findall(attributes)) == {viewer}


UNKNOWN = "Unknown"

_FIELDS = (
    "age gender occupation pronouns public_info big_five moral_values schwartz_values personality decision_style mbti "
    "secret"
)
LABELS = {field: field.replace("_", " ") for field in _FIELDS.split()} | {
    "public_info": "known about them", "big_five": "personality traits", "schwartz_values": "personal values",
    "decision_style": "way of deciding", "mbti": "MBTI type",
}  # fmt: skip
"""What may be told of somebody beside the name, and how a prompt calls it."""
PUBLIC = ("occupation", "pronouns", "public_info")
CLOSE = tuple(field for field in LABELS if field != "secret")
FIELDS_BY_RELATIONSHIP: dict[Relationship, tuple[str, ...]] = dict.fromkeys(Relationship, CLOSE) | {
    Relationship.STRANGER: (), Relationship.KNOW_BY_NAME: (), Relationship.ACQUAINTANCE: PUBLIC,
}  # fmt: skip
"""What of a profile somebody sees beside the name."""

RELATION_WORDS = {one: one.word for one in Relationship} | {
    Relationship.KNOW_BY_NAME: "acquaintance, known to you by name only", Relationship.ROMANTIC: "partner",
    Relationship.FAMILY: "relative",
}  # fmt: skip


Mode = Literal["AGENTS", "MINDREADERS", "SCRIPT"]
MODES: tuple[Mode, ...] = get_args(Mode)
"""Each is told what the relationships allow; each everything, others' goals and secrets included; one writer all."""


class PersonView(msgspec.Struct, frozen=True, kw_only=True):
    """One participant as somebody sees them."""

    name: str
    relationship: Relationship | None  # to the viewer; None for oneself, and where a writer looks
    shown: dict[str, str]  # field of the profile -> text; the secret only where it may be seen
    goal: str | None  # None: unknown
    knows: dict[str, str]  # private facts
    story: str  # what the viewer and this one both know about the two of them


class Briefable(msgspec.Struct, frozen=True, kw_only=True):
    """All that one viewer knows at the start: a participant, or a script's writer, the judge and the log."""

    context: str
    people: tuple[PersonView, ...]  # by seat

    def background(self, seat: int) -> str:
        """What is known of one participant, as one paragraph; "Unknown" where nothing is."""
        lines = [f"{LABELS[field]}: {text}".rstrip(". ") for field, text in self.people[seat].shown.items()]
        return "; ".join(lines) + "." if lines else UNKNOWN

    def goal(self, seat: int) -> str:
        """The goal of one participant; "Unknown" where it is not told."""
        goal = self.people[seat].goal
        return UNKNOWN if goal is None else goal

    def text(self) -> str:
        """The view as a block for a prompt: scenario, participants, backgrounds, facts, goals."""
        people, names = self.people, [person.name for person in self.people]
        lines = [f"Scenario: {self.context}", f"Participants: {', '.join(names[:-1])} and {names[-1]}"]
        lines += [f"{name}'s background: {self.background(seat)}" for seat, name in enumerate(names)]
        for person in people:
            if person.relationship:  # a stranger is 0, and nothing is told of one
                lines.append(f"{person.name} is your {RELATION_WORDS[person.relationship]}. {person.story}".rstrip())
        for person in people:
            if person.knows:
                facts = (f"- {key}: {text}" if text else f"- {key}" for key, text in person.knows.items())
                lines.append("\n".join((f"What {person.name} knows:", *facts)))
        lines += [f"{name}'s goal: {self.goal(seat)}" for seat, name in enumerate(names)]
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
        if twice := [name for name in names if names.count(name) > 1]:
            raise ProfileError(f"scenario {self.scenario.id}: two participants are called {twice[0]!r}; rename one")

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


def view(cast: Cast, seat: int, mode: Mode = "AGENTS", *, name_only: bool = False) -> Briefable:
    """What the participant in a seat knows; with `name_only` the characters are names without profiles.

    Raises ProfileError for a seat that the scenario does not have, and for SCRIPT, whose one writer has no seat.
    """
    if not 0 <= seat < cast.scenario.seats:
        raise ProfileError(f"scenario {cast.scenario.id}: no seat {seat}; seats are 0 to {cast.scenario.seats - 1}")
    if mode == "SCRIPT":
        raise ProfileError("mode script: its writer has no seat; ask for full_view")
    sees_all = mode == "MINDREADERS"
    reader = EVERYONE if sees_all else f"agent_{seat}"
    people = []
    for other in range(cast.scenario.seats):
        how = None if other == seat else cast.scenario.relationship_between(seat, other)
        story = "" if how is None else cast.story(seat, other)
        people.append(_person(cast, other, how, reader if how is None or sees_all else None, story, name_only))
    return Briefable(context=text_for(cast.scenario.context, reader), people=tuple(people))


def full_view(cast: Cast, *, name_only: bool = False) -> Briefable:
    """Everything about everybody: for the writer of a script, the judge and the log."""
    people = tuple(_person(cast, seat, None, EVERYONE, "", name_only) for seat in range(cast.scenario.seats))
    return Briefable(context=text_for(cast.scenario.context, EVERYONE), people=people)


def _person(
    cast: Cast, seat: int, relationship: Relationship | None, reader: str | None, story: str, name_only: bool
) -> PersonView:
    """One participant; with a `reader` (the viewer's name) all of them, without one what the relationship allows."""
    character = cast.people[seat]
    fields = tuple(LABELS) if reader is not None else FIELDS_BY_RELATIONSHIP[relationship or Relationship.STRANGER]
    shown: dict[str, str] = {}
    for field in () if name_only else fields:
        value = getattr(character, field)
        text = ", ".join(value) if isinstance(value, tuple) else str(value or "")
        shown |= {field: text} if text.strip() else {}
    return PersonView(
        name=character.name,
        relationship=relationship,
        shown=shown,
        story="" if name_only else story,
        goal=None if reader is None else text_for(cast.scenario.goals[seat], reader),
        knows={} if reader is None else dict(cast.scenario.facts_of(seat).knows),
    )
