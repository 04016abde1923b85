"""One session of a study as a state machine without I/O: what people ask for becomes an event or a refusal.

A session is its list of events, so that what was written to the file before a kill is all there is to know. `decide`
says which event a wish becomes; `apply` is how any event changes the session, then and after a restart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, cast

import msgspec

from bridges.web.http.wire import Seat
from bridges.web.questionnaire.questionnaire import Value
from bridges.web.study.condition import Allowed
from bridges.web.study.protocol import Protocol
from bridges.web.study.steps import SessionStep, steps_of

What = Literal[
    "begin", "consent", "answer", "submit", "trial", "condition", "skip", "mark", "note", "said", "withdraw", "wizard",
    "pause", "robot", "recorder",
]  # fmt: skip
Phase = Literal["ready", "running"]
How = Literal["completed", "aborted", "time", "interrupted"]
Recorder = Literal["", "whole", "parts", "none"]
LINES_KEPT = 400
CONDITION_WORDS = {
    "set": "{seat} to {holder}",
    "undone": "{seat} is {holder}'s again",
    "lost": "{seat} is {holder}'s, not {wanted}'s",
}


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a session's file. `at_s` is Unix time, for people and for other records."""

    what: What
    at_s: float
    by: str = ""
    step: str = ""
    item: str = ""
    value: Value = ""
    text: str = ""
    how: str = ""
    number: int = 0  # of the participant, or of the trial
    attempt: int = 0
    protocol: str = ""


RefusalCode = Literal[
    "tick", "missing", "elsewhere", "unfit", "not_begun", "not_kept", "not_heard", "not_heard_stops", "too_fast",
    "not_yours",
]  # fmt: skip
"""Why a participant is refused something: their page says it in their language."""


class SessionRefused(Exception):
    """What was asked for cannot be done now: the text tells the experimenter why, the code a participant's page."""

    def __init__(self, text: str, code: RefusalCode = "elsewhere") -> None:
        super().__init__(text)
        self.code: RefusalCode = code


@dataclass(slots=True)
class Span:
    """How long something was so in a trial, in pieces; `since_s` 0: it is not so."""

    since_s: float = 0.0
    before_s: float = 0.0

    def turn(self, at_s: float, *, is_on: bool) -> None:
        """It begins or ends at that time; a second beginning or end is none."""
        if is_on and not self.since_s:
            self.since_s = at_s
        elif not is_on and self.since_s:
            self.before_s, self.since_s = self.by(at_s), 0.0

    def by(self, at_s: float) -> float:
        """How long it has been so by that time."""
        return self.before_s + (max(0.0, at_s - self.since_s) if self.since_s else 0.0)  # clocks may be set back


SPANS = {"pause": "paused_s", "robot": "robot_stopped_s", "recorder": "unrecorded_s"}
BEGINS = ("on", "stopped", "lost")


def _spans() -> dict[str, Span]:
    return {name: Span() for name in SPANS.values()}


@dataclass(slots=True)
class SessionProgress:
    """A session's state."""

    protocol: Protocol
    number: int
    steps: tuple[SessionStep, ...]
    place: int = 0
    phase: Phase = "ready"
    attempt: int = 0  # of the trial that runs or ran last
    started_at_s: float = 0.0  # of that trial
    started_count: int = 0  # events before it: clocks may be set back between two runs
    spans: dict[str, Span] = field(default_factory=_spans)  # of that trial
    has_withdrawn: bool = False
    answers: dict[str, dict[str, Value]] = field(default_factory=dict)  # step -> item -> value
    lines: list[dict[str, Any]] = field(default_factory=list)  # dialogue, marks and notes, newest last
    changed: dict[Seat, tuple[str, str]] = field(default_factory=dict)  # seat -> by condition, before; not undone yet
    count: int = 0  # events so far

    @classmethod
    def of(cls, protocol: Protocol, begin: Event) -> SessionProgress:
        """A session that begins."""
        progress = cls(protocol, begin.number, steps_of(protocol, begin.number))
        progress.count = 1
        return progress

    @property
    def code(self) -> str:
        """What stands for the participant."""
        return self.protocol.code_of(self.number)

    @property
    def step(self) -> SessionStep:
        """Where the session is."""
        return self.steps[self.place]

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to come."""
        return self.has_withdrawn or self.step.kind == "thanks"

    @property
    def allowed(self) -> Allowed:
        """What the participant's page shows while the trial of this step runs."""
        condition = self.step.condition
        own = condition.participant if condition is not None else None
        return own if own is not None else self.protocol.participant

    @property
    def seats_wanted(self) -> dict[Seat, str]:
        """Who is to hold which seat while the trial of this step runs."""
        return self.step.condition.seats if self.step.condition is not None else {}

    def is_due(self, now_s: float) -> bool:
        """Whether the trial's time is over."""
        limit_s = self.step.task.limit_s if self.step.task is not None else 0.0
        return self.phase == "running" and limit_s > 0 and self.elapsed_s(now_s) >= limit_s

    def elapsed_s(self, now_s: float) -> float:
        """How long the trial has run, without its pauses."""
        return now_s - self.started_at_s - self.spans["paused_s"].by(now_s)

    @property
    def is_paused(self) -> bool:
        """Whether the trial's time stands still."""
        return bool(self.spans["paused_s"].since_s)

    def apply(self, event: Event) -> None:
        """Take in an event, new or read."""
        self.count += 1
        match event.what:
            case "consent" | "submit" | "skip":
                self.phase, self.attempt = "ready", 0
                self._go_on()
            case "answer":
                self.answers.setdefault(event.step, {})[event.item] = event.value
            case "trial" if event.how == "started":
                self.phase, self.attempt, self.started_at_s = "running", event.attempt, event.at_s
                self.started_count = self.count
                self.spans = _spans()
            case "pause" | "robot" | "recorder":
                before_s = event.value if isinstance(event.value, float) else 0.0
                self.spans[SPANS[event.what]].turn(event.at_s - before_s, is_on=event.how in BEGINS)
            case "trial":
                self.phase = "ready"
                if event.how in ("completed", "time"):
                    self.attempt = 0
                    self._go_on()
            case "withdraw":
                self.phase, self.has_withdrawn = "ready", True
            case "condition" if event.how == "undone":
                self.changed.pop(cast(Seat, event.item), None)
            case "condition" if event.how == "set":
                self.changed[cast(Seat, event.item)] = str(event.value), event.text
        match event.what:
            case "mark" | "note" | "said" | "condition" | "robot" | "recorder":
                self.lines = [*self.lines[-LINES_KEPT:], _line(event, self.count)]

    def _go_on(self) -> None:
        """To the next step that the answers given so far ask for; the last one always comes."""
        given = {
            f"{step.questionnaire.id}/{item}": value
            for step in self.steps
            if step.questionnaire is not None
            for item, value in step.questionnaire.asked(self.answers.get(step.ident, {})).items()
        }
        self.place += 1
        while not self.steps[self.place].is_due(given):
            self.place += 1

    # --- what a wish becomes

    def consent(self, now_s: float, ticked: int) -> Event:
        """The participant agrees: to every statement, or not at all."""
        self._expect("consent")
        if ticked != len(self.protocol.consent.statements):
            raise SessionRefused("not every statement is ticked", "tick")
        return Event("consent", now_s, by=self.code, step="consent", value=ticked)

    def answer(self, now_s: float, step: str, item: str, value: Value) -> Event:
        """One answer, kept at once; a later one takes its place."""
        asked = self._expect("questionnaire", step).questionnaire
        found = next((one for one in asked.item if one.id == item), None) if asked is not None else None
        if found is None:
            raise SessionRefused(f"there is no item {item!r} on this page", "unfit")
        if problem := found.problem_of(value):
            raise SessionRefused(problem, "unfit")
        return Event("answer", now_s, by=self.code, step=step, item=item, value=value)

    def has(self, step: str, item: str, value: Value) -> bool:
        """Whether that is the answer which the step that the session is at has already."""
        return self.step.ident == step and self.answers.get(step, {}).get(item) == value

    def submit(self, now_s: float, step: str, width_px: int = 0) -> Event:
        """The questionnaire is filled in, on a page of that width."""
        asked = self._expect("questionnaire", step).questionnaire
        missing = asked.missing(self.answers.get(step, {})) if asked is not None else []
        if missing:
            needs = "need" if len(missing) > 1 else "needs"
            raise SessionRefused(f"{len(missing)} of the questions still {needs} an answer", "missing")
        return Event("submit", now_s, by=self.code, step=step, value=width_px or "")

    def start(self, now_s: float, by: str) -> Event:
        """The experimenter starts the trial."""
        step = self._expect("trial")
        if self.phase == "running":
            raise SessionRefused("the trial is running")
        return Event("trial", now_s, by=by, step=step.ident, how="started", number=step.trial, attempt=self.attempt + 1)

    def finish(self, now_s: float, by: str, how: How, recorder: Recorder = "") -> Event:
        """The trial ends; one that was aborted or interrupted can be started again. `recorder`: what there is of it."""
        step = self._expect("trial")
        if self.phase != "running":
            raise SessionRefused("no trial is running")
        number, attempt = step.trial, self.attempt
        return Event("trial", now_s, by=by, step=step.ident, how=how, number=number, attempt=attempt, text=recorder)

    def pause(self, now_s: float, by: str, *, is_on: bool) -> Event:
        """The trial's time stands still, or goes on."""
        step = self._expect("trial")
        if self.phase != "running" or is_on == self.is_paused:
            raise SessionRefused("no trial is running" if self.phase != "running" else "that is so already")
        return Event("pause", now_s, by=by, step=step.ident, how="on" if is_on else "off")

    def robot(self, now_s: float, text: str, *, is_stopped: bool, before_s: float = 0.0) -> Event:
        """The guard has stopped the robot in the trial, so many seconds before now, or lets it move again."""
        how = "stopped" if is_stopped else "free"
        return Event("robot", now_s, by="guard", step=self.step.ident, how=how, text=text, value=before_s or "")

    def recorded(self, now_s: float, text: str, *, missing_s: float | None) -> Event:
        """The trial is recorded no more, and since so many seconds; None: it is again."""
        how = "recording" if missing_s is None else "lost"
        return Event("recorder", now_s, by="recorder", step=self.step.ident, how=how, text=text, value=missing_s or "")

    def skip(self, now_s: float, by: str) -> Event:
        """The experimenter goes on without what this step asks for. Consent cannot be skipped."""
        if self.is_over or self.step.kind == "consent":
            raise SessionRefused("there is nothing to skip here" if self.is_over else "consent cannot be skipped")
        if self.phase == "running":
            raise SessionRefused("end or abort the trial first")
        return Event("skip", now_s, by=by, step=self.step.ident)

    def withdraw(self, now_s: float, by: str) -> Event:
        """The participant stops taking part."""
        if self.is_over:
            raise SessionRefused("the session is over")
        return Event("withdraw", now_s, by=by, step=self.step.ident)

    def mark(self, now_s: float, by: str, label: str, note: str) -> Event:
        """Something worth finding again."""
        return Event("mark", now_s, by=by, step=self.step.ident, item=label, text=note)

    def note(self, now_s: float, by: str, text: str) -> Event:
        """The experimenter's own words."""
        if not text.strip():
            raise SessionRefused("the note is empty")
        return Event("note", now_s, by=by, step=self.step.ident, text=text.strip())

    def _expect(self, kind: str, ident: str = "") -> SessionStep:
        step = self.step
        if self.has_withdrawn or step.kind != kind or (ident and step.ident != ident):
            raise SessionRefused(f"the session is at {self.step.title!r} now; nothing was changed")
        return step


def _line(event: Event, count: int) -> dict[str, Any]:
    text = f"{event.item}: {event.text}" if event.what == "mark" and event.text else event.text or event.item
    if event.what == "condition":
        text = words_of(event)
    elif event.what in ("robot", "recorder"):
        text = f"{event.how}: {event.text}" if event.text else event.how
    return {"i": count, "kind": event.what, "how": event.how, "who": event.by, "text": text, "at_s": event.at_s}


def words_of(event: Event) -> str:
    """What became of a seat by a trial's condition."""
    was = f", instead of {event.text}" if event.how == "set" and event.text not in ("", event.value) else ""
    return CONDITION_WORDS[event.how].format(seat=event.item, holder=event.value or "nobody", wanted=event.text) + was


def told(progress: SessionProgress, events: list[Event]) -> SessionProgress:
    """The session after these events."""
    for event in events:
        progress.apply(event)
    return progress
