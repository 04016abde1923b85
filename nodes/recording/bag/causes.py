"""`trace`: from a command of the robot back to what was said, by what each handler call read.

Where no journal was recorded, or a node kept a value from an earlier call, the stamps in the envelope name the plan,
the utterance and the image.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from nodes.mcap.record import BagMessage
from nodes.msgs import JOINTS, GuardState, Interrupt, JointCommand
from nodes.recording.bag.recording import JOURNAL_S, Recording, envelope_or_none
from nodes.recording.images import SCHEMA_NAME as IMAGE_SCHEMA
from runtime.clock import to_ns, to_s
from runtime.errors import RecordingError
from runtime.journal.calls import CallRecord, Calls
from runtime.message import Envelope

STAGES = ("heard", "interrupt", "subtask", "action", "chunk", "command", "robot/command")
"""From a person's words to the motors; a trace has what there is of these."""

EVENTS = ("heard", "said", "interrupt", "subtask", "action", "feedback", "lease")
_KEPT_STATES = 600  # of each topic: 12 s at 50 Hz
_KEPT_CALLS = 4000


@dataclass(frozen=True)
class CausalStep:
    """One message of the chain. `age_s` is how old it was when the command was given."""

    topic: str
    ident: str
    at_s: float
    age_s: float
    text: str
    how: str  # how it is known to be behind the next one
    provenance: str = ""


@dataclass(frozen=True)
class CausalTrace:
    """Why a command was given: the chain in order of time, and what else the calls on it read."""

    command: str
    at_s: float
    steps: list[CausalStep]
    inputs: list[CausalStep]
    has_journal: bool
    begins_s: float = 0.0  # run time; above 0 where the recording is a piece of a run
    ends_s: float | None = None  # where the recording ends before the moment that was asked for


@dataclass
class _Known:
    """What of a recording a trace may need."""

    messages: dict[str, BagMessage] = field(default_factory=dict)  # by ident
    by_topic: dict[str, deque[str]] = field(default_factory=dict)
    calls: OrderedDict[str, tuple[str, CallRecord]] = field(default_factory=OrderedDict)  # by ident of what was sent
    lasting_calls: dict[str, tuple[str, CallRecord]] = field(default_factory=dict)  # those that sent events
    newest_ns: int = 0  # of all messages that were read

    def add(self, message: BagMessage, envelope: Envelope) -> None:
        ident = envelope.ident
        self.messages[ident] = message
        if message.topic in EVENTS:
            self.by_topic.setdefault(message.topic, deque()).append(ident)
            return
        row = self.by_topic.setdefault(message.topic, deque())
        row.append(ident)
        if len(row) > _KEPT_STATES:
            self.messages.pop(row.popleft(), None)

    def add_calls(self, batch: Calls) -> None:
        for call in batch.calls:
            for ident in call.sent:
                if ident.partition(":")[0] in EVENTS:
                    self.lasting_calls[ident] = (batch.node, call)
                elif ident:
                    self.calls[ident] = (batch.node, call)
        while len(self.calls) > _KEPT_CALLS:
            self.calls.popitem(last=False)

    def call(self, ident: str) -> tuple[str, CallRecord] | None:
        return self.lasting_calls.get(ident) or self.calls.get(ident)

    def published_at(self, topic: str, stamp_ns: int) -> str | None:
        """The message of that topic with that stamp."""
        row = self.by_topic.get(topic, ())
        return next((one for one in reversed(row) if self.messages[one].envelope.published_ns == stamp_ns), None)

    def newest_before(self, topic: str, stamp_ns: int) -> str | None:
        row = self.by_topic.get(topic, ())
        return next((one for one in reversed(row) if self.messages[one].envelope.published_ns <= stamp_ns), None)

    def stop_at(self, stamp_ns: int) -> str | None:
        """The interrupt for which the guard said then that it has stopped the robot."""
        state = self.newest_before("guard/state", stamp_ns)
        if state is None or self.messages[state].schema != "GuardState":
            return None
        try:
            told = self.messages[state].message(GuardState)
            cause = told.stop_cause if told.is_stopped or told.mode == "holding" else ""
            stops = [one for one in self.by_topic.get("interrupt", ()) if self.messages[one].schema == "Interrupt"]
            return next((one for one in reversed(stops) if self.messages[one].message(Interrupt).id == cause), None)
        except RecordingError:
            return None


def trace(recording: Recording, at_s: float, topic: str = "robot/command") -> CausalTrace:
    """The trace of the last command at or before `at_s` of run time. Raises RecordingError where there is none."""
    start_ns = recording.start_ns
    at_ns = start_ns + to_ns(at_s)
    known = _read(recording, at_ns, topic)
    command = known.newest_before(topic, at_ns)
    if command is None:
        raise RecordingError(f"{recording.path}: holds no {topic} at or before {at_s:g} s")
    command_ns = known.messages[command].envelope.published_ns
    chain: dict[str, tuple[str, str]] = {topic: (command, "")}  # stage -> (ident, how it is known)
    inputs: dict[str, str] = {}
    has_journal = known.call(command) is not None
    stop = known.stop_at(at_ns) if topic == "robot/command" else None
    if stop is not None:  # a command that brakes comes from nothing that the policies sent
        chain["interrupt"] = (stop, "the guard brakes for it")
    waiting = deque([stop or command])
    seen = {command, *waiting}
    while waiting:
        ident = waiting.popleft()
        found = known.call(ident)
        has_journal = has_journal or found is not None
        for parent, how in _read_by(found) if found is not None else _newest_then(known, ident):
            if parent in seen or parent not in known.messages:
                continue
            seen.add(parent)
            stage = parent.partition(":")[0]
            if stage in STAGES:
                if stage not in chain:
                    chain[stage] = (parent, how)
                    if stage != "heard":  # what made a person speak is another story
                        waiting.append(parent)
            else:
                inputs.setdefault(parent, how)
    for stage, parent, how in _stamped(known, [ident for ident, _ in chain.values()]):
        chain.setdefault(stage, (parent, how))

    def step(ident: str, how: str) -> CausalStep:
        message = known.messages[ident]
        envelope = message.envelope
        return CausalStep(
            topic=message.topic,
            ident=ident,
            at_s=to_s(envelope.published_ns - start_ns),
            age_s=to_s(command_ns - envelope.origins.get("image", envelope.published_ns))
            if message.schema == IMAGE_SCHEMA
            else to_s(command_ns - envelope.published_ns),
            text=say(message, recording.joints),
            how=how,
            provenance=envelope.provenance,
        )

    steps = sorted(
        (step(ident, how) for ident, how in chain.values()),
        key=lambda one: (one.at_s, STAGES.index(one.topic) if one.topic in STAGES else len(STAGES)),
    )
    return CausalTrace(
        command=command,
        at_s=to_s(command_ns - start_ns),
        steps=steps,
        inputs=sorted((step(ident, how) for ident, how in inputs.items()), key=lambda one: one.at_s),
        has_journal=has_journal,
        begins_s=to_s(recording.begin_ns - start_ns),
        ends_s=to_s(known.newest_ns - start_ns) if known.newest_ns < at_ns else None,
    )


def _read(recording: Recording, at_ns: int, topic: str) -> _Known:
    known = _Known()
    for message in recording:
        envelope = envelope_or_none(message)
        if envelope is None:
            continue
        known.newest_ns = max(known.newest_ns, envelope.published_ns)
        if message.schema == "Calls":
            try:
                known.add_calls(message.message(Calls))
            except RecordingError:
                continue
            if envelope.published_ns > at_ns + to_ns(JOURNAL_S):
                break
        elif (
            envelope.published_ns <= at_ns
            and not message.topic.startswith("health/")
            and message.topic == envelope.topic
        ):
            known.add(message, envelope)
    return known


def _read_by(found: tuple[str, CallRecord]) -> list[tuple[str, str]]:
    """What a call started from and read, newest first: the last word is what it acted on."""
    node, call = found
    parents = [(read.partition("=")[2], f"read by {node}.{call.handler}") for read in call.reads]
    return [(call.trigger, f"started {node}.{call.handler}"), *parents]


def _newest_then(known: _Known, ident: str) -> list[tuple[str, str]]:
    """Without a journal: the newest message of the stage before."""
    envelope = known.messages[ident].envelope
    if envelope.topic not in STAGES[2:]:
        return []
    place = STAGES.index(envelope.topic)
    earlier = (STAGES[place - 1], "action") if envelope.topic == "command" else (STAGES[place - 1],)
    found = [known.newest_before(stage, envelope.published_ns) for stage in earlier]
    return [(parent, "the newest at that time (no journal)") for parent in found if parent is not None]


def _stamped(known: _Known, idents: list[str]) -> list[tuple[str, str, str]]:
    """Plans and utterances that the envelopes of the chain name by their stamps, as (stage, ident, how)."""
    found = []
    for ident in reversed(idents):
        envelope = known.messages[ident].envelope
        for stage, stamp_ns in (("subtask", envelope.born_ns("plan")), ("heard", envelope.born_ns("utterance"))):
            parent = known.published_at(stage, stamp_ns) if stamp_ns else None
            if parent is not None:
                found.append((stage, parent, f"the oldest behind {envelope.topic}"))
    return found


def say(message: BagMessage, joints: tuple[str, ...] = JOINTS) -> str:
    """One line on what a message says, with the names of the robot's joints."""
    if message.schema == IMAGE_SCHEMA:
        return "an image"
    try:
        document = message.document
    except RecordingError:
        return "(unreadable)"
    if message.schema == "JointCommand":
        try:
            command = message.message(JointCommand)
        except RecordingError:
            return "(unreadable)"
        parts = [f"{name} {value:.3f}" for name, value in zip(joints, command.position, strict=False)]
        aside = f" {command.base_vy_mps:+.3f} m/s to the left" if command.base_vy_mps else ""
        return f"base {command.base_v_mps:.3f} m/s{aside} {command.base_w_radps:.3f} rad/s, " + ", ".join(parts)
    if message.schema == "Utterance":
        return f"{document.get('speaker')}: {document.get('text')}"
    for key in ("text", "reason", "status", "mode"):
        if document.get(key):
            lead = document.get("skill") or document.get("depth") or document.get("id") or ""
            return f"{lead}: {document[key]}" if lead else str(document[key])
    return message.schema
