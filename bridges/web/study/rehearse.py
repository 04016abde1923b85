"""`rehearse`: scripted people play a whole study in virtual time, so that its files, tables and lengths are seen before
anybody takes part. No robot and no page: what is played is the protocol, through the same sessions and files.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from pathlib import Path

from bridges.web.questionnaire.questionnaire import Item, Value
from bridges.web.study.protocol import Protocol
from bridges.web.study.session import Event, SessionProgress
from bridges.web.study.session_store import SessionStore
from bridges.web.study.steps import SessionStep

BEGAN_S = 1_700_000_000.0
"""When the first of them begins; Unix time, so that two rehearsals write the same."""
BETWEEN_S = 1800.0
READS_S, ANSWERS_S, SETS_UP_S = 60.0, 8.0, 30.0
SHORTEST_TRIAL_S, LONGEST_TRIAL_S = 40.0, 300.0
SENTENCES = ("Please begin.", "No, not that one.", "Yes, that is right.", "Thank you!")
ANSWERS = ("All right.", "I am on my way.", "I am done.")
WORDS = "These words are made up."


class Rehearsal:
    """People of a seed. `withdraws`: numbers of who stops in a trial; `crashes`: in whose trial the console dies."""

    def __init__(
        self, protocol: Protocol, folder: Path, seed: int, withdraws: Collection[int], crashes: Collection[int]
    ) -> None:
        self._protocol, self._folder = protocol, folder
        self._chance = random.Random(f"{seed}/{protocol.sha}")
        self._withdraws, self._crashes = withdraws, crashes
        self._now_s = BEGAN_S

    def play(self, participants: int) -> float:
        """Play that many sessions into the folder, which is a new one; returns how long one took in the mean, s."""
        took_s = 0.0
        for number in range(1, participants + 1):
            self._now_s = began_s = BEGAN_S + (number - 1) * BETWEEN_S * 4
            self._session(number)
            took_s += self._now_s - began_s
        return took_s / participants

    def _open(self) -> SessionStore:
        return SessionStore(self._protocol, self._folder, lambda progress, event: None)

    def _session(self, number: int) -> None:
        store = self._open()
        try:
            store.begin(number, self._now_s, "experimenter")
            trials = 0
            while (progress := _of(store)) and not progress.is_over:
                step = progress.step
                if step.kind == "consent":
                    self._after(READS_S)
                    ticked = len(self._protocol.consent.statements)
                    store.do(lambda now, ticked=ticked: now.consent(self._now_s, ticked))  # type: ignore[misc]  # mypy does not see the default
                elif step.kind == "trial":
                    trials += 1
                    if number in self._crashes and trials == 1:
                        store = self._crash(store)
                    self._trial(store, step, is_last=number in self._withdraws)
                else:
                    self._questionnaire(store, step)
        finally:
            store.close()

    def _crash(self, store: SessionStore) -> SessionStore:
        """The console dies in a trial; another one goes on with the session."""
        self._after(SETS_UP_S)
        store.do(lambda now: now.start(self._now_s, "experimenter"))
        self._after(self._chance.uniform(5.0, 20.0))
        store.close()
        self._after(SETS_UP_S)
        again = self._open()
        again.go_on(self._now_s)
        return again

    def _trial(self, store: SessionStore, step: SessionStep, *, is_last: bool) -> None:
        limit_s = step.task.limit_s if step.task is not None and step.task.limit_s else LONGEST_TRIAL_S
        self._after(SETS_UP_S)
        store.do(lambda now: now.start(self._now_s, "experimenter"))
        ends_s = self._now_s + min(limit_s, self._chance.uniform(SHORTEST_TRIAL_S, 1.2 * limit_s))
        began_s = self._now_s
        while self._now_s + 12.0 < ends_s:
            self._after(self._chance.uniform(4.0, 10.0))
            self._say(store, "collaborator", self._chance.choice(SENTENCES), "heard")
            waited_s = round(self._chance.uniform(0.5, 2.0), 3)
            self._after(waited_s)
            if step.condition is not None and any("human_" in who for who in step.condition.seats.values()):
                acted = Event("wizard", self._now_s, by="Wizard", how="say", value=waited_s)
                store.do(lambda now, acted=acted: acted)  # type: ignore[misc]  # mypy does not see the default
            self._say(store, "robot", self._chance.choice(ANSWERS), "said")
            if is_last and self._now_s - began_s > 20.0:
                store.do(lambda now: now.finish(self._now_s, now.code, "aborted"))
                store.do(lambda now: now.withdraw(self._now_s, now.code))
                return
        if self._protocol.mark:
            mark = self._chance.choice(self._protocol.mark)
            store.do(lambda now: now.mark(self._now_s, "experimenter", mark.label, "rehearsed"))
        self._now_s = ends_s
        is_over = ends_s - began_s >= limit_s
        store.do(lambda now: now.finish(self._now_s, "clock" if is_over else "experimenter",
                                        "time" if is_over else "completed"))  # fmt: skip

    def _say(self, store: SessionStore, speaker: str, text: str, topic: str) -> None:
        spoken = Event("said", self._now_s, by=speaker, text=text, how=topic)
        store.do(lambda now: spoken)

    def _questionnaire(self, store: SessionStore, step: SessionStep) -> None:
        given: dict[str, Value] = {}
        for item in step.questionnaire.item if step.questionnaire is not None else ():
            if step.questionnaire is not None and not step.questionnaire.is_shown(item, given):
                continue
            self._after(ANSWERS_S)
            value = given[item.id] = self._answer(item)
            store.do(lambda now, item=item, value=value: now.answer(self._now_s, step.ident, item.id, value))  # type: ignore[misc]  # mypy does not see the defaults
        self._after(ANSWERS_S)
        store.do(lambda now: now.submit(self._now_s, step.ident))

    def _answer(self, item: Item) -> Value:
        if item.kind == "text":
            return WORDS
        if item.kind == "choice":
            return self._chance.choice(item.choices)
        return self._chance.randrange(item.low, item.high + 1, item.step)

    def _after(self, seconds: float) -> None:
        self._now_s = round(self._now_s + seconds, 3)


def _of(store: SessionStore) -> SessionProgress | None:
    return store.progress
