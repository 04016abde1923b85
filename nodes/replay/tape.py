"""`Tape`: what some nodes of a recording said, one message after the other, as the typed values that they published."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from nodes import recorded_image
from nodes.bag_commands.recording import Recording, envelope_or_none
from nodes.replay.inputs import DEPTH
from runtime.bag_message import BagMessage
from runtime.errors import RecordingError
from runtime.message import Envelope, Message, Stamped
from runtime.msgs import Image

Types = Mapping[str, type[Message]]
"""By topic."""


def stamps_of(recording: Recording, sources: Mapping[str, Types]) -> dict[str, deque[int]]:
    """When each of these nodes spoke, as recorded stamps; a time for every message."""
    stamps: dict[str, deque[int]] = {name: deque() for name in sources}
    topics = {topic for types in sources.values() for topic in types}
    for message in recording:
        envelope = envelope_or_none(message) if message.topic in topics else None
        if (
            envelope is not None
            and envelope.topic == message.topic
            and message.topic in sources.get(envelope.source, {})
        ):
            stamps[envelope.source].append(envelope.published_ns)
    return stamps


class Tape:
    """Messages in recorded order. `skipped` counts what could not be read; an image without its depth is one."""

    def __init__(self, recording: Recording, sources: Mapping[str, Types]) -> None:
        self.start_ns = recording.start_ns
        self.skipped = 0
        self._sources = sources
        self._topics = {topic for types in sources.values() for topic in types}
        self._rows = self._read(recording)
        self.next = next(self._rows, None)
        """What comes next; None at the end."""

    @property
    def due_ns(self) -> int:
        """When it was published, from the start of the recording."""
        assert self.next is not None
        return self.next.envelope.published_ns - self.start_ns

    def take(self) -> Stamped[Any]:
        """The next message, which the tape moves past."""
        taken, self.next = self.next, next(self._rows, None)
        assert taken is not None
        return taken

    def _read(self, recording: Recording) -> Iterator[Stamped[Any]]:
        image: tuple[BagMessage, Envelope] | None = None  # waits for its depth, which stands behind it
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
            if message.schema == recorded_image.SCHEMA_NAME:
                image = message, envelope
            else:
                yield from self._typed(message, envelope)
        if image is not None:
            yield from self._typed(*image)

    def _typed(
        self, message: BagMessage, envelope: Envelope, depth: BagMessage | None = None
    ) -> Iterator[Stamped[Any]]:
        kind = self._sources[envelope.source][envelope.topic]
        try:
            if kind is Image:
                image, _ = recorded_image.image_of(message.document, depth.document if depth is not None else None)
                yield Stamped(image, envelope)
            else:
                yield Stamped(message.message(kind), envelope)
        except RecordingError:
            self.skipped += 1
