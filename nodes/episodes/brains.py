"""What plays a seat, by a short text: "rules", "script:FILE", "replay:RUN.sqlite#EPISODE", "human", "MODEL[@URL]"."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from nodes.episodes.agent import Brain, Choice, Sight
from nodes.episodes.messages import Act
from nodes.episodes.talker import decide
from runtime import Clock, UserError

RULES = ("rules", "scripted")
"""Names of the offline agent."""


class RulesBrain:
    """The offline agent that pursues its goal by rules."""

    async def choose(self, sight: Sight, clock: Clock, chance: random.Random) -> Choice:
        return decide(sight, chance)


class ScriptedBrain:
    """Says its lines one after the other, then nothing."""

    def __init__(self, acts: Iterable[Act]) -> None:
        self._acts = list(acts)
        self._next = 0

    async def choose(self, sight: Sight, clock: Clock, chance: random.Random) -> Choice:
        if self._next >= len(self._acts):
            return Choice(urgency=0.0)
        act = self._acts[self._next]
        self._next += 1
        return Choice(act=act, urgency=0.6)


class HumanBrain:
    """A person at the terminal: the view is printed, the act is typed. Only for one episode at a time."""

    def __init__(self, ask: object = None) -> None:
        self._shown = 0

    async def choose(self, sight: Sight, clock: Clock, chance: random.Random) -> Choice:
        return await clock.external(_ask_person(sight), 0.0)


async def _ask_person(sight: Sight) -> Choice:
    import asyncio

    return await asyncio.to_thread(ask_at_terminal, sight)


def ask_at_terminal(sight: Sight) -> Choice:
    """Print what the seat sees and read one line: words to say, or /do, /sign, /to NAME, /wait, /leave."""
    from nodes.episodes.prompt import history_text

    if sight.observation.ask == 1:
        print(f"\nYou are {sight.name}.\n{sight.briefing.background}\n")
        print("Type what you say; /do ACTION, /sign GESTURE, /to NAME: WORDS, /wait, /leave.\n")
    new = sight.observation.heard
    if new:
        print(history_text(new))
    if sight.observation.problem:
        print(f"That does not work: {sight.observation.problem}")
    try:
        return Choice(act=act_from_line(input(f"{sight.name}> ")), urgency=0.9)
    except EOFError:
        return Choice(act=Act(kind="leave"))


def act_from_line(line: str) -> Act:
    """The act that a person typed."""
    text = line.strip()
    command, _, rest = text.partition(" ")
    if not text or command == "/wait":
        return Act()
    if command == "/leave":
        return Act(kind="leave", argument=rest)
    if command == "/do":
        return Act(kind="action", argument=rest)
    if command == "/sign":
        return Act(kind="non-verbal communication", argument=rest)
    if command == "/to":
        names, _, words = rest.partition(":")
        to = tuple(name.strip() for name in names.split(",") if name.strip())
        return Act(kind="speak", argument=words.strip(), to=to)
    return Act(kind="speak", argument=text)


def read_script(path: Path) -> list[Act]:
    """The acts of a .jsonl file, one {"kind", "argument", "to"} or one string a line. Raises UserError."""
    acts = []
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as problem:
        raise UserError(f"{path}: cannot be read: {problem}") from problem
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            raw = msgspec.json.decode(line)
            acts.append(Act(kind="speak", argument=raw) if isinstance(raw, str) else msgspec.convert(raw, Act))
        except msgspec.MsgspecError as problem:
            raise UserError(f"{path}:{number}: no act: {problem}") from problem
    return acts


def make_brain(spec: str, *, temperature: float = 0.7) -> Brain:
    """The brain of that text, for a node of a launch file. Raises UserError for an empty one."""
    check_agent(spec)
    if spec in RULES:
        return RulesBrain()
    if spec == "human":
        return HumanBrain()
    if spec.startswith("script:"):
        return ScriptedBrain(read_script(Path(spec.removeprefix("script:"))))
    from nodes.episodes.model_brain import model_brain

    return model_brain(spec, temperature=temperature)


def check_agent(spec: str) -> None:
    """Raise UserError where the text names no agent."""
    if not spec.strip() or any(mark in spec for mark in "\n\t"):
        raise UserError(f"agent {spec!r}: expected rules, scripted, script:FILE, replay:RUN, human or MODEL[@URL]")


def replayed(turns: Sequence[Act]) -> ScriptedBrain:
    """A brain that does again what a log says."""
    return ScriptedBrain(turns)
