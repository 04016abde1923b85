"""A person at the terminal: nobody waits for their typing, and what they type counts when it is typed."""

from __future__ import annotations

import asyncio
import os
import random
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from nodes.episodes.agents.agent import ScriptedBrain
from nodes.episodes.command import main
from nodes.episodes.dialogue.observation import AgentChoice, AgentObservation, Brain
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.rules import EpisodeRules
from nodes.episodes.dialogue.turn_based import TurnBasedDialogue
from nodes.episodes.results.store import Store
from nodes.episodes.runner.by_hand import END, Lines, TypedTerminal, act_from_line, urgency_of
from nodes.episodes.runner.runner import conduct_episode
from nodes.msgs.episode import Act, Turn
from runtime import Clock
from tests.support.episode_cast import plan
from tests.support.running import PATIENCE_S
from tests.support.sentences import sentence

FAST = 60.0  # words per second


class Typist(TypedTerminal):
    """A pseudo-terminal at which somebody types what `answer` says to what is shown."""

    def __init__(self, answer: Callable[[str], str | None]) -> None:
        self.master, self.slave = os.openpty()
        super().__init__(Lines(self.slave))
        self.answer = answer
        self.shown: list[str] = []

    def show(self, text: str) -> None:
        self.shown.append(text)
        line = self.answer(text)
        if line is not None:
            os.write(self.master, line.encode() + b"\n")

    def prompt(self, name: str) -> None:
        self.show(f"{name}>")

    def close(self) -> None:
        self.lines.close()
        os.close(self.slave)
        os.close(self.master)


def talk(task: str, *, turns: int) -> EpisodePlan:
    return plan(task, rules=EpisodeRules(order="asynchronous", max_turns=turns, words_per_s=FAST))


def says(*lines: str) -> ScriptedBrain:
    return ScriptedBrain([Act(kind="speak", argument=line) for line in lines])


def played(
    episode: EpisodePlan,
    brains: Sequence[Brain | None],
    answer: Callable[[str], str | None],
    store: Store | None = None,
    happened: list[Turn] | None = None,
) -> TurnBasedDialogue:
    async def story() -> TurnBasedDialogue:
        terminal = Typist(answer)
        try:
            answers = None if store is None else store.answers(episode.id)
            async with asyncio.timeout(PATIENCE_S):
                return await conduct_episode(
                    episode, brains, happened if happened is not None else [], terminal, answers
                )
        finally:
            terminal.close()

    return asyncio.run(story())


def test_the_others_talk_on_while_a_person_types_nothing() -> None:
    brains = [says(*["One two three."] * 40), says(*["Four five six."] * 40), None]
    conduct = played(talk("trio", turns=4), brains, lambda _: None)
    assert conduct.outcome is not None
    assert conduct.outcome.reason == "turn limit: 4 turns"
    assert {turn.speaker for turn in conduct.turns} == {"Ana Ruiz", "Ben Okafor"}
    times = [turn.at_s for turn in conduct.turns]
    assert times == sorted(times)
    assert times[-1] > times[0]


def test_a_line_typed_beside_somebodys_speech_interrupts_it() -> None:
    monologue = " ".join(f"This is sentence number {number} of a long one." for number in range(40))
    typed = iter(["Wait, please stop there"])
    conduct = played(
        talk("cello", turns=2), [says(monologue), None], lambda text: next(typed, None) if "..." in text else None
    )
    first, second = conduct.turns[:2]
    assert (first.speaker, first.note) == ("Ana Ruiz", "interrupted by Ben Okafor")
    assert len(first.argument) < len(monologue)
    assert (second.argument, second.note) == ("Wait, please stop there", "interrupts Ana Ruiz")


def test_what_is_typed_while_a_model_thinks_is_said_after_its_answer() -> None:
    @dataclass
    class Thinker:
        """Answers once something is typed, as a model would that takes long."""

        terminal: TypedTerminal

        async def choose(self, sight: AgentObservation, clock: Clock, chance: random.Random) -> AgentChoice:
            if sight.observation.ask == 1:
                await clock.external(self.terminal.lines.wait(None), 0.0)
            return AgentChoice(act=Act(kind="speak", argument="This is what I have thought of."), urgency=0.6)

    async def story() -> TurnBasedDialogue:
        terminal = Typist(lambda text: None)
        os.write(terminal.master, b"I was here first\n")
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await conduct_episode(talk("cello", turns=2), [Thinker(terminal), None], [], terminal)
        finally:
            terminal.close()

    turns = asyncio.run(story()).turns
    assert [turn.argument for turn in turns] == ["This is what I have thought of.", "I was here first"]


def test_a_murmur_overlaps_and_takes_nothing() -> None:
    assert urgency_of(act_from_line("mhm")) < 0.8 < urgency_of(act_from_line("No, not for that price"))
    typed = iter(["mhm"])
    story = " ".join(["First this."] * 40)
    conduct = played(
        talk("cello", turns=1), [says(story), None], lambda text: next(typed, None) if "..." in text else None
    )
    assert [(turn.argument, turn.note) for turn in conduct.turns] == [("mhm", "overlaps Ana Ruiz"), (story, "")]


def test_a_recipient_who_is_not_there_is_refused_to_the_one_who_typed() -> None:
    shown: list[str] = []
    typed = iter(["/to Nobody: psst", "/shrug", "/leave"])

    def answer(text: str) -> str | None:
        shown.append(text)
        return next(typed, None) if text.endswith(">") or "does not work" in text else None

    conduct = played(plan("cello"), [None, says("Hello.")], answer)
    assert any("there is no 'Nobody'" in text for text in shown)
    assert any(
        sentence("episodes.no_command", command="/shrug", known="/do, /sign, /to, /wait, /leave") in text
        for text in shown
    )
    assert [turn.kind for turn in conduct.turns] == ["leave"]


def test_killed_and_resumed_what_was_typed_happens_again_at_its_time(tmp_path: Path) -> None:
    episode = talk("cello", turns=6)
    lines = ["How much is it today?", "That is more than I have", "Good bye then"]

    class Killed(BaseException):
        pass

    def typing(left: list[str], *, dies: bool) -> Callable[[str], str | None]:
        def answer(text: str) -> str | None:
            if not text.startswith("Turn"):
                return None
            if dies and not left:
                raise Killed
            return left.pop(0) if left else "/leave"

        return answer

    def ana() -> Brain:
        return says("I sell it.", "It is old.", "It is good.", "Really.", "Yes.", "So it is.")

    before: list[Turn] = []
    with Store.create(tmp_path / "run.sqlite", {}) as store:
        store.add([episode])
        with pytest.raises(Killed):
            played(episode, [ana(), None], typing(lines[:2], dies=True), store, before)
        kept = len(store.calls(episode.id))
        assert kept >= 1
        again = played(episode, [ana(), None], typing(lines[2:], dies=False), store)
        typed_before = [turn for turn in before if turn.speaker == "Ben Okafor"]
        typed_again = [turn for turn in again.turns if turn.speaker == "Ben Okafor"]
        assert typed_before
        assert typed_again[: len(typed_before)] == typed_before
        assert len(store.calls(episode.id)) > kept
        once_more = played(episode, [ana(), None], lambda _: None, store)
        assert (once_more.turns, once_more.outcome) == (again.turns, again.outcome)


def test_a_file_and_the_end_of_input_end_a_part(tmp_path: Path) -> None:
    path = tmp_path / "typed.txt"
    path.write_text("Hello\nand bye", encoding="utf-8")

    async def story() -> list[str | None]:
        with path.open("rb") as file:
            lines = Lines(file.fileno())
            found = []
            for _ in range(4):
                assert await lines.wait(1.0)
                found.append(lines.take())
            lines.close()
        return found

    assert asyncio.run(story()) == ["Hello", "and bye", END, END]


def test_two_people_cannot_talk_at_once_at_one_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "run.sqlite")
    asked = ["run", "--task", "cello-with-a-crack", "--agents", "human", "--order", "asynchronous", "--out", out]
    assert main(asked) == 2
    assert sentence("episodes.type_over_each_other") in capsys.readouterr().err


@pytest.mark.processes
def test_an_episode_is_played_at_a_terminal(tmp_path: Path) -> None:
    out = tmp_path / "run.sqlite"
    master, slave = os.openpty()
    command = [sys.executable, "-m", "runtime", "episodes", "run", "--task", "cello-with-a-crack"]
    command += ["--agents", "rules,human", "--turns", "9", "--out", str(out)]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, close_fds=True)
    os.close(slave)
    lines = [b"What does it cost?\n", b"/sign shakes her head\n", b"/leave I have to go\n"]
    seen, deadline_s = b"", time.monotonic() + 4 * PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline_s:
        if select.select([master], [], [], 0.1)[0]:
            try:
                seen += os.read(master, 65_536)
            except OSError:  # the other end is closed
                break
        if lines and seen.endswith(b"Petrov> "):
            os.write(master, lines.pop(0))
            seen += b"\n"
    assert process.wait(PATIENCE_S) == 0, seen.decode()
    os.close(master)
    with Store.read(out) as store:
        row = store.episodes()[0]
        mine = [(turn.kind, turn.argument) for turn in store.turns(row.id) if turn.speaker == "Lucia Petrov"]
    assert mine == [
        ("speak", "What does it cost?"),
        ("non-verbal communication", "shakes her head"),
        ("leave", "I have to go"),
    ]
    assert b"Abena Boateng said" in seen
    assert row.reason == "left: Lucia Petrov"


def test_a_person_is_not_offered_to_a_launch_file() -> None:
    from nodes.episodes.agents.agent import Agent

    (problem,) = Agent(brain="human").problems()
    assert "bridges.web.episode.node:PersonAtPage" in problem
