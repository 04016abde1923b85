"""Who explores: at random, by frontier (to the nearest unseen floor, trying what is near), or a model."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.repair import UnreadableError, read_object
from nodes.episodes.agents.seat_caller import NoStore, SeatCaller
from nodes.exploration.questions import Question
from nodes.exploration.room import MOVES, SIDE, SIGHT, TRIED_BY, Cell, Room
from nodes.models.servers import Servers

DONE = "done"
"""The action that ends the second exploration."""


@dataclass
class Memory:
    """What an explorer has found out: all that it answers from."""

    places: dict[str, Cell] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    floor: set[Cell] = field(default_factory=set)

    def look(self, room: Room) -> None:
        """Take in what is seen from here."""
        x, y = room.at
        self.floor |= {(x + dx, y + dy) for dx in range(-SIGHT, SIGHT + 1) for dy in range(-SIGHT, SIGHT + 1)}
        self.places |= {thing.name: thing.at for thing in room.seen()}

    def untried(self, wanted: set[str] | None = None) -> list[str]:
        """Known things whose state is not known; of those wanted."""
        return [name for name in self.places if name not in self.states and (wanted is None or name in wanted)]


class Explorer(Protocol):
    """Chooses one action at a time; `questions` are those it could not answer, in the second exploration."""

    async def act(self, room: Room, memory: Memory, questions: Sequence[Question]) -> str:
        """An action of `room.actions()`, or `DONE`."""
        ...


class RandomExplorer:
    """Any action there is; in the second exploration for as long again as the frontier would need at most."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(f"explorer {seed}")
        self._left = SIDE * SIDE

    async def act(self, room: Room, memory: Memory, questions: Sequence[Question]) -> str:
        if questions:
            self._left -= 1
            if self._left < 0:
                return DONE
        return self._chance.choice(room.actions())


class FrontierExplorer:
    """Tries what is near and untried, else goes to the nearest floor that it has not seen; then only what is asked."""

    async def act(self, room: Room, memory: Memory, questions: Sequence[Question]) -> str:
        wanted = {one.about for one in questions if one.needs_trying} if questions else None
        unseen = {(x, y) for x in range(SIDE) for y in range(SIDE)} - memory.floor
        missing = {one.about for one in questions} - set(memory.places)
        goals = [(memory.places[name], name) for name in memory.untried(wanted)]
        near = sorted(goals, key=lambda goal: (_far(goal[0], room.at), goal[1]))
        if near and (_far(near[0][0], room.at) <= 1):
            name = near[0][1]
            return f"{TRIED_BY[name.split()[-1]][0]} {name}"
        if near and (questions or _far(near[0][0], room.at) <= 2 * SIGHT):
            return _towards(room.at, near[0][0])
        if unseen and (not questions or missing):
            return _towards(room.at, min(unseen, key=lambda cell: (_far(cell, room.at), cell)))
        return _towards(room.at, near[0][0]) if near else DONE


class ModelExplorer:
    """A model behind chat completions; an answer that cannot be read is a step at random, and is counted."""

    def __init__(self, model: str, seed: int, servers: Servers) -> None:
        spec = AgentSpec.parse(model)
        spec.check_model(servers)
        self._caller = SeatCaller(spec, servers, NoStore(), 0, tokens=60)
        self._chance = random.Random(f"explorer {seed}")
        self._left = SIDE * SIDE
        self.unreadable = 0

    async def act(self, room: Room, memory: Memory, questions: Sequence[Question]) -> str:
        """One question to the model. Raises OutageError."""
        self._left -= bool(questions)
        if self._left < 0:
            return DONE
        options = room.actions() + ([DONE] if questions else [])
        known = [f"{n} at {at}, {memory.states.get(n, 'not tried')}" for n, at in sorted(memory.places.items())]
        asked = "".join(f"\n- {one.text}" for one in questions)
        prompt = (
            f"You explore a room of {SIDE} by {SIDE} cells and find out what its things hold, how full and how "
            f"warm they are. You stand at {room.at}. You have seen {len(memory.floor)} cells. "
            f"Known: {'; '.join(known) or 'nothing'}."
            + (f"\nYou could not answer:{asked}" if asked else "")
            + f'\nActions: {", ".join(options)}. Answer with one JSON object and nothing else: {{"action": "..."}}'
        )
        schema: dict[str, object] = {
            "type": "object", "properties": {"action": {"type": "string", "enum": options}}, "required": ["action"],
        }  # fmt: skip
        try:
            action = str(read_object((await self._caller.ask(prompt, schema, "explore")).text).get("action", ""))
        except UnreadableError:
            action = ""
        if action not in options:
            self.unreadable += 1
            return self._chance.choice(room.actions())
        return action


def _far(first: Cell, second: Cell) -> int:
    return abs(first[0] - second[0]) + abs(first[1] - second[1])


def _towards(at: Cell, goal: Cell) -> str:
    return min(MOVES, key=lambda name: (_far((at[0] + MOVES[name][0], at[1] + MOVES[name][1]), goal), name))
