"""The brains that need no server: the offline agent, and lines from a file; and `make_brain` for launch files."""

from __future__ import annotations

import importlib
import inspect
import random
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.offline.policy import decide
from nodes.episodes.dialogue.observation import AgentChoice, AgentObservation, Brain
from runtime import Clock, UserError
from runtime.msgs.episode import Act
from runtime.serialization.toml_errors import read_text


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


EXPECTED = 'expected one a line, as a text in double quotes or as {"kind": ..., "argument": ...}'


def read_script(path: Path) -> list[Act]:
    """The acts of a .jsonl file, one {"kind", "argument", "to"} or one string a line. Raises UserError."""
    acts = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            raw = msgspec.json.decode(line)
            acts.append(Act(kind="speak", argument=raw) if isinstance(raw, str) else msgspec.convert(raw, Act))
        except (msgspec.MsgspecError, RecursionError) as problem:
            raise UserError(f"{path}:{number}: no act ({problem}); {EXPECTED}") from problem
    if not acts:
        raise UserError(f"{path}: holds no acts; {EXPECTED}")
    return acts


def own_brain(text: str) -> Brain:
    """A new brain of the user's class that "class:MODULE:CLASS" names; one a seat. Raises UserError."""
    module, _, name = text.removeprefix("class:").partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # where a user's file beside the run lies
    try:
        brain: Brain = getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError, ValueError, TypeError) as problem:
        expected = "expected class:MODULE:CLASS, a class that is made without arguments"
        raise UserError(f"agent {text!r}: {problem}; {expected}") from problem
    if not inspect.iscoroutinefunction(getattr(brain, "choose", None)):
        raise UserError(
            f"agent {text!r}: has no `async def choose(self, sight, clock, chance)` that gives an AgentChoice"
        )
    return brain


def make_brain(text: str, *, temperature: float = 0.7) -> Brain:
    """The brain of that text, for a node of a launch file. Raises UserError where it plays no seat there."""
    spec = AgentSpec.parse(text, temperature=temperature)
    if spec.kind == "rules":
        return RulesBrain()
    if spec.kind == "class":
        return own_brain(text)
    if spec.kind == "human":
        raise UserError(
            "agent 'human' plays at the terminal of polyrhythm episodes run; in a launch file a person plays in the "
            'browser: use = "bridges.web.episode.node:PersonAtPage", as in polyrhythm run sotopia-chat'
        )
    if spec.kind == "script":
        return ScriptedBrain(read_script(spec.path))
    if spec.kind == "replay":
        raise UserError(f"agent {text!r}: a log is replayed by polyrhythm episodes run, not in a launch file")
    from nodes.episodes.agents.model_brain import model_brain

    return model_brain(spec)
