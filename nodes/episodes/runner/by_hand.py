"""Episodes in which people at the terminal take part: time runs as theirs does, and nobody waits for their typing.

The talk stays in virtual time, held back to the pace of the clock on the wall. A line counts when it is typed: beside
somebody's speech it interrupts, in silence it takes the floor, on one's turn it is the turn. Lines are kept with their
times, so that a resumed episode has them happen again.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter, deque
from collections.abc import Sequence

import msgspec

from nodes.episodes.agents.seat_caller import AnswerStore, sha_of
from nodes.episodes.dialogue.prompt import turn_text
from nodes.episodes.dialogue.rules import addressed, problem_of
from nodes.episodes.results.show import folded
from nodes.models.chat_format import ModelAnswer
from nodes.msgs.episode import Act, ActKind, Briefing, Observation, Reply, Turn
from runtime import Node, Publisher, QoS, Simulation, Subscription, on, to_s
from runtime.clock import SystemClock
from runtime.supervision.view import terminal_width

END = None
"""Stands for the end of what is typed."""


class Lines:
    """Reads a terminal, a pipe or a file by its descriptor; starts no thread. Closed by whoever opened it."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._waiting: deque[str | None] = deque()
        self._came = asyncio.Event()
        self._rest = b""
        self._is_over = False
        self._loop = asyncio.get_running_loop()
        try:
            self._loop.add_reader(descriptor, self._read)
            self._is_watched = True
        except OSError:  # files and /dev/null are always readable, and no loop watches them
            self._is_watched = False
            while not self._is_over:
                self._read()

    async def wait(self, seconds: float | None) -> bool:
        """Whether a line is there; waits at most that long for one (None: for ever)."""
        if not self._waiting:
            self._came.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._came.wait()
            except TimeoutError:
                return False
        return True

    def take(self) -> str | None:
        """The next line; `END` after the last one, again and again."""
        return self._waiting[0] if self._waiting[0] is END else self._waiting.popleft()

    def close(self) -> None:
        """Stop reading."""
        if self._is_watched:
            self._loop.remove_reader(self._descriptor)
            self._is_watched = False

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, 65_536)
        except OSError:  # the terminal is gone
            data = b""
        *whole, self._rest = (self._rest + data).split(b"\n")
        if not data:
            whole, self._rest = ([self._rest] if self._rest else []), b""
            self._is_over = True
            self.close()
        self._waiting.extend(line.decode(errors="replace") for line in whole)
        if self._is_over:
            self._waiting.append(END)
        if self._waiting:
            self._came.set()


PATIENCE_S = 300.0
"""So long may a person be silent in asynchronous talk before it is stale."""


HOW = "Type what you say; /do ACTION, /sign GESTURE, /to NAME: WORDS, /wait, /leave."

COMMANDS: dict[str, ActKind] = {
    "/do": "action", "/sign": "non-verbal communication", "/to": "speak", "/wait": "none", "/leave": "leave"
}  # fmt: skip

MURMUR_WORDS = 2
"""So few words beside somebody's speech take nothing from it."""


class Typed(msgspec.Struct, frozen=True):
    """What a person did and when, in the episode's own time: enough to have it happen again."""

    act: Act
    at_ns: int


def urgency_of(act: Act) -> float:
    """How much whoever typed this wants the floor: at once, but for a murmur."""
    if act.kind == "none":
        return 0.0
    is_murmur = act.kind == "speak" and len(act.argument.split()) <= MURMUR_WORDS
    return 0.7 if is_murmur else 0.9


def problem_of_line(line: str) -> str:
    """What is wrong with a typed command, in a sentence; "" where nothing is: it is not said aloud by mistake."""
    command = line.strip().partition(" ")[0]
    if not command.startswith("/") or command in COMMANDS:
        return ""
    return f"{command[:40]} is no command; known: {', '.join(COMMANDS)}"


def act_from_line(line: str) -> Act:
    """The act that a person typed."""
    text = line.strip()
    command, _, rest = text.partition(" ")
    if not text or command == "/wait":
        return Act()
    if command == "/to":
        names, _, words = rest.partition(":")
        to = tuple(name.strip() for name in names.split(",") if name.strip())
        return Act(kind="speak", argument=words.strip(), to=to)
    return Act(kind=COMMANDS[command], argument=rest) if command in COMMANDS else Act(kind="speak", argument=text)


class TypedTerminal:
    """Where people read, on standard error so that scripts have standard output, and where they type."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self._prompt = ""

    def show(self, text: str) -> None:
        """Print a line; whoever is in the middle of theirs is asked anew below it."""
        shown = folded(text, terminal_width(sys.stderr))
        print(("\n" if self._prompt else "") + shown, file=sys.stderr, flush=True)
        self._prompt = ""

    def prompt(self, name: str) -> None:
        """Whose line is waited for, if that is not what stands there."""
        if name != self._prompt:
            self._prompt = name
            print(f"{name}> ", end="", file=sys.stderr, flush=True)

    def took(self) -> None:
        """A line was typed: the cursor is on a line of its own."""
        self._prompt = ""


class PersonAtTerminal(Node):
    """A person's seat: prints what the seat perceives as it happens; its questions stay open until there is a line."""

    provenance = "person"

    observation = Subscription(Observation, "episode/seat")
    turn = Subscription(Turn, "episode/turn", qos=QoS(required=False))
    reply = Publisher(Reply, "episode/reply")

    def __init__(self) -> None:
        self.briefing: Briefing | None = None
        self.question: Observation | None = None
        self.held: list[int] = []
        self.terminal: TypedTerminal | None = None
        self._shown = ""  # of the speech that goes on

    @on(observation)
    def asked(self, observation: Observation) -> None:
        """Something is asked, or somebody speaks who may be interrupted."""
        if observation.briefing is not None and self.briefing is None:
            self.briefing = observation.briefing
            self._show(f"\nYou are {self.briefing.name}.\n{self.briefing.background}\n\n{HOW}\n")
        if observation.problem:
            self._show(f"That does not work: {observation.problem}")
        if observation.speaking and observation.so_far.startswith(self._shown):
            lead = "" if self._shown else f"{observation.speaking}: "
            self._show(f"{lead}{observation.so_far[len(self._shown) :].strip()} ...")
            self._shown = observation.so_far
        if observation.asks != "nothing":
            self.question = observation
        if observation.asks == "bid":
            self.reply.publish(self.reply_to(observation, Act(), is_open=True))

    @property
    def told(self) -> Briefing:
        """The briefing, which there is from the first question on."""
        assert self.briefing is not None
        return self.briefing

    def reply_to(
        self, asked: Observation, act: Act, *, held: tuple[int, ...] = (), urgency: float = 0.5, is_open: bool = False
    ) -> Reply:
        """An answer, or that the question stays open."""
        seat = self.told.seat
        return Reply(
            episode=asked.episode, seat=seat, ask=asked.ask, act=act, held=held, urgency=urgency, is_open=is_open
        )

    @on(turn)
    def perceive(self, turn: Turn) -> None:
        """An act as it happened; of the own ones only those that were cut short."""
        if self.briefing is None or not turn.is_for(self.briefing.name):
            return
        self.held.append(turn.index)
        is_own = turn.speaker == self.briefing.name
        if turn.kind == "none" or (is_own and turn.timing != "interrupted"):
            return
        shown, self._shown = self._shown, ""
        if shown and turn.argument.startswith(shown):
            note = f" [{turn.note}]" if turn.note else ""
            self._show(f"    ... {turn.argument[len(shown) :].strip() or '.'}{note}")
        else:
            self._show(turn_text(turn))

    def _show(self, text: str) -> None:
        if self.terminal is not None:
            self.terminal.show(text)


class ByHand:
    """The pace of an episode with people in it (`Simulation.run_async`), and the way of their lines into it."""

    def __init__(
        self, simulation: Simulation, people: Sequence[PersonAtTerminal], terminal: TypedTerminal, store: AnswerStore
    ) -> None:
        self._simulation = simulation
        self._people = people
        self._terminal = terminal
        self._store = store
        self._clock = SystemClock()
        self._count = Counter[int]()
        for person in people:
            person.terminal = terminal

    async def until(self, next_ns: int | None) -> bool:
        """Wait until the next event may happen, or somebody types; False where neither will ever be."""
        scheduler = self._simulation.scheduler
        person = next((one for one in self._people if one.question is not None), None)
        now_ns = scheduler.now_ns
        if person is None:
            if next_ns is None:
                return False
            await self._clock.sleep(to_s(next_ns - now_ns))
            scheduler.now_ns = next_ns
            return True
        if (typed := self._stored(person)) is not None:
            if next_ns is None or typed.at_ns < next_ns:
                self._put_in(person, typed)
            else:
                scheduler.now_ns = next_ns
            return True
        self._terminal.prompt(person.told.name)
        began_ns = self._clock.now_ns()
        if not await self._terminal.lines.wait(None if next_ns is None else to_s(next_ns - now_ns)):
            scheduler.now_ns = now_ns if next_ns is None else next_ns
            return True
        line = self._terminal.lines.take()
        self._terminal.took()
        passed_ns = self._clock.now_ns() - began_ns
        at_ns = now_ns + passed_ns if next_ns is None else min(now_ns + passed_ns, next_ns - 1)
        scheduler.now_ns = max(now_ns, at_ns)
        self._typed(person, line)
        return True

    def _typed(self, person: PersonAtTerminal, line: str | None) -> None:
        """Keep what was typed before anything follows from it, or say what is wrong with it."""
        question, told = person.question, person.told
        assert question is not None
        problem, act = problem_of_line(line or ""), Act(kind="leave")
        if line is not END and not problem:
            act = addressed(act_from_line(line), told.participants)
            if act.kind == "none" and question.asks == "bid":
                return  # silence is what an open question is anyway
            problem = problem_of(act, told.name, (told.name, *question.recipients), told.participants)
        if problem:
            self._terminal.show(f"That does not work: {problem}")
            return
        typed = Typed(act, self._simulation.scheduler.now_ns)
        answer = ModelAnswer(msgspec.json.encode(typed).decode())
        number, sha = self._count[told.seat] + 1, sha_of(told.background)
        self._store.keep_answer(told.seat, number, "person", "human", told.background, sha, answer)
        self._put_in(person, typed)

    def _stored(self, person: PersonAtTerminal) -> Typed | None:
        """What this person did next before the run was stopped."""
        seat = person.told.seat
        found = self._store.find_answer(seat, self._count[seat] + 1, sha_of(person.told.background))
        return None if found is None else msgspec.json.decode(found.text, type=Typed)

    def _put_in(self, person: PersonAtTerminal, typed: Typed) -> None:
        question, person.question = person.question, None
        assert question is not None
        self._count[person.told.seat] += 1
        self._simulation.scheduler.now_ns = max(self._simulation.scheduler.now_ns, typed.at_ns)
        reply = person.reply_to(question, typed.act, held=tuple(person.held), urgency=urgency_of(typed.act))
        self._simulation.publish("episode/reply", reply, source=person.name)
