"""`RecordedTrack`: the messages of a seat's holder, read from a recording, to be published again at the same pace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec

from nodes.mcap.file import BagReader
from nodes.mcap.parts import parts_of, zero_ns_of
from runtime.clock import to_ns, to_s
from runtime.coordination.lease import LEASE_TOPIC, Lease
from runtime.errors import UserError, choices
from runtime.message import Message

SPOKEN: dict[str, tuple[str, ...]] = {
    "planner": ("subtask",),
    "vlm": ("action", "description"),
    "policy": ("command",),
}
"""Topics that a replay publishes for each seat: its decisions. Feedback of the recorded run is left out."""

IDS = ("id", "subtask_id")


@dataclass(frozen=True, slots=True)
class TrackMessage:
    """One message and when it is due, in ns after the beginning."""

    at_ns: int
    topic: str
    message: Message


@dataclass
class RecordedTrack:
    """The messages of one seat in order, and how far they were played; none is played twice."""

    name: str
    notes: tuple[TrackMessage, ...]
    place: int = 0

    @property
    def length_s(self) -> float:
        """Time from the first message to the last, s."""
        return to_s(self.notes[-1].at_ns) if self.notes else 0.0

    @property
    def is_over(self) -> bool:
        """Whether every message was played."""
        return self.place >= len(self.notes)

    def begin(self) -> None:
        """Start again from the first message."""
        self.place = 0

    def due(self, elapsed_ns: int) -> list[TrackMessage]:
        """The messages that are due now: every event, and of each state only the newest."""
        start = self.place
        while not self.is_over and self.notes[self.place].at_ns <= elapsed_ns:
            self.place += 1
        found = self.notes[start : self.place]
        newest = {note.topic: note for note in found if note.message.message_kind == "state"}
        return [note for note in found if newest.get(note.topic, note) is note]


def read_score(path: Path, seat: str, types: Mapping[str, type[Message]], *, from_s: float = 0.0) -> RecordedTrack:
    """The messages that the seat's holder published on these topics, from `from_s` seconds of run time on.

    `types` gives the message class of each topic. Ids of actions and subtasks get the recording's name as a prefix, so
    that nobody takes them for those of the present run. Raises RecordingError where the file is no recording, and
    UserError where the holder published nothing there.
    """
    name = path.parent.name if path.name == "run.mcap" and path.parent.name else path.stem
    holder, seen = "", set[str]()
    start_ns: int | None = None
    notes: list[tuple[int, str, Message]] = []
    for part in parts_of(path):
        reader = BagReader(part)
        start_ns = zero_ns_of(reader.metadata) if start_ns is None else start_ns
        holder = holder or _first_holder(reader.metadata.get("run", {}), seat)
        for record in reader:
            envelope = record.envelope
            start_ns = envelope.published_ns if start_ns is None else start_ns
            if record.topic == LEASE_TOPIC:
                lease = record.message(Lease)
                holder = lease.holder if lease.seat == seat else holder
            if envelope.seat == seat:
                seen.add(record.topic)
            message = types.get(record.topic)
            at_ns = envelope.published_ns - start_ns - to_ns(from_s)
            is_holder_s = envelope.source == holder if holder else envelope.seat == seat
            if message is not None and at_ns >= 0 and is_holder_s:
                notes.append((at_ns, record.topic, _renamed(record.message(message), name)))
    if not notes:
        raise UserError(
            f"{path}: nobody on the seat {seat} said anything on {choices(types)} there; "
            f"the seat's topics in the recording: {choices(seen)}"
        )
    notes.sort(key=lambda note: note[0])
    first_ns = notes[0][0]
    return RecordedTrack(name, tuple(TrackMessage(at_ns - first_ns, topic, message) for at_ns, topic, message in notes))


def _first_holder(about: Mapping[str, str], seat: str) -> str:
    """Who held the seat when the recorded run began; "" where the recording does not say."""
    try:
        seats = msgspec.json.decode(about.get("seats", "{}"), type=dict[str, dict[str, Any]])
    except msgspec.MsgspecError:
        return ""
    return str(seats.get(seat, {}).get("holder", ""))


def _renamed(message: Message, name: str) -> Message:
    idents = {field: getattr(message, field, "") for field in IDS}
    changes = {field: f"{name}/{ident}" for field, ident in idents.items() if ident}
    renamed: Message = msgspec.structs.replace(cast(Any, message), **changes)
    return renamed
