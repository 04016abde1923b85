"""`Room`: a floor with things on it, made by seed. What a thing looks like is seen; what it holds or weighs is tried.

A grid stands for the floor and one step moves by a cell or tries one thing: this is no physics, and no camera. It asks
whether an agent finds out what it will be asked about, not whether a hand can.
"""

from __future__ import annotations

import random
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
THINGS = 16
SIGHT = 2
"""Cells; things farther away are not seen."""

MOVES = {"north": (0, -1), "south": (0, 1), "west": (-1, 0), "east": (1, 0)}
Cell = tuple[int, int]


class Thing(msgspec.Struct, frozen=True):
    """One thing: seen are kind, colour and place; its state has to be tried."""

    name: str  # "red mug", one of its kind and colour
    kind: str
    colour: str
    at: Cell
    state: str

    @property
    def corner(self) -> str:
        """Which quarter of the room it stands in."""
        return f"{'north' if self.at[1] < SIDE // 2 else 'south'}-{'west' if self.at[0] < SIDE // 2 else 'east'}"


class Room:
    """A room, and the robot in it."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(f"room {seed}")
        cells = [(x, y) for x in range(SIDE) for y in range(SIDE)]
        *places, self.at = chance.sample(cells, THINGS + 1)
        names = chance.sample([(colour, kind) for colour in COLOURS for kind in TRIED_BY], THINGS)
        self.things = {
            f"{colour} {kind}": Thing(f"{colour} {kind}", kind, colour, at, chance.choice(TRIED_BY[kind][1]))
            for (colour, kind), at in zip(names, places, strict=True)
        }
        self.steps = 0

    def seen(self) -> list[Thing]:
        """The things near enough, their states withheld."""
        x, y = self.at
        near = [t for t in self.things.values() if max(abs(t.at[0] - x), abs(t.at[1] - y)) <= SIGHT]
        return [msgspec.structs.replace(thing, state="") for thing in near]

    def actions(self) -> list[str]:
        """What can be done here: moves that stay inside, and trials of things within reach."""
        x, y = self.at
        moves = [name for name, (dx, dy) in MOVES.items() if 0 <= x + dx < SIDE and 0 <= y + dy < SIDE]
        reach = [t for t in self.things.values() if abs(t.at[0] - x) + abs(t.at[1] - y) <= 1]
        return moves + [f"{TRIED_BY[thing.kind][0]} {thing.name}" for thing in reach]

    def do(self, action: str) -> tuple[str, str] | None:
        """One step; (thing, state) where a trial found one out. What cannot be done here costs a step."""
        self.steps += 1
        if action not in self.actions():
            return None
        if action in MOVES:
            self.at = (self.at[0] + MOVES[action][0], self.at[1] + MOVES[action][1])
            return None
        name = action.partition(" ")[2]
        return name, self.things[name].state
