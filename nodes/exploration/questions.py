"""Questions about a room, from its truth, in words that people wrote; most need something to be tried."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec

from nodes.exploration.room import TRIED_BY, Room, corner_of

PHRASES = Path(__file__).with_name("phrases.jsonl")
PER_ROOM = 20
TRIED_SHARE = 0.6
MOST = 100
"""So many different ones can be asked about any room."""

CORNERS = ("north-west", "north-east", "south-west", "south-east")


class RoomQuestion(msgspec.Struct, frozen=True):
    """One question with its answer; `about` and `fact` say as fields what the words ask."""

    text: str
    about: str  # the thing's name
    fact: str  # "corner", "state"
    choices: tuple[str, ...]
    answer: str

    @property
    def needs_trying(self) -> bool:
        """Whether nobody can tell from looking."""
        return self.fact == "state"


class Phrase(msgspec.Struct, frozen=True):
    """A question as people put it; with `is_it` it asks for yes or no."""

    text: str
    fact: str
    kinds: tuple[str, ...] = ()
    is_it: str = ""


@cache
def phrases() -> tuple[Phrase, ...]:
    """Those that come with the package."""
    lines = PHRASES.read_text(encoding="utf-8").splitlines()
    return tuple(msgspec.json.decode(line, type=Phrase) for line in lines if line)


def questions_of(room: Room, seed: int, count: int = PER_ROOM) -> list[RoomQuestion]:
    """Different questions, `TRIED_SHARE` of which need trying."""
    chance = random.Random(f"questions {seed}")
    tried: list[RoomQuestion] = []
    seen: list[RoomQuestion] = []
    for phrase in phrases():
        for thing in room.things.values():
            if phrase.kinds and thing.kind not in phrase.kinds:
                continue
            truth = thing.state if phrase.fact == "state" else thing.corner
            text = phrase.text.replace("{thing}", thing.name)
            options = TRIED_BY[thing.kind][1] if phrase.fact == "state" else CORNERS
            if phrase.is_it:
                options, truth = ("yes", "no"), "yes" if truth == phrase.is_it else "no"
            (tried if phrase.fact == "state" else seen).append(
                RoomQuestion(text, thing.name, phrase.fact, options, truth)
            )
    most = round(count * TRIED_SHARE)
    return chance.sample(tried, most) + chance.sample(seen, count - most)


def question_in(text: str, names: Iterable[str]) -> RoomQuestion | None:
    """What a text asks about, by the phrases and the names of things; its answer is not known."""
    for phrase in phrases():
        for name in names:
            if phrase.text.replace("{thing}", name) == text:
                options = TRIED_BY[name.split()[-1]][1] if phrase.fact == "state" else CORNERS
                return RoomQuestion(text, name, phrase.fact, ("yes", "no") if phrase.is_it else options, "")
    return None


def majority(seeds: Iterable[int]) -> dict[str, str]:
    """The most usual answer to each choice of answers, in other rooms: what one says who has seen nothing."""
    counts: dict[str, Counter[str]] = {}
    for seed in seeds:
        for question in questions_of(Room(seed), seed):
            counts.setdefault("|".join(question.choices), Counter())[question.answer] += 1
    return {
        choices: sorted(found.items(), key=lambda one: (-one[1], one[0]))[0][0] for choices, found in counts.items()
    }


def answer(
    question: RoomQuestion, states: dict[str, str], places: dict[str, tuple[int, int]], usual: dict[str, str]
) -> str:
    """From what was found out; where that is nothing, the usual answer."""
    if question.fact == "state":
        known = states.get(question.about)
    else:
        at = places.get(question.about)
        known = None if at is None else corner_of(at)
    if known is None:
        return usual.get("|".join(question.choices), question.choices[0])
    if question.choices != ("yes", "no"):
        return known
    wanted = next(p.is_it for p in phrases() if p.text.replace("{thing}", question.about) == question.text)
    return "yes" if known == wanted else "no"
