"""Who explores: at random, by frontier (to the nearest unseen floor, trying what is near), or a model."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.seat_caller import NoStore, SeatCaller
from nodes.exploration.messages import StepDone
from nodes.exploration.questions import RoomQuestion
from nodes.exploration.room import MOVES, SIDE, TRIED_BY, Cell, cell_after, ways
from nodes.models.json_reading import UnreadableError, read_object
from nodes.models.servers import Servers

DETOUR = 4
"""Cells; a frontier explorer goes so far out of its way to try a thing."""

DONE = "done"
"""The action that ends the second exploration."""


@dataclass
class Memory:
    """What an explorer has found out: all that it answers from."""

    at: Cell = (0, 0)
    actions: tuple[str, ...] = ()
    places: dict[str, Cell] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    floor: set[Cell] = field(default_factory=set)
    blocked: set[Cell] = field(default_factory=set)  # no way leads there, whatever it is that stands there

    def look(self, step: StepDone) -> None:
        """Take in where the last step led."""
        self.at, self.actions = (step.x, step.y), step.actions
        self.places |= {thing.name: (thing.x, thing.y) for thing in step.things}
        self.floor |= {self.at, *step.floor, *self.places.values()}
        self.blocked |= {cell_after(self.at, move) for move in MOVES if move not in self.actions}
        self.blocked |= set(self.places.values())
        if step.found is not None:
            self.states[step.found[0]] = step.found[1]

    def untried(self, wanted: set[str] | None = None) -> list[str]:
        """Known things whose state is not known; of those wanted."""
        return [name for name in self.places if name not in self.states and (wanted is None or name in wanted)]

    def is_open(self, question: RoomQuestion) -> bool:
        """Whether its answer has not been found out yet."""
        return question.about not in (self.states if question.needs_trying else self.places)


class Explorer(Protocol):
    """Chooses one action at a time; `questions` are those it could not answer, in the second exploration."""

    async def act(self, memory: Memory, questions: Sequence[RoomQuestion]) -> str:
        """An action of `memory.actions`, or `DONE`. Raises OutageError."""
        ...


class RandomExplorer:
    """Any action there is; in the second exploration for as long again as the frontier would need at most."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(f"explorer {seed}")
        self._left = SIDE * SIDE

    async def act(self, memory: Memory, questions: Sequence[RoomQuestion]) -> str:
        if questions:
            self._left -= 1
            if self._left < 0:
                return DONE
        return self._chance.choice(memory.actions)


class FrontierExplorer:
    """Tries what is near and untried, else goes to the nearest floor that it has not seen; then only what is asked."""

    async def act(self, memory: Memory, questions: Sequence[RoomQuestion]) -> str:
        wanted = {one.about for one in questions if one.needs_trying} if questions else None
        unseen = {(x, y) for x in range(SIDE) for y in range(SIDE)} - memory.floor
        missing = {one.about for one in questions} - set(memory.places)
        near = sorted((_far(memory.places[name], memory.at), name) for name in memory.untried(wanted))
        if near and near[0][0] <= 1:
            return f"{TRIED_BY[near[0][1].split()[-1]][0]} {near[0][1]}"
        beside = [cell_after(memory.places[name], move) for _, name in near for move in MOVES]
        if beside and (questions or near[0][0] <= DETOUR):
            return _towards(memory, beside)
        if unseen and (not questions or missing):
            return _towards(memory, unseen)
        return _towards(memory, beside) if beside else DONE


class ModelExplorer:
    """A model behind chat completions; an answer that cannot be read is a step at random, and is counted."""

    def __init__(self, model: str, seed: int, servers: Servers) -> None:
        spec = AgentSpec.parse(model)
        spec.check_model(servers)
        self._caller = SeatCaller(spec, servers, NoStore(), 0, tokens=60)
        self._chance = random.Random(f"explorer {seed}")
        self._left = SIDE * SIDE
        self.unreadable = 0

    async def act(self, memory: Memory, questions: Sequence[RoomQuestion]) -> str:
        """One question to the model. Raises OutageError."""
        self._left -= bool(questions)
        if self._left < 0:
            return DONE
        options = [*memory.actions, *([DONE] if questions else [])]
        known = [f"{n} at {at}, {memory.states.get(n, 'not tried')}" for n, at in sorted(memory.places.items())]
        asked = "".join(f"\n- {one.text}" for one in questions)
        prompt = (
            f"You explore a room of {SIDE} by {SIDE} cells and find out what its things hold, how full and how "
            f"warm they are. You stand at {memory.at}. You have seen {len(memory.floor)} cells. "
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
            return self._chance.choice(memory.actions)
        return action


def _far(first: Cell, second: Cell) -> int:
    return abs(first[0] - second[0]) + abs(first[1] - second[1])


def _towards(memory: Memory, goals: Collection[Cell]) -> str:
    """The first move to the nearest of these cells, around what is in the way; `DONE` where none is reached."""
    found = ways(memory.at, memory.blocked)
    first = [(found[cell], cell) for cell in goals if cell in found and found[cell][0]]
    return min(first)[0][1] if first else DONE
