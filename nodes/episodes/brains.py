"""What plays a seat, by a short text: "rules", "script:FILE", "replay:RUN.sqlite#EPISODE", "human", "MODEL[@URL]"."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from pathlib import Path

import msgspec

from nodes.episodes.agent import Brain, Choice, Sight
from nodes.episodes.caller import AnswerStore, NoStore, sha_of
from nodes.episodes.chat_wire import Answer
from nodes.episodes.prompt import history_text, prompt_text
from nodes.episodes.talker import decide
from runtime import Clock, UserError
from runtime.episode_msgs import Act

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
    """A person at the terminal: the view is printed, the act is typed, and kept like a model's answer."""

    def __init__(self, store: AnswerStore | None = None, seat: int = 0) -> None:
        self._store = store or NoStore()
        self._seat = seat
        self._asked = 0

    async def choose(self, sight: Sight, clock: Clock, chance: random.Random) -> Choice:
        self._asked += 1
        prompt = prompt_text(sight.briefing, sight.turns, sight.observation)
        sha = sha_of(prompt)
        stored = self._store.find_answer(self._seat, self._asked, sha)
        if stored is None:
            act = await clock.external(asyncio.to_thread(ask_at_terminal, sight), 0.0)
            answer = Answer(msgspec.json.encode(act).decode(), 0, 0)
            self._store.keep_answer(self._seat, self._asked, "person", "human", prompt, sha, answer)
        else:
            act = msgspec.json.decode(stored, type=Act)
        return Choice(act=act, urgency=0.9 if act.kind != "none" else 0.0, prompt_sha=sha)


def ask_at_terminal(sight: Sight) -> Act:
    """Print what the seat sees and read one line: words to say, or /do, /sign, /to NAME, /wait, /leave."""
    if sight.observation.ask == 1:
        print(f"\nYou are {sight.name}.\n{sight.briefing.background}\n")
        print("Type what you say; /do ACTION, /sign GESTURE, /to NAME: WORDS, /wait, /leave.\n")
    new = sight.observation.heard
    if new:
        print(history_text(new))
    if sight.observation.problem:
        print(f"That does not work: {sight.observation.problem}")
    try:
        return act_from_line(input(f"{sight.name}> "))
    except EOFError:
        return Act(kind="leave")


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
