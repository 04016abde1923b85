"""`Room`: a floor with things on it, made by seed, and questions about it. What a thing holds or weighs is tried.

The floor is divided into cells; things stand in some of them, and the robot drives through the others. A step goes to
the next cell or tries one thing. What the world does is known by rules, not by physics: it asks whether a robot finds
out what it will be asked about, not whether its hand can. Questions are in words that people wrote.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

Trial = Literal["open", "lift", "touch"]
COLOURS = ("red", "blue", "green", "yellow", "white")
OPENED = ("box", "drawer", "cupboard", "tin")
FILLED = ("mug", "bottle", "jug", "bucket")
HEATED = ("pan", "kettle", "lamp", "radiator")
HIDDEN = ("a key", "a spoon", "nothing", "a sock")
LEVELS = ("empty", "half full", "full")
WARMTHS = ("cold", "warm", "hot")
TRIED_BY: dict[str, tuple[Trial, tuple[str, ...]]] = {
    **dict.fromkeys(OPENED, ("open", HIDDEN)),
    **dict.fromkeys(FILLED, ("lift", LEVELS)),
    **dict.fromkeys(HEATED, ("touch", WARMTHS)),
}
"""Kind of thing -> how its state is found out, and the states there are."""

SIDE = 12
CELL_M = 0.6
THINGS = 16

MOVES = {"north": (0, -1), "south": (0, 1), "west": (-1, 0), "east": (1, 0)}
Cell = tuple[int, int]


def is_inside(cell: Cell) -> bool:
    """Whether the cell is one of the room."""
    return 0 <= cell[0] < SIDE and 0 <= cell[1] < SIDE


def cell_after(at: Cell, move: str) -> Cell:
    """The next cell in that direction."""
    return at[0] + MOVES[move][0], at[1] + MOVES[move][1]


def corner_of(cell: Cell) -> str:
    """Which quarter of the room a cell lies in."""
    return f"{'north' if cell[1] < SIDE // 2 else 'south'}-{'west' if cell[0] < SIDE // 2 else 'east'}"


def metres(cell: Cell, began_at: Cell) -> tuple[float, float]:
    """The middle of a cell, odometry frame: x to the east, y to the north, from where the robot began."""
    return (cell[0] - began_at[0]) * CELL_M, (began_at[1] - cell[1]) * CELL_M


def cell_at(point_m: tuple[float, float], began_at: Cell) -> Cell:
    """The cell that a point of the odometry frame lies in."""
    return began_at[0] + round(point_m[0] / CELL_M), began_at[1] - round(point_m[1] / CELL_M)


def ways(at: Cell, taken: Collection[Cell]) -> dict[Cell, tuple[int, str]]:
    """Every cell that is reached from here around what is taken: how far it is, and the first move to it."""
    found: dict[Cell, tuple[int, str]] = {at: (0, "")}
    waiting = deque([at])
    while waiting:
        here = waiting.popleft()
        far, first = found[here]
        for move in MOVES:
            there = cell_after(here, move)
            if is_inside(there) and there not in taken and there not in found:
                found[there] = far + 1, first or move
                waiting.append(there)
    return found


class RoomThing(msgspec.Struct, frozen=True):
    """One thing: seen are kind, colour and place; its state has to be tried."""

    name: str  # "red mug", one of its kind and colour
    kind: str
    colour: str
    at: Cell
    state: str

    @property
    def corner(self) -> str:
        """Which quarter of the room it stands in."""
        return corner_of(self.at)


class Room:
    """A room, and the robot in it."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(f"room {seed}")
        cells = [(x, y) for x in range(SIDE) for y in range(SIDE)]
        while True:
            *places, self.at = chance.sample(cells, THINGS + 1)
            if len(ways(self.at, set(places))) == len(cells) - THINGS:  # the robot gets to all of the floor
                break
        self.began_at = self.at
        names = chance.sample([(colour, kind) for colour in COLOURS for kind in TRIED_BY], THINGS)
        self.things = {
            f"{colour} {kind}": RoomThing(f"{colour} {kind}", kind, colour, at, chance.choice(TRIED_BY[kind][1]))
            for (colour, kind), at in zip(names, places, strict=True)
        }
        self.steps = 0

    def actions(self) -> list[str]:
        """What can be done here: moves that stay inside, and trials of things within reach."""
        beside = {move: cell_after(self.at, move) for move in MOVES}
        taken = {thing.at for thing in self.things.values()}
        moves = [move for move, cell in beside.items() if is_inside(cell) and cell not in taken]
        reach = [thing for thing in self.things.values() if thing.at in (self.at, *beside.values())]
        return moves + [f"{TRIED_BY[thing.kind][0]} {thing.name}" for thing in reach]

    def do(self, action: str) -> tuple[str, str] | None:
        """One step; (thing, state) where a trial found one out. What cannot be done here costs a step."""
        self.steps += 1
        if action not in self.actions():
            return None
        if action in MOVES:
            self.at = cell_after(self.at, action)
            return None
        name = action.partition(" ")[2]
        return name, self.things[name].state


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
    is_it: str = ""  # of one for yes or no: the fact that is asked for

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

    def question(self, name: str, truth: str = "") -> RoomQuestion:
        """What it asks about the thing of that name; without the truth its answer is not known."""
        options = TRIED_BY[name.split()[-1]][1] if self.fact == "state" else CORNERS
        if self.is_it:
            options, truth = ("yes", "no"), truth and ("yes" if truth == self.is_it else "no")
        return RoomQuestion(self.text.replace("{thing}", name), name, self.fact, options, truth, self.is_it)


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
            question = phrase.question(thing.name, thing.state if phrase.fact == "state" else thing.corner)
            (tried if question.needs_trying else seen).append(question)
    most = round(count * TRIED_SHARE)
    return chance.sample(tried, most) + chance.sample(seen, count - most)


def question_in(text: str, names: Iterable[str]) -> RoomQuestion | None:
    """What a text asks about, by the phrases and the names of things; its answer is not known."""
    asked = (phrase.question(name) for name in names for phrase in phrases())
    return next((one for one in asked if one.text == text), None)


def majority(seeds: Iterable[int]) -> dict[str, str]:
    """The most usual answer to each choice of answers, in other rooms: what one says who has seen nothing."""
    counts: dict[str, Counter[str]] = {}
    for seed in seeds:
        for question in questions_of(Room(seed), seed):
            counts.setdefault("|".join(question.choices), Counter())[question.answer] += 1
    return {choices: min(found, key=lambda one: (-found[one], one)) for choices, found in counts.items()}


def answer(
    question: RoomQuestion, states: dict[str, str], places: dict[str, tuple[int, int]], usual: dict[str, str]
) -> str:
    """From what was found out; where that is nothing, the usual answer."""
    corners = {name: corner_of(at) for name, at in places.items()}
    known = (states if question.needs_trying else corners).get(question.about)
    if known is None:
        return usual.get("|".join(question.choices), question.choices[0])
    return known if not question.is_it else "yes" if known == question.is_it else "no"
