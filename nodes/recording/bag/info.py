"""`polyrhythm bag info`: what is in a recording."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from nodes.mcap.record import BagMessage
from nodes.msgs import GuardState
from nodes.recording.bag.recording import Recording, add_recording, envelope_or_none, is_journal, is_view
from runtime.clock import to_s
from runtime.coordination.health import Health
from runtime.errors import RecordingError
from runtime.message import Envelope
from runtime.supervision.view import plain, terminal_width

OWN = ("health/", "calls/")
"""What each node tells of itself."""
ROOMY = 96
"""Columns from which the table's own stand two apart."""


@dataclass
class RecordedTopic:
    """One topic; times in s. `missing` are sequence numbers that no message of the recording has."""

    topic: str
    schemas: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    messages: int = 0
    bytes: int = 0
    hz: float = 0.0
    longest_gap_s: float = 0.0
    missing: int = 0
    oldest_image_s: float | None = None
    unreadable: int = 0
    encodings: list[str] = field(default_factory=list)
    disordered: int = 0  # messages that are stamped earlier than the one before
    _first_ns: int = 0
    _last_ns: int = 0
    _before_ns: int = 0
    _seq: dict[str, int] = field(default_factory=dict)

    def take(self, message: BagMessage, envelope: Envelope | None) -> None:
        """Count one message."""
        self.messages += 1
        self.bytes += len(message.data)
        if message.schema not in self.schemas:
            self.schemas.append(message.schema)
        if message.encoding not in self.encodings:
            self.encodings.append(message.encoding)
        if envelope is None:
            self.unreadable += 1
            return
        if envelope.source not in self.sources:
            self.sources.append(envelope.source)
        stamp_ns = envelope.published_ns
        if self.messages - self.unreadable > 1:
            self.longest_gap_s = max(self.longest_gap_s, to_s(abs(stamp_ns - self._before_ns)))
            self.disordered += stamp_ns < self._before_ns
            self._first_ns = min(self._first_ns, stamp_ns)
        else:
            self._first_ns = stamp_ns
        self._before_ns, self._last_ns = stamp_ns, max(self._last_ns, stamp_ns)
        if is_view(message, envelope):
            return  # not of each
        before = self._seq.get(envelope.source, 0)
        if envelope.seq > before + 1 and before:
            self.missing += envelope.seq - before - 1
        self._seq[envelope.source] = envelope.seq
        if (image_ns := envelope.born_ns("image")) is not None:
            age_s = to_s(envelope.published_ns - image_ns)
            self.oldest_image_s = max(self.oldest_image_s or 0.0, age_s)

    def finish(self, end_ns: int) -> None:
        """Compute the rate. Silence up to the recording's end is a gap, too."""
        if self.messages - self.unreadable > 1:
            self.longest_gap_s = max(self.longest_gap_s, to_s(end_ns - self._last_ns))
        span_s = to_s(self._last_ns - self._first_ns)
        self.hz = (self.messages - 1) / span_s if span_s > 0 else 0.0

    def document(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if not key.startswith("_")}


@dataclass
class Info:
    """What `bag info` shows."""

    recording: str
    parts: list[dict[str, Any]]
    is_complete: bool
    has_left_out: bool  # a chunk, or a part that it names
    damage: list[str]
    is_ours: bool
    written_by: str  # what MCAP's head says: profile and library
    clock: str
    seed: str
    launch_file: str
    git: str
    duration_s: float
    from_s: float  # of run time: above 0 for a piece of a run
    to_s: float
    messages: int
    topics: list[RecordedTopic]
    dropped: dict[str, int]  # by reason, from every node's last account
    missed_by_recorder: dict[str, int]
    missed_away: dict[str, int]  # of those: while the recorder was dead, until it was started again
    recorder: dict[str, float]  # how the recorder fared: most_behind_s, slowest_write_s...
    outcome: Any
    warnings: list[str]


def _beyond_ranges(guard: BagMessage) -> tuple[str, ...]:
    """Who has asked for more than a joint's range, by the guard's last word; nothing where it cannot be read."""
    try:
        return guard.message(GuardState).beyond_ranges
    except RecordingError:
        return ()


def inspect(path: Path) -> Info:
    """Read a recording from end to end. Raises RecordingError where it is none."""
    recording = Recording(path, takes_any=True)
    topics: dict[str, RecordedTopic] = {}
    ledger: dict[tuple[str, int], Health] = {}
    types: dict[str, set[str]] = {}
    last_ns, messages = 0, 0
    guard: BagMessage | None = None  # the guard's last word
    for message in recording.gone_through("reading"):
        messages += 1
        envelope = envelope_or_none(message)
        topics.setdefault(message.topic, RecordedTopic(message.topic)).take(message, envelope)
        types.setdefault(message.topic, set()).add(message.schema)
        if envelope is not None:
            last_ns = last_ns if is_journal(message) else max(last_ns, envelope.published_ns)
        if message.topic.startswith("health/") and message.schema == "Health":
            try:
                health = message.message(Health)
                ledger[(health.node, health.pid)] = health
            except RecordingError:
                pass  # counted by nobody: the topic's own line still counts the message
        if message.topic == "guard/state" and message.schema == "GuardState":
            guard = message
    for topic in topics.values():
        topic.finish(last_ns)
    dropped: Counter[str] = Counter()
    for health in ledger.values():
        for port in health.ports:
            dropped.update(port.dropped)
    missed, away, fared = (recording.noted(key) for key in ("missed", "missed_away", "recorder"))
    warnings = [
        f"topic {topic}: changes its type in this recording ({', '.join(sorted(names))})"
        for topic, names in sorted(types.items())
        if len(names) > 1
    ]
    warnings += [
        f"topic {name}: {topic.disordered} messages are stamped earlier than the one before them"
        for name, topic in sorted(topics.items())
        if topic.disordered and not recording.is_ours
    ]
    if guard is not None:
        warnings += _beyond_ranges(guard)
    return Info(
        recording=str(path),
        parts=[
            {"path": str(reader.path), "bytes": reader.path.stat().st_size, "is_complete": reader.is_complete}
            for reader in recording.readers
        ],
        is_complete=recording.is_complete,
        has_left_out=recording.has_left_out,
        damage=recording.damage,
        is_ours=recording.is_ours,
        written_by=" ".join(filter(None, (recording.readers[0].profile, recording.readers[0].library))),
        clock=recording.about.get("clock", ""),
        seed=recording.about.get("seed", ""),
        launch_file=recording.about.get("launch_file", ""),
        git=recording.about.get("git", ""),
        duration_s=to_s(max(0, last_ns - recording.begin_ns)),
        from_s=to_s(recording.begin_ns - recording.start_ns),
        to_s=to_s(max(0, last_ns - recording.start_ns)),
        messages=messages,
        topics=[topics[name] for name in sorted(topics)],
        dropped=dict(sorted(dropped.items())),
        missed_by_recorder=missed if isinstance(missed, dict) else {},
        missed_away=away if isinstance(away, dict) else {},
        recorder=fared if isinstance(fared, dict) else {},
        outcome=recording.noted("outcome"),
        warnings=warnings,
    )


def main(argv: list[str]) -> int:
    """`polyrhythm bag info`: 0, also for a recording that was cut off; 1 where it, or a chunk of it, cannot be read."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm bag info",
        description="Topics, rates, gaps, ages, drops, duration and parts of a recording; topics of any MCAP file.",
        epilog="example: polyrhythm bag info runs/20261121-113639-laptop/run.mcap --json",
    )
    add_recording(parser)
    parser.add_argument("--all", action="store_true", help="list every topic, health/... and calls/... included")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    asked = parser.parse_args(argv)
    info = inspect(asked.recording)
    if asked.json:
        document = {**info.__dict__, "topics": [topic.document() for topic in info.topics]}
        print(msgspec.json.format(json.dumps(document), indent=2))
    else:
        _print(info, is_whole=asked.all)
    return int(info.has_left_out)


def _fared(recorder: dict[str, float]) -> str:
    """How far the recorder was behind, where it said so."""
    if "most_behind_s" not in recorder:
        return ""
    behind_s, slowest_s = recorder["most_behind_s"], recorder.get("slowest_write_s", 0.0)
    return f"; it was at most {behind_s * 1e3:.0f} ms behind, and its slowest write took {slowest_s * 1e3:.0f} ms"


def _print(info: Info, *, is_whole: bool) -> None:
    size_mb = sum(part["bytes"] for part in info.parts) / 1e6
    parts = f", {len(info.parts)} parts" if len(info.parts) > 1 else ""
    span = f" ({info.from_s:.1f} to {info.to_s:.1f} s of its run)" if info.from_s else ""
    print(f"{info.recording}: {info.duration_s:.1f} s{span}, {info.messages} messages, {size_mb:.1f} MB{parts}")
    if not info.is_ours:
        print(f"not recorded by Polyrhythm; written by {info.written_by or 'somebody who does not say'}")
    else:
        print(f"{info.clock or 'unknown'} time, seed {info.seed or '?'}, {info.launch_file} {info.git}".rstrip())
    topics = [topic for topic in info.topics if is_whole or not topic.topic.startswith(OWN)]
    width = max([len(topic.topic) for topic in topics] + [5])
    columns = terminal_width()
    gap = "  " if columns is None or columns >= ROOMY else " "
    head = ("messages", f"{'Hz':>7}", "longest gap", "missing", "image age", "type")
    print("", gap.join((f"{'topic':{width}}", *head)), sep="\n")
    for topic in topics:
        age = f"{topic.oldest_image_s * 1e3:.0f} ms" if topic.oldest_image_s is not None else ""
        numbers = (f"{topic.messages:8}", f"{topic.hz:7.2f}", f"{topic.longest_gap_s:9.3f} s", f"{topic.missing:7}")
        line = gap.join((f"{plain(topic.topic):{width}}", *numbers, f"{age:>9}", _kind(topic, info)))
        print(line if columns is None or len(line) <= columns else f"{line[: columns - 1]}…")
    if hidden := len(info.topics) - len(topics):
        print(f"and {hidden} topics with what each node tells of itself (--all lists them)")
    if info.is_ours:
        _print_losses(info)
    for text in (*info.warnings, *info.damage):
        print(f"! {text}")
    if not info.is_complete:
        print("! the recording was not closed or is damaged; `polyrhythm bag recover` writes a sound one")


def _kind(topic: RecordedTopic, info: Info) -> str:
    """Its types; of others' files with how the messages are encoded."""
    names = ", ".join(name or "no schema" for name in topic.schemas)
    return names if info.is_ours else f"{names} ({', '.join(one or 'no encoding' for one in topic.encodings)})"


def _print_losses(info: Info) -> None:
    is_told = any(topic.topic.startswith("health/") for topic in info.topics)
    nothing = "nothing" if is_told else "unknown: no health/... is in this recording"
    lost = ", ".join(f"{number} {reason}" for reason, number in info.dropped.items()) or nothing
    print(f"\nnot delivered to nodes: {lost}")
    missed = ", ".join(f"{number} of {topic}" for topic, number in info.missed_by_recorder.items()) or "nothing"
    if info.missed_away:
        missed += f" ({sum(info.missed_away.values())} of these before it was started again)"
    more = sum(max(0, topic.missing - info.missed_by_recorder.get(topic.topic, 0)) for topic in info.topics)
    gone = f" while it ran, and {more} that are missing here all the same, as when it was started again" if more else ""
    if info.missed_away:
        gone = f", and {more} more are missing here" if more else ""
    print(f"missed by the recorder: {missed}{gone}{_fared(info.recorder)}")
