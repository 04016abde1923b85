"""`HumanBrain`: a person at the terminal, who reads what the seat sees and types an act."""

from __future__ import annotations

import asyncio
import random

import msgspec

from nodes.episodes.minds.caller import AnswerStore, NoStore, sha_of
from nodes.episodes.minds.chat_wire import Answer
from nodes.episodes.talk.prompt import history_text, prompt_text
from nodes.episodes.talk.sight import Choice, Sight
from runtime import Clock
from runtime.episode_msgs import Act


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
