"""`ExplorerNode`: drives the robot through the room as an explorer chooses, and answers what it is asked.

Who explores: at random, by frontier (to the nearest unseen floor, trying what is near), or a model.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.seat_caller import NoStore, OutageError, SeatCaller
from nodes.episodes.dialogue.prompt import json_object
from nodes.exploration.messages import Deed, StepDone
from nodes.exploration.room import (
    COLOURS,
    MOVES,
    SIDE,
    TRIED_BY,
    Cell,
    RoomQuestion,
    answer,
    cell_after,
    majority,
    metres,
    question_in,
    ways,
)
from nodes.models.json_reading import UnreadableError, read_object
from nodes.models.servers import Servers
from nodes.msgs import JOINTS, JointCommand, RobotState, Utterance
from nodes.stretch.kinematics import HEAD_PAN
from nodes.stretch.limits import STOW
from runtime import RELIABLE, Node, Publisher, Subscription, UserError, every, on, to_s

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

    unreadable: int  # answers of a model that were none

    async def act(self, memory: Memory, questions: Sequence[RoomQuestion]) -> str:
        """An action of `memory.actions`, or `DONE`. Raises OutageError."""


class RandomExplorer:
    """Any action there is; in the second exploration for as long again as the frontier would need at most."""

    unreadable = 0

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(f"explorer {seed}")
        self._left = SIDE * SIDE

    async def act(self, memory: Memory, questions: Sequence[RoomQuestion]) -> str:
        self._left -= bool(questions)
        return DONE if self._left < 0 else self._chance.choice(memory.actions)


class FrontierExplorer:
    """Tries what is near and untried, else goes to the nearest floor that it has not seen; then only what is asked."""

    unreadable = 0

    async def act(self, memory: Memory, questions: Sequence[RoomQuestion]) -> str:
        wanted = {one.about for one in questions if one.needs_trying} if questions else None
        unseen = {(column, row) for column in range(SIDE) for row in range(SIDE)} - memory.floor
        missing = {one.about for one in questions} - set(memory.places)
        (x, y), places = memory.at, memory.places
        near = sorted((abs(places[name][0] - x) + abs(places[name][1] - y), name) for name in memory.untried(wanted))
        if near and near[0][0] <= 1:
            return f"{TRIED_BY[near[0][1].split()[-1]][0]} {near[0][1]}"
        beside = [cell_after(memory.places[name], move) for _, name in near for move in MOVES]
        if unseen and (not questions or missing) and not (beside and (questions or near[0][0] <= DETOUR)):
            return _towards(memory, unseen)
        return _towards(memory, beside) if beside else DONE


class ModelExplorer(RandomExplorer):
    """A model behind chat completions; an answer that cannot be read is a step at random, and is counted."""

    def __init__(self, model: str, seed: int, servers: Servers) -> None:
        super().__init__(seed)
        spec = AgentSpec.parse(model)
        spec.check_model(servers)
        self._caller = SeatCaller(spec, servers, NoStore(), 0, tokens=60)

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
        schema = json_object({"action": {"type": "string", "enum": options}})
        try:
            action = str(read_object((await self._caller.ask(prompt, schema, "explore")).text).get("action", ""))
        except UnreadableError:
            action = ""
        if action not in options:
            self.unreadable += 1
            return self._chance.choice(memory.actions)
        return action


def _towards(memory: Memory, goals: Collection[Cell]) -> str:
    """The first move to the nearest of these cells, around what is in the way; `DONE` where none is reached."""
    found = ways(memory.at, memory.blocked)
    first = [(found[cell], cell) for cell in goals if cell in found and found[cell][0]]
    return min(first)[0][1] if first else DONE


OTHER_ROOMS = range(1_000_000, 1_000_050)
"""Seeds of the rooms from which the usual answers are taken; no room that is played."""

DRIVE_MPS, TURN_RADPS = 0.25, 1.2
PULL_PER_S, TURN_PER_S = 1.0, 2.0
AIMED_RAD, THERE_M = 0.15, 0.04
LEFTMOST_RAD, RIGHTMOST_RAD, SWEEP_S, LOOK_DOWN_RAD = 1.7, -3.6, 4.0, -0.6
"""The head turns from one end of its range to the other and back, all the time."""
ARM = JOINTS.index("arm")
REACH_M, FOLDED_M = 0.20, 0.03
NAMES = tuple(f"{colour} {kind}" for colour in COLOURS for kind in TRIED_BY)
UNKNOWN = "I do not know"


class ExplorerNode(Node):
    """`policy` is "frontier", "random" or MODEL[@URL]. Base velocity and arm go to the guard on `command`."""

    state = Subscription(RobotState, "robot/state")
    step = Subscription(StepDone, "room/step", qos=RELIABLE)
    heard = Subscription(Utterance, "heard", qos=RELIABLE)

    deed = Publisher(Deed, "room/deed", qos=RELIABLE)
    said = Publisher(Utterance, "said", qos=RELIABLE)
    command = Publisher(JointCommand, "command")

    def __init__(self, policy: str = "frontier") -> None:
        self.policy = policy
        self.servers = Servers()
        self.memory = Memory()
        self.explorer: Explorer = FrontierExplorer()
        self.usual: dict[str, str] = {}
        self.asked: dict[str, RoomQuestion] = {}  # by its text
        self.began_at: Cell | None = None
        self.action = ""  # under way
        self.goal: Cell = (0, 0)

    def problems(self) -> list[str]:
        """A model that cannot be asked."""
        if self.policy not in ("frontier", "random"):
            try:
                AgentSpec.parse(self.policy).check_model(self.servers)
            except UserError as problem:
                return [f"policy is {self.policy!r}; expected frontier, random or MODEL@URL; as a model: {problem}"]
        return []

    def on_start(self) -> None:
        self.usual = majority(OTHER_ROOMS)
        if self.policy == "random":
            self.explorer = RandomExplorer(self.run_info.seed)
        elif self.policy != "frontier":
            self.explorer = ModelExplorer(self.policy, self.run_info.seed, self.servers)

    @on(step)
    async def choose(self, step: StepDone) -> None:
        """Where the last step led, and the next one; the second exploration is for what could not be answered."""
        self.began_at = self.began_at or (step.x, step.y)
        self.memory.look(step)
        self.action, self.goal = "", (step.x, step.y)
        open_ones = [one for one in self.asked.values() if self.memory.is_open(one)]
        if step.left == 0:
            return
        before, action = self.explorer.unreadable, DONE
        if open_ones or not self.asked:
            try:
                action = await self.clock.external(self.explorer.act(self.memory, open_ones), 0.0)
            except OutageError as problem:
                self.finish(ok=False, reason=str(problem))
                return
        self.action = action
        if action in MOVES:
            self.goal = cell_after(self.goal, action)
        is_unreadable = self.explorer.unreadable > before
        self.deed.publish(Deed(number=step.number + 1, action=action, is_unreadable=is_unreadable))

    @on(heard)
    async def reply(self, question: Utterance) -> None:
        """Answer from what was found out; where that is nothing, what is usual in other rooms."""
        known = question_in(question.text, NAMES)
        text = UNKNOWN
        if known is not None:
            self.asked[question.text] = known
            text = answer(known, self.memory.states, self.memory.places, self.usual)
        self.said.publish(Utterance(speaker="robot", text=text))

    @every(hz=20)
    def drive(self) -> None:
        """Turn to the goal, then go there; beside a thing that is tried, put the arm out."""
        state = self.state.latest()
        if state is None or self.began_at is None:
            return
        is_trying = self.action not in ("", DONE, *MOVES)
        posture = (*STOW[:ARM], REACH_M if is_trying else STOW[ARM], *STOW[ARM + 1 : HEAD_PAN])
        share = abs(to_s(self.clock.now_ns()) / SWEEP_S % 2.0 - 1.0)  # 1, 0, 1 in two sweeps
        head = LEFTMOST_RAD + share * (RIGHTMOST_RAD - LEFTMOST_RAD), LOOK_DOWN_RAD
        v_mps = w_radps = 0.0
        if self.action in MOVES and state.position[ARM] < FOLDED_M:
            v_mps, w_radps = way(state, metres(self.goal, self.began_at))
        self.command.publish(JointCommand(position=(*posture, *head), base_v_mps=v_mps, base_w_radps=w_radps))


def way(state: RobotState, goal_m: tuple[float, float]) -> tuple[float, float]:
    """Speed ahead, m/s, and of the turn, rad/s, that bring the base to a point."""
    x, y = goal_m[0] - state.base_x_m, goal_m[1] - state.base_y_m
    far = math.hypot(x, y)
    if far < THERE_M:
        return 0.0, 0.0
    off = math.remainder(math.atan2(y, x) - state.base_heading_rad, math.tau)
    turn = max(-TURN_RADPS, min(TURN_RADPS, TURN_PER_S * off))
    return (0.0 if abs(off) > AIMED_RAD else min(DRIVE_MPS, PULL_PER_S * far) * math.cos(off)), turn
