"""What an episode is made of: characters, scenarios with private goals, and how people stand to each other.

Field by field this is the vocabulary of SOTOPIA (ICLR 2024, section 2.1), for two or more participants; a *seat* is a
participant's position in a scenario, from 0. Every value is checked when it is made, whoever makes it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Literal, TypeVar

import msgspec

from nodes.msgs.episode import SEATS, ActKind, Deal, Facts
from runtime.errors import UserError

IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""Characters that no text may hold; tab and newline are allowed in texts, not in names."""

NAME_LENGTH = 80
LINE_LENGTH = 400
TEXT_LENGTH = 8000
OLDEST_YEARS = 130

CUE_KINDS = ("start", "then", "said", "lifted", "binned")

Kind = Literal[
    "cooperation",
    "competition",
    "mixed-motives",
    "negotiation",
    "persuasion",
    "accommodation",
    "information-seeking",
    "secrets",
    "",
]


class ProfileError(UserError):
    """A file of characters, scenarios or relationships cannot be used; the text names file, record and field."""


class Relationship(IntEnum):
    """How two people stand to each other, with the published numbers; higher sees more (`visibility`)."""

    STRANGER = 0
    KNOW_BY_NAME = 1
    ACQUAINTANCE = 2
    FRIEND = 3
    ROMANTIC = 4
    FAMILY = 5

    @property
    def word(self) -> str:
        """The name as files write it: "know_by_name"."""
        return self.name.lower()


class Character(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person (or a robot) that an agent plays; everything but the secret may become known to others."""

    id: str
    first_name: str
    last_name: str = ""
    age: int = 0  # years; 0: not told
    gender: str = ""
    pronouns: str = ""
    occupation: str = ""
    public_info: str = ""
    big_five: str = ""  # "openness high, conscientiousness low, ..." in our own files
    moral_values: tuple[str, ...] = ()
    schwartz_values: tuple[str, ...] = ()
    personality: str = ""  # prose on personality and values
    decision_style: str = ""
    secret: str = ""
    secret_words: tuple[str, ...] = ()  # words that give the secret away, for the rule that looks for leaks
    mbti: str = ""
    model: str = ""  # the model that should play it; "": whichever the run names
    source_id: str = ""  # the identifier in the data set it came from
    tag: str = ""

    def __post_init__(self) -> None:
        check_fields(
            self,
            identifiers=("id",),
            names=("first_name", "last_name", "gender", "pronouns", "decision_style", "mbti", "tag", "source_id"),
            lines=("occupation", "big_five", "model"),
            texts=("public_info", "personality", "secret", "moral_values", "schwartz_values", "secret_words"),
            filled=("first_name",),
        )
        if not 0 <= self.age <= OLDEST_YEARS:
            raise ValueError(f"age is {self.age}; expected 0 to {OLDEST_YEARS} years")

    @property
    def name(self) -> str:
        """First and last name, as others address it."""
        return f"{self.first_name} {self.last_name}".strip()


class SeatPair(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An exception to a scenario's relationship: how two particular seats stand to each other."""

    seats: tuple[int, int]
    relationship: Relationship


class Win(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A social game is won by an act: of `seat` (None: of anyone), of that kind, whose text matches the pattern."""

    pattern: str  # a regular expression, looked for anywhere in the act's text, upper and lower case alike
    seat: int | None = None
    kind: ActKind = "speak"
    winner: int | None = None  # the seat that has won; None: whoever did it
    text: str = ""  # what the log calls it

    def __post_init__(self) -> None:
        check_fields(self, names=("text",), lines=("pattern",), filled=("pattern",))
        try:
            re.compile(self.pattern)
        except re.error as problem:
            raise ValueError(f"pattern {self.pattern!r} is no regular expression: {problem}") from problem

    def check_seats(self, seats: int) -> None:
        """Raise ValueError where it names a seat that a scenario of so many seats has not."""
        for field, seat in (("seat", self.seat), ("winner", self.winner)):
            if seat is not None and not 0 <= seat < seats:
                raise ValueError(f"wins: {field} is {seat}; expected 0 to {seats - 1}")


class Cue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person of a scenario with a robot's body says, and when: the simulated people's part."""

    say: str
    seat: int
    when: str = "then"  # "start", "then" (the line before), "said:PATTERN" (the robot), "lifted:THING", "binned:THING"
    after_s: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self, lines=("say", "when"), filled=("say",))
        kind = self.when.partition(":")[0]
        if kind not in CUE_KINDS:
            raise ValueError(f"when is {self.when[:60]!r}; expected one of {', '.join(CUE_KINDS)}")
        if not 0 <= self.after_s <= 600:
            raise ValueError(f"after_s is {self.after_s}; expected 0 to 600 s")


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A situation that everybody in it sees, one private goal per seat, and who may sit where."""

    id: str
    context: str  # the shared part: place, time, what is going on
    goals: tuple[str, ...]  # private, by seat; may hold <extra_info>, <clarification_hint>, <strategy_hint>
    codename: str = ""
    source: str = ""  # the data set or tradition that it comes from
    kind: Kind = ""
    tags: tuple[str, ...] = ()
    relationship: Relationship = Relationship.STRANGER  # between every two seats that `pairs` does not name
    pairs: tuple[SeatPair, ...] = ()
    ages: tuple[tuple[int, int], ...] = ()  # by seat, youngest and oldest in years; (): anyone
    occupations: tuple[tuple[str, ...], ...] = ()  # by seat; (): any
    characters: tuple[tuple[str, ...], ...] = ()  # by seat, identifiers or names; (): any
    deal: Deal | None = None
    facts: tuple[Facts, ...] = ()  # by seat; (): none
    wins: tuple[Win, ...] = ()  # of a social game: acts that end it
    robot_seat: int | None = None  # the seat that the robot graph can play with its body
    objects: tuple[str, ...] = ()  # the things on the table, for an embodied scenario
    order: str = ""  # with its body: what the robot was told before the scenario begins
    cues: tuple[Cue, ...] = ()  # with its body: what simulated people say, and when
    source_id: str = ""
    tag: str = ""

    def __post_init__(self) -> None:
        check_fields(
            self,
            identifiers=("id",),
            names=("codename", "source", "tag", "source_id"),
            lines=("tags", "objects", "occupations", "characters", "order"),
            texts=("context", "goals"),
            filled=("context", "goals"),
        )
        if not 2 <= len(self.goals) <= SEATS:
            raise ValueError(f"goals has {len(self.goals)} entries; expected one per seat, 2 to {SEATS}")
        for youngest, oldest in self.ages:
            if not 0 <= youngest <= oldest <= OLDEST_YEARS:
                raise ValueError(f"ages has {youngest} to {oldest}; expected youngest <= oldest <= {OLDEST_YEARS}")
        self._check_seats()
        if self.deal is not None:
            check_deal(self.deal)
        for seat, facts in enumerate(self.facts):
            check_facts(facts, f"facts[{seat}]")
            unknown = sorted(set(facts.worth) - set(self.deal.items if self.deal else ()))
            if unknown:
                raise ValueError(f"facts[{seat}].worth values {unknown[0]!r}, which deal.items does not list")

    def _check_seats(self) -> None:
        """Raise ValueError for what is told of seats that are not there."""
        for field in ("ages", "occupations", "characters", "facts"):
            count = len(getattr(self, field))
            if count not in (0, self.seats):
                raise ValueError(f"{field} has {count} entries; expected none or one per seat ({self.seats})")
        for pair in self.pairs:
            first, second = pair.seats
            if not (0 <= first < self.seats and 0 <= second < self.seats and first != second):
                raise ValueError(f"pairs names seats {first} and {second}; expected two of 0 to {self.seats - 1}")
        for win in self.wins:
            win.check_seats(self.seats)
        for cue in self.cues:
            if not 0 <= cue.seat < self.seats or cue.seat == self.robot_seat:
                raise ValueError(f"cues: seat is {cue.seat}; expected a person's, 0 to {self.seats - 1}")
        if self.robot_seat is not None and not 0 <= self.robot_seat < self.seats:
            raise ValueError(f"robot_seat is {self.robot_seat}; expected 0 to {self.seats - 1}")

    @property
    def label(self) -> str:
        """Codename and identifier: published codenames are not unique."""
        return f"{self.codename} ({self.id})" if self.codename else self.id

    @property
    def seats(self) -> int:
        """How many take part."""
        return len(self.goals)

    @property
    def is_embodied(self) -> bool:
        """True where one participant can be the robot with its body."""
        return self.robot_seat is not None

    def relationship_between(self, first: int, second: int) -> Relationship:
        """How two seats stand to each other; raises ValueError for one and the same seat."""
        if first == second:
            raise ValueError(f"seat {first} has no relationship to itself")
        for pair in self.pairs:
            if set(pair.seats) == {first, second}:
                return pair.relationship
        return self.relationship

    def facts_of(self, seat: int) -> Facts:
        """The private facts of a seat; empty ones where the scenario has none."""
        return self.facts[seat] if self.facts else Facts()


class Bond(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How two characters stand to each other, and since when or why."""

    first: str  # identifier of a character
    second: str
    relationship: Relationship
    story: str = ""  # what both know about the two of them; shown to both, and to nobody else
    note: str = ""  # for readers of the file; never shown to a participant
    source_id: str = ""
    tag: str = ""

    def __post_init__(self) -> None:
        check_fields(self, identifiers=("first", "second"), names=("source_id", "tag"), texts=("story", "note"))
        if self.first == self.second:
            raise ValueError(f"{self.first!r} is bound to itself; expected two characters")


class Task(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scenario with a character in every seat: what one episode plays."""

    id: str
    scenario: str
    characters: tuple[str, ...]  # identifiers, by seat
    source_id: str = ""

    def __post_init__(self) -> None:
        check_fields(self, identifiers=("id", "scenario"), names=("source_id",))
        for character in self.characters:
            if not is_identifier(character):
                raise ValueError(f"characters: {character[:70]!r} is no identifier")
        if len(set(self.characters)) != len(self.characters):
            raise ValueError(f"characters names {', '.join(self.characters)}; expected nobody twice")


Record = TypeVar("Record", Character, Scenario, Bond, Task)


def is_identifier(text: str) -> bool:
    """Whether the text may name a record, and so a file or a row: lower case, no dots, no slashes."""
    return IDENTIFIER.fullmatch(text) is not None


def check_deal(deal: Deal) -> None:
    """Raise ValueError unless there is something to negotiate."""
    check_fields(deal, names=("unit",), lines=("about",), filled=("about",))
    if deal.step <= 0:
        raise ValueError(f"deal.step is {deal.step}; expected more than 0")
    if not deal.unit and not deal.items:
        raise ValueError("a deal needs unit (a number to agree on) or items (things to divide)")
    for item, count in deal.items.items():
        if not 1 <= count <= 1000:
            raise ValueError(f"deal.items: {count} of {item!r}; expected 1 to 1000")


def check_facts(facts: Facts, where: str) -> None:
    """Raise ValueError unless what a seat privately knows and wants fits together."""
    check_fields(facts, names=("role",), texts=("knows", "seeks", "hides", "says", "does", "spares"))
    target, reserve = facts.target, facts.reserve
    if target is not None and reserve is not None:
        if facts.wants == "low" and target > reserve:
            raise ValueError(f"{where}: target {target} is above reserve {reserve} although low is wanted")
        if facts.wants == "high" and target < reserve:
            raise ValueError(f"{where}: target {target} is below reserve {reserve} although high is wanted")


def check_fields(
    record: object,
    *,
    identifiers: Sequence[str] = (),
    names: Sequence[str] = (),
    lines: Sequence[str] = (),
    texts: Sequence[str] = (),
    filled: Sequence[str] = (),
) -> None:
    """Raise ValueError for a field, or a text in the collection there, that is none of its kind.

    Names are one short line without control characters or markup; what is `filled` is not blank.
    """
    for field in identifiers:
        if not is_identifier(text := getattr(record, field)):
            expected = "1 to 64 of a-z, 0-9, _ and -, starting with a letter or digit"
            raise ValueError(f"{field} is {text[:70]!r}; expected {expected}")
    for fields, most in ((names, NAME_LENGTH), (lines, LINE_LENGTH), (texts, TEXT_LENGTH)):
        for field in fields:
            for text in _texts(getattr(record, field)):
                _check_text(field, text, most, is_filled=field in filled, is_name=field in names)


def _check_text(field: str, text: str, most: int, *, is_filled: bool, is_name: bool) -> None:
    if is_filled and not text.strip():
        raise ValueError(f"{field} is empty; expected a text")
    if len(text) > most:
        raise ValueError(f"{field} has {len(text)} characters; expected at most {most}")
    if found := CONTROL.search(text):
        raise ValueError(f"{field} holds the control character U+{ord(found[0]):04X} at {found.start()}; remove it")
    if is_name and (any(mark in text for mark in "<>\n\t") or "../" in text):
        raise ValueError(f"{field} is {text[:70]!r}; expected one line without <, > or ../")


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts = value.items() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    return [text for part in parts for text in _texts(part)]
