"""`Agent`: one seat's node, and the brains that need no server: the offline agent, lines of a file, one's own class.

It has no timers and no threads: it answers when it is asked, and stops thinking when it is interrupted. What it does is
its brain's affair; it sees an `AgentObservation` and no more.
"""

from __future__ import annotations

import importlib
import inspect
import random
import sys
import traceback
import zlib
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from nodes.episodes.agents.acts import read_script
from nodes.episodes.agents.agent_spec import AgentSpec, provenance_of
from nodes.episodes.agents.offline_agent import decide
from nodes.episodes.dialogue.observation import AgentChoice, AgentObservation, Brain
from nodes.msgs.episode import Act, Briefing, Guidance, Observation, Reply, Turn
from runtime import RELIABLE, Clock, Node, Publisher, Subscription, UserError, on


class RulesBrain:
    """The offline agent by rules; chance depends on seed, scenario and ask, so it can be asked again."""

    def __init__(self) -> None:
        self._seed: int | None = None

    async def choose(self, sight: AgentObservation, clock: Clock, chance: random.Random) -> AgentChoice:
        if self._seed is None:
            self._seed = chance.getrandbits(64) ^ zlib.crc32(sight.briefing.scenario.encode())
        return decide(sight, random.Random(self._seed + sight.observation.ask), self._seed)


class ScriptedBrain:
    """Says its lines one after the other, one each time that it is asked, then nothing."""

    def __init__(self, acts: Iterable[Act]) -> None:
        self._acts = list(acts)

    async def choose(self, sight: AgentObservation, clock: Clock, chance: random.Random) -> AgentChoice:
        place = sight.observation.ask - 1
        return AgentChoice(act=self._acts[place], urgency=0.6) if place < len(self._acts) else AgentChoice(urgency=0.0)


class OwnBrain:
    """A brain of the user's class: what goes wrong in it fails the episode in a sentence, and no other one."""

    def __init__(self, text: str, brain: Brain) -> None:
        self._text, self._brain = text, brain

    async def choose(self, sight: AgentObservation, clock: Clock, chance: random.Random) -> AgentChoice:
        try:
            choice: object = await self._brain.choose(sight, clock, chance)
        except Exception as problem:  # noqa: BLE001  # whatever the user's code raises
            at = traceback.extract_tb(problem.__traceback__)[-1]
            told = f"{self._text}: {type(problem).__name__}: {problem} ({at.filename}:{at.lineno})"
            return AgentChoice(failure=told, failure_kind="outage")
        if isinstance(choice, AgentChoice):
            return choice
        told = f"{self._text}: choose gave {choice!r:.60}; expected an AgentChoice"
        return AgentChoice(failure=told, failure_kind="outage")


def own_brain(text: str) -> Brain:
    """A new brain of the user's class that "class:MODULE:CLASS" names; one a seat. Raises UserError."""
    module, _, name = text.removeprefix("class:").partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # where a user's file beside the run lies
    try:
        brain: Brain = getattr(importlib.import_module(module), name)()
    except Exception as problem:  # whatever the user's code raises
        expected = "expected class:MODULE:CLASS, a class that is made without arguments"
        raise UserError(f"agent {text!r}: {problem}; {expected}") from problem
    if not inspect.iscoroutinefunction(getattr(brain, "choose", None)):
        raise UserError(
            f"agent {text!r}: has no `async def choose(self, sight, clock, chance)` that gives an AgentChoice"
        )
    return OwnBrain(text, brain)


def brain_of_its_own(spec: AgentSpec) -> Brain | None:
    """The brain of one who asks no model: by rules, by a class, or with the lines of a file. Raises UserError."""
    if spec.kind == "rules":
        return RulesBrain()
    if spec.kind == "class":
        return own_brain(spec.text)
    return ScriptedBrain(read_script(spec.path)) if spec.kind == "script" else None


def make_brain(text: str, *, temperature: float = 0.7) -> Brain:
    """The brain of that text, for a node of a launch file. Raises UserError where it plays no seat there."""
    spec = AgentSpec.parse(text, temperature=temperature)
    if (brain := brain_of_its_own(spec)) is not None:
        return brain
    if spec.kind == "human":
        raise UserError(
            "agent 'human' plays at the terminal of polyrhythm episodes run; in a launch file a person plays in the "
            'browser: use = "bridges.web.episode.node:PersonAtPage", as in polyrhythm run sotopia-chat'
        )
    if spec.kind == "replay":
        raise UserError(f"agent {text!r}: a log is replayed by polyrhythm episodes run, not in a launch file")
    from nodes.episodes.agents.model_brain import model_brain

    return model_brain(spec)


class Agent(Node):
    """Plays a seat; remap `episode/seat` to the seat's own topic. A fence voids what it is about to say."""

    seat = "planner"

    observation = Subscription(Observation, "episode/seat")
    reply = Publisher(Reply, "episode/reply", qos=RELIABLE)

    def __init__(self, brain: str = "rules", temperature: float = 0.7) -> None:
        self.briefing: Briefing | None = None
        self.turns: list[Turn] = []
        self.answered = 0
        self._spec = brain
        self._temperature = temperature
        self._brain: Brain | None = None

    @classmethod
    def with_brain(cls, brain: Brain) -> Agent:
        """An agent whose brain was made by the caller."""
        agent = cls()
        agent._brain = brain
        return agent

    def problems(self) -> list[str]:
        """What is wrong with its temperature or its brain."""
        if not 0.0 <= self._temperature <= 2.0:
            return [f"temperature is {self._temperature:g}; expected 0 to 2"]
        try:
            make_brain(self._spec, temperature=self._temperature)
        except UserError as problem:
            said: str = problem.args[0]  # maybe a MissingVariable
            return [said]
        return []

    def on_start(self) -> None:
        if self._brain is None:
            self._brain = make_brain(self._spec, temperature=self._temperature)
            self.reply.provenance = provenance_of(self._spec)

    @on(observation)
    async def observe(self, observation: Observation) -> None:
        """Take in what happened, and answer where an answer is asked for."""
        if observation.briefing is not None:
            self.briefing = observation.briefing
        if self.briefing is None:
            self.log.error("%s was asked before it was briefed; is its seat remapped?", self.name)
            return
        newest = self.turns[-1].index if self.turns else -1  # what an interruption kept us from answering comes again
        self.turns.extend(turn for turn in observation.heard if turn.index > newest)
        if observation.asks == "nothing" or self._brain is None:
            return
        sight = AgentObservation(self.briefing, tuple(self.turns), observation)
        guidance = observation.guidance
        if guidance is not None and guidance.act is not None and observation.asks == "act":
            choice = AgentChoice(act=guidance.act)
        else:
            choice = await self._brain.choose(sight, self.clock, self.random)
        self.answered += 1
        said = {one.name: getattr(choice, one.name) for one in fields(choice)} | {
            "note": choice.note or _guided(guidance)
        }
        held, seat = tuple(turn.index for turn in sight.turns), self.briefing.seat
        self.reply.publish(Reply(episode=observation.episode, seat=seat, ask=observation.ask, held=held, **said))


def _guided(guidance: Guidance | None) -> str:
    """For readers of the log: by what strategy, or why by none."""
    if guidance is None:
        return ""
    if guidance.failure:
        return f"unguided: {guidance.failure}"
    return "" if guidance.strategy == "native" else f"guided: {guidance.strategy}"
