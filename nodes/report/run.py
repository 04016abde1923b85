"""`Run`: what a recording says about a run, read in one pass; summary and pictures are made of nothing else."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic

from nodes.mcap.file import BagReader
from nodes.mcap.parts import begin_ns_of, noted, parts_of, zero_ns_of
from nodes.mcap.record import BagMessage
from nodes.msgs import (
    Action,
    Feedback,
    GuardState,
    Interrupt,
    InterruptRecord,
    Mark,
    RobotState,
    SceneDescription,
    Subtask,
    Trial,
    Utterance,
    WizardResponse,
)
from nodes.sim.messages import Interruption, Truth
from runtime.clock import to_s
from runtime.coordination.health import Health
from runtime.coordination.lease import LEASE_TOPIC, Lease, SeatHolders
from runtime.errors import RecordingError
from runtime.message import M, Stamped

TRIAL_ENDS = {
    "completed": "completed",
    "aborted": "broken off",
    "time": "ended with its time",
    "interrupted": "interrupted",
}
IMAGE_SCHEMA = "foxglove.CompressedImage"


@dataclass
class TopicMessages(Generic[M]):
    """All messages of one topic, in order of publication."""

    message: type[M]
    messages: list[Stamped[M]] = field(default_factory=list)

    def first_after(self, ns: int, wanted: Callable[[M], bool] = lambda _: True) -> Stamped[M] | None:
        """The first message published at or after that stamp that is wanted."""
        found = (one for one in self.messages if one.envelope.published_ns >= ns and wanted(one.message))
        return next(found, None)

    def next_after(self, known: Stamped[M], wanted: Callable[[M], bool]) -> Stamped[M] | None:
        """The first message after a known one that is wanted; several may share a stamp."""
        later = iter(self.messages)
        any(one is known for one in later)  # leaves the iterator behind it
        return next((one for one in later if wanted(one.message)), None)

    def last_before(self, ns: int) -> Stamped[M] | None:
        """The newest message published before that stamp."""
        found = None
        for one in self.messages:
            if one.envelope.published_ns >= ns:
                break
            found = one
        return found


@dataclass
class Run:
    """One recorded run. Stamps are monotonic ns; `start_ns` is run time zero, `begin_ns` where a piece of it begins."""

    path: Path
    about: dict[str, str] = field(default_factory=dict)  # what was known at the start
    end: dict[str, str] = field(default_factory=dict)  # what was known at the end; empty where it was cut off
    is_complete: bool = False
    damage: list[str] = field(default_factory=list)
    start_ns: int = 0
    begin_ns: int = 0
    end_ns: int = 0
    heard: TopicMessages[Utterance] = field(default_factory=lambda: TopicMessages(Utterance))
    said: TopicMessages[Utterance] = field(default_factory=lambda: TopicMessages(Utterance))
    subtasks: TopicMessages[Subtask] = field(default_factory=lambda: TopicMessages(Subtask))
    actions: TopicMessages[Action] = field(default_factory=lambda: TopicMessages(Action))
    feedback: TopicMessages[Feedback] = field(default_factory=lambda: TopicMessages(Feedback))
    interrupts: TopicMessages[Interrupt] = field(default_factory=lambda: TopicMessages(Interrupt))
    records: TopicMessages[InterruptRecord] = field(default_factory=lambda: TopicMessages(InterruptRecord))
    guard: TopicMessages[GuardState] = field(default_factory=lambda: TopicMessages(GuardState))
    descriptions: TopicMessages[SceneDescription] = field(default_factory=lambda: TopicMessages(SceneDescription))
    robot: TopicMessages[RobotState] = field(default_factory=lambda: TopicMessages(RobotState))
    health: TopicMessages[Health] = field(default_factory=lambda: TopicMessages(Health))
    leases: TopicMessages[Lease] = field(default_factory=lambda: TopicMessages(Lease))
    truths: TopicMessages[Truth] = field(default_factory=lambda: TopicMessages(Truth))
    marks: TopicMessages[Mark] = field(default_factory=lambda: TopicMessages(Mark))
    responses: TopicMessages[WizardResponse] = field(default_factory=lambda: TopicMessages(WizardResponse))
    interruptions: TopicMessages[Interruption] = field(default_factory=lambda: TopicMessages(Interruption))
    trial: Trial | None = None  # of a study, the last one that ended
    sent: list[tuple[int, int | None]] = field(default_factory=list)  # robot/command: published_ns, image_ns
    stamps: dict[str, list[int]] = field(default_factory=dict)  # published_ns by topic, images included
    image_topics: list[str] = field(default_factory=list)

    @property
    def truth(self) -> Truth | None:
        """Where things were in the end."""
        return self.truths.messages[-1].message if self.truths.messages else None

    @property
    def duration_s(self) -> float:
        return to_s(max(0, self.end_ns - self.begin_ns))

    @property
    def begin_s(self) -> float:
        return self.at_s(self.begin_ns)

    @property
    def end_s(self) -> float:
        return self.at_s(max(self.begin_ns, self.end_ns))

    def at_s(self, ns: int) -> float:
        """Run time of a monotonic stamp."""
        return to_s(ns - self.start_ns)

    @property
    def outcome(self) -> tuple[bool | None, str]:
        """Whether the run succeeded, and why; None and "" where the recording does not say."""
        outcome = self.noted("outcome")
        if not isinstance(outcome, dict):
            return None, ""
        is_success = outcome.get("ok")
        return (is_success if isinstance(is_success, bool) else None), str(outcome.get("reason", ""))

    def noted(self, key: str) -> Any:
        """A value noted at the end or, failing that, at the start; JSON is decoded. None where there is none."""
        return noted(key, self.end, self.about)


_TRACKS = {
    "interrupt/record": "records",
    "heard": "heard",
    "said": "said",
    "subtask": "subtasks",
    "action": "actions",
    "feedback": "feedback",
    "interrupt": "interrupts",
    "guard/state": "guard",
    "description": "descriptions",
    "robot/state": "robot",
    LEASE_TOPIC: "leases",
    "sim/truth": "truths",
    "mark": "marks",
    "console/response": "responses",
    "interruption": "interruptions",
}


def read_run(path: Path) -> Run:
    """Read a recording, all its parts. Raises RecordingError where it is none, or holds no message at all."""
    run = Run(path=path, is_complete=True)
    refused: Counter[str] = Counter()
    noted: dict[str, dict[str, str]] = {}
    for part in parts_of(path):
        reader = BagReader(part)
        noted = noted or reader.metadata
        for record in reader:
            try:
                _take(run, record)
            except RecordingError as error:
                refused[str(error)] += 1
        run.about = run.about or reader.metadata.get("run", {})
        run.end = reader.metadata.get("end", {})
        run.is_complete = run.is_complete and reader.is_complete
        run.damage += reader.damage
    if not run.stamps:
        raise RecordingError(f"{path}: holds no messages, so there is nothing to report")
    run.damage += [f"{text} ({number} times)" for text, number in sorted(refused.items())]
    every = [stamp for stamps in run.stamps.values() for stamp in stamps]
    zero_ns, begin_ns = zero_ns_of(noted), begin_ns_of(noted)
    run.start_ns = min(every) if zero_ns is None else zero_ns  # the recorder is up before the run begins
    run.begin_ns = run.start_ns if begin_ns is None else begin_ns
    happened = [
        max(stamps) for topic, stamps in run.stamps.items() if topic != "log" and not topic.startswith("calls/")
    ]
    run.end_ns = max(happened or every)
    for track in (*(getattr(run, name) for name in _TRACKS.values()), run.health):
        track.messages.sort(key=lambda one: one.envelope.published_ns)
    _leave_out_shadows(run)
    run.sent.sort()
    for stamps in run.stamps.values():
        stamps.sort()
    run.image_topics.sort()
    if "trial" in noted and run.trial is not None and not run.outcome[1]:
        reason = f"trial {run.trial.number} {TRIAL_ENDS[run.trial.phase]}"
        run.end["outcome"] = json.dumps({"ok": None, "reason": reason})
    return run


def _leave_out_shadows(run: Run) -> None:
    """Of what is said from a seat only its holder's counts: candidates are recorded too, and nobody acts on them."""
    for track in (run.said, run.subtasks, run.actions, run.feedback, run.descriptions):
        line, leases = SeatHolders(), deque(run.leases.messages)
        counted: list[Stamped[Any]] = []
        for one in track.messages:
            while leases and leases[0].envelope.published_ns <= one.envelope.published_ns:
                line.take(leases.popleft().message)
            if not line.is_shadow(one.envelope):
                counted.append(one)
        track.messages = counted


def _take(run: Run, record: BagMessage) -> None:
    envelope = record.envelope
    run.stamps.setdefault(record.topic, []).append(envelope.published_ns)
    if record.schema == IMAGE_SCHEMA:
        if record.topic not in run.image_topics and not record.topic.endswith("/depth"):
            run.image_topics.append(record.topic)
    elif record.topic == "robot/command":
        run.sent.append((envelope.published_ns, envelope.born_ns("image")))
    elif record.topic == "study/trial":
        trial = record.message(Trial)
        run.trial = trial if trial.phase in TRIAL_ENDS else None
    elif record.topic in _TRACKS or record.topic.startswith("health/"):
        track: TopicMessages[Any] = getattr(run, _TRACKS.get(record.topic, "health"))
        track.messages.append(Stamped(record.message(track.message), envelope))
