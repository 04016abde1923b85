"""`Tape`: what some nodes of a recording said, one message after the other, as the typed values that they published."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from nodes.mcap.record import BagMessage
from nodes.msgs import Image
from nodes.recording import images as recorded_image
from nodes.recording.bag.recording import Recording, envelope_or_none
from nodes.recording.replay.gaps import Shift, Types, spoken
from nodes.recording.replay.inputs import DEPTH
from runtime.errors import RecordingError
from runtime.message import Envelope, Stamped

Steps = Mapping[str, Sequence[int]]
"""By node, as `Gaps.steps`."""


@dataclass(frozen=True)
class TapeMessage:
    """A message and when it is to be said, from the start."""

    stamped: Stamped[Any]
    due_ns: int


@dataclass(frozen=True)
class Due:
    """When a message is to be said, from the start, and what another node had said just before at that very instant."""

    at_ns: int
    behind: Envelope | None


def dues_of(recording: Recording, sources: Mapping[str, Types], steps: Steps) -> dict[str, deque[Due]]:
    """When each of these nodes speaks; one for every message."""
    begin_ns = recording.begin_ns
    dues: dict[str, deque[Due]] = {name: deque() for name in sources}
    shifts = {name: Shift(steps.get(name, ())) for name in sources}
    other: Envelope | None = None
    for message in recording:
        envelope = spoken(message, sources)
        if envelope is not None:
            at_ns = envelope.published_ns - begin_ns + shifts[envelope.source].of_next_ns()
            is_behind = other is not None and other.published_ns == envelope.published_ns
            dues[envelope.source].append(Due(at_ns, other if is_behind else None))
        elif (found := envelope_or_none(message)) is not None and found.source not in sources:
            other = found if found.topic == message.topic else other  # not the recorder's own view of it
    return dues


class Tape:
    """Messages in recorded order, but those that cannot be read; an image without its depth is one."""

    def __init__(self, recording: Recording, sources: Mapping[str, Types], steps: Steps) -> None:
        self._begin_ns = recording.begin_ns
        self._sources = sources
        self._shifts = {name: Shift(steps.get(name, ())) for name in sources}
        self._topics = {topic for types in sources.values() for topic in types}
        self._rows = self._read(recording)
        self.next = next(self._rows, None)
        """What comes next; None at the end."""

    def take(self) -> Stamped[Any]:
        """The next message, which the tape moves past."""
        taken, self.next = self.next, next(self._rows, None)
        assert taken is not None
        return taken.stamped

    def _read(self, recording: Recording) -> Iterator[TapeMessage]:
        image: tuple[BagMessage, Envelope, int] | None = None  # waits for its depth, which stands behind it
        for message in recording:
            topic = message.topic.removesuffix(DEPTH)
            if message.topic not in self._topics and topic not in self._topics:
                continue
            envelope = envelope_or_none(message)
            if envelope is None or envelope.topic not in self._sources.get(envelope.source, {}):
                continue
            if image is not None:
                is_depth = message.topic == image[0].topic + DEPTH and envelope.ident == image[1].ident
                yield from self._typed(*image, depth=message if is_depth else None)
                image = None
                if is_depth:
                    continue
            if message.topic != envelope.topic:
                continue  # the recorder's own view of a message
            due_ns = envelope.published_ns - self._begin_ns + self._shifts[envelope.source].of_next_ns()
            if message.schema == recorded_image.SCHEMA_NAME:
                image = message, envelope, due_ns
            else:
                yield from self._typed(message, envelope, due_ns)
        if image is not None:
            yield from self._typed(*image)

    def _typed(
        self, message: BagMessage, envelope: Envelope, due_ns: int, depth: BagMessage | None = None
    ) -> Iterator[TapeMessage]:
        kind = self._sources[envelope.source][envelope.topic]
        with suppress(RecordingError):
            if kind is Image:
                image, _ = recorded_image.image_of(message.document, depth.document if depth is not None else None)
                yield TapeMessage(Stamped(image, envelope), due_ns)
            else:
                yield TapeMessage(Stamped(message.message(kind), envelope), due_ns)
