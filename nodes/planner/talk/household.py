"""`Household`: what differs between worlds in a dialogue: where things belong, chores and recipes, from a data file.

A planner without a household carries out whole orders. One with a household does them thing by thing. Pure functions.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec

from nodes.msgs import SeenObject
from nodes.planner.words.parser import Clause
from nodes.planner.words.replies import list_words
from runtime.errors import ParameterError

FOLDER = Path(__file__).with_name("households")
_NOTHING_WRONG = re.compile(r"\b(?:nothing|not|isn't|would be) wrong\b|\bwrong with\b")
_WRONG = re.compile(r"\b(wrong|not right|mistake|isn't right)\b")
_GO = re.compile(r"^(?:no,? |well,? |and |but )*(?:the )?\w+(?: \w+)? (?:go|belong|live|always go) (?:in|on)(?:to)?\b")
_WISHES = frozenset({"want", "get", "bring", "give", "hand_over", "do"})


class Chore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words that ask for a deed with many things."""

    words: str
    skill: str
    unless: str = ""
    alone: bool = False  # it is none where a thing is named beside it
    kinds: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    kinds_too: tuple[str, ...] = ()  # in whatever state
    at: str = ""  # the place where they stand
    most: int = 0
    told: str = ""

    none: str = "I see nothing that has to be washed."

    def is_wished(self, text: str, clauses: Sequence[Clause]) -> bool:
        """Whether it is asked for."""
        return is_wished(self.words, text, clauses, unless=self.unless, alone=self.alone)

    def promise(self, things: Sequence[str]) -> str:
        """What it is called, or what is done with which things."""
        verb = {"rinse": "wash", "hand_over": "bring you"}[self.skill] if not self.told else ""
        return self.told or f"{verb} {list_words(things)}"

    def things(self, seen: Sequence[SeenObject], places: dict[str, str]) -> list[SeenObject]:
        """What it is about; `places` says where each id stands."""
        found = [
            one
            for one in seen
            if (not self.kinds or one.label in self.kinds) and (not self.at or places.get(one.id) == self.at)
            and (not self.states or set(self.states) & set(one.state) or one.label in self.kinds_too)
        ]  # fmt: skip
        return found[: self.most] if self.most else found


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A vessel that several machines fill."""

    words: str
    wish: str
    unless: str  # of what is no wish for one: "pour the coffee out"
    vessel: str
    machines: tuple[str, ...]
    left_out: str

    @property
    def machine_left_out(self) -> str:
        """The machine of what may be left out."""
        return next(one for one in self.machines if one.startswith(self.left_out))

    def is_refused(self, text: str) -> bool:
        """Whether none is wanted: "no coffee", "instead of coffee"."""
        none = r"\b(?:no|not|without|neither|instead of|than)(?: any| more| a| the)?"
        return bool(re.search(rf"{none} {self.words}", plain(text)))

    def is_wished(self, text: str, clauses: Sequence[Clause]) -> bool:
        """Whether one is asked for, by a word of wishing or by an order that brings something to somebody."""
        is_order = any(
            re.search(self.words, " ".join(one.words))
            and (
                one.to_me
                or (one.type == "order" and one.verb in _WISHES)
                or (one.type == "unknown" and one.words[:1] == (one.word,))  # "Brew two coffees."
            )
            for one in clauses
        )
        said = plain(text)
        if self.is_refused(text):
            return False
        few = (
            r"(?:(?:an?|one|two|three|some|another|\d) )?(?:(?:black|white|nice|hot|strong|quick|cups? of|mugs? of) )*"
        )
        behind = "for|with|without|in|please|and|now|black|then|each"
        is_bid = re.match(rf"{few}(?:{self.words})(?:$|[,.]| (?:{behind})\b)", said)
        if is_bid and not re.search(rf"\b(?:is|are|was|were)\b|{self.unless}", said):
            return not text.rstrip().endswith("?")  # "Coffee, black, for Ben."
        return is_wished(self.words, text, clauses, wish="" if is_order else self.wish, unless=self.unless)


class Household(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    widest_m: float = 0.0
    keep_off_m: float = 0.0
    wipes_with: str = ""
    belongs: dict[str, str] = {}
    washed_to: dict[str, str] = {}
    words: dict[str, str] = {}
    chores: dict[str, Chore] = {}
    recipes: dict[str, Recipe] = {}

    @property
    def is_kept(self) -> bool:
        """Whether there is one at all."""
        return self.widest_m > 0.0

    def written(self, text: str) -> str:
        """The sentence with other names of things as what they mean."""
        for word, meant in self.words.items():
            text = re.sub(rf"\b{word}\b", meant, text, flags=re.I)
        return text


@cache
def household_of(name: str) -> Household:
    """The household of that name, or of a file; of "", none. Raises ParameterError."""
    if not name:
        return Household()
    file = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    try:
        return msgspec.convert(tomllib.loads(file.read_text("utf-8")), Household)
    except (OSError, ValueError) as problem:
        known = ", ".join(sorted(one.stem for one in FOLDER.glob("*.toml")))
        raise ParameterError(f"household {name!r}: {problem}; expected one of {known}, or a file") from problem


def plain(text: str) -> str:
    """Small letters, written out, and without marks of shouting and asking."""
    text = text.lower().replace("’", "'")
    for short, whole in (("don't", "do not"), ("i'll", "i will"), ("i'm", "i am"), ("that's", "that is")):
        text = text.replace(short, whole)
    return re.sub(r"[!?]", " ", text).replace(" ,", ",").strip(" .,")


def says_wrong(text: str) -> bool:
    """That something should not have been done."""
    return bool(_WRONG.search(_NOTHING_WRONG.sub("", plain(text)))) and not text.rstrip().endswith("?")


def tells_where_kinds_go(text: str) -> bool:
    """ "The mugs go on the shelf": what holds from now on, beside being an order."""
    return bool(_GO.match(plain(text)))


def is_wished(
    words: str, text: str, clauses: Sequence[Clause], *, wish: str = "", unless: str = "", alone: bool = False
) -> bool:
    """Whether the words of a chore are an order: not forbidden, asked about, told of, or bound to a condition.

    Where no clause by itself has the words, all of the sentence may, unless it forbids or asks anything. With `alone`,
    it is no chore where a thing is named: "clean the plate".
    """

    def matches(sentence: str) -> bool:
        has = re.search(words, sentence) and (not wish or re.search(wish, sentence))
        return bool(has) and not (unless and re.search(unless, sentence))

    if not matches(plain(text)):
        return False
    meant = [clause for clause in clauses if matches(" ".join(clause.words))]
    is_safe = not any(one.type in ("question", "unsure") or one.is_negated or one.condition for one in clauses)
    types = ("order", "unknown") if alone else ("order", "unknown", "fragment")
    ordered = [clause for clause in meant if clause.type in types]
    if alone:
        ordered = [one for one in ordered if not any(noun.kind not in ("", "*") for noun in one.nouns)]
    is_ordered = bool(ordered) and not any(clause.is_negated or clause.condition for clause in ordered)
    return is_ordered or (is_safe and not meant)
