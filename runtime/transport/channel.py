"""`Channel`: one topic as one reader receives it: decodes its messages, and counts missing and repeated ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from runtime.errors import CodecError
from runtime.message import Envelope, Message, Stamped
from runtime.serialization.codec import Frame, decode_envelope, decoder_of, one_array_reader
from runtime.transport import fast_lane

_WIDEST_GAP = 1_000_000  # messages counted as lost at once: a damaged number must not spoil the count for good

Lost = Callable[[str, str, int, str], None]
"""Called for lost messages: the topic, the code of the reason, how many, and more words on it or ""."""


class Loss(NamedTuple):
    """Why a message that came cannot be used: the code that is counted, and more words on it or ""."""

    code: str
    why: str = ""


Handle = Callable[[Stamped[Any]], int | None]
"""Handles a message at once and returns when it had finished, in ns; None where it queued the message instead."""

Refused = Callable[[str, str, str], None]
"""Called for a message that cannot be decoded although its sender is known: the sender's node, the topic, why."""


class Channel:
    """One topic of one reader; `head` is the prefix of its frames on the wire."""

    __slots__ = (
        "_refused",
        "decode",
        "decode_bundle",
        "decoder",
        "gap",
        "handle",
        "head",
        "held",
        "is_event",
        "last",
        "lost",
        "open",
        "open_held",
        "topic",
    )

    def __init__(
        self, topic: str, message: type[Message], head: bytes, lost: Lost, refused: Refused = lambda *_: None
    ) -> None:
        self.decoder = decoder_of(message)
        self.topic = topic
        self.head = head
        self.decode, self.decode_bundle = self.decoder.decode, self.decoder.decode_bundle
        self.gap = "link"
        """Why messages are missing: lost on their way, or, as `max_hz`, not sent to somebody who wants fewer."""
        self.is_event = message.message_kind == "event"
        self.last: dict[str, Envelope] = {}
        opener, decoder = fast_lane.chosen.opener, self.decoder
        self.open = opener(head, topic, decoder.fingerprint, self.last, decoder.read, decoder.read_payload)
        """Opens a frame of the usual kind without arrays."""
        self.held, *read = one_array_reader(message)
        """The buffer of the one array of the frame that `open_held` opens."""
        self.open_held = opener(head, topic, decoder.fingerprint, self.last, *read)
        self.handle: Handle = lambda stamped: None
        """What is done with a message where nothing else is to be done first; set by the reader."""
        self.lost, self._refused = lost, refused

    def read(self, document: Frame, arrays: Sequence[Frame]) -> Stamped[Any] | None:
        """The message; None where it cannot be decoded, which is counted."""
        try:
            return self.decode(self.topic, document, arrays)
        except (CodecError, ValueError) as problem:
            self.lose(document, "garbled", str(problem))
            return None

    def read_bundle(self, document: Frame) -> Sequence[Stamped[Any]]:
        """Messages that were published together; none where they cannot be decoded, which is counted."""
        try:
            return self.decode_bundle(self.topic, document)
        except CodecError as problem:
            self.lose(document, "garbled", str(problem))
            return ()

    def is_new(self, envelope: Envelope) -> bool:
        """Count the messages missing before this one; False where this one was received before."""
        last = self.last.get(envelope.source)
        if last is not None and envelope.seq != last.seq + 1:
            if envelope.seq == last.seq and envelope.published_ns == last.published_ns:
                return False  # sent again for somebody who came late
            self._count_gap(envelope, last)
        self.last[envelope.source] = envelope
        return True

    def is_new_bundle(self, first: Envelope, newest: Envelope) -> bool:
        """As `is_new`, for messages that were published together."""
        last = self.last.get(first.source)
        if last is not None and newest.seq == last.seq and newest.published_ns == last.published_ns:
            return False  # it has come before
        if last is not None:
            self._count_gap(first, last)
        self.last[first.source] = newest
        return True

    def _count_gap(self, envelope: Envelope, last: Envelope) -> None:
        if envelope.seq > last.seq + 1:
            self.lost(self.topic, self.gap, min(envelope.seq - last.seq - 1, _WIDEST_GAP), "")

    def lose(self, document: Frame, code: str, why: str = "") -> None:
        """Count a received message that cannot be used; its number then does not count as missing too."""
        envelope = self._envelope_of(document)
        if envelope is not None:
            self.is_new(envelope)
        self.lost(self.topic, code, 1, why)
        if code == "garbled":
            self.tell_sender(document, why)

    def tell_sender(self, document: Frame, why: str) -> None:
        """Report to the sender of a message that it cannot be decoded, and why."""
        envelope = self._envelope_of(document)
        if envelope is not None:
            self._refused(envelope.source, self.topic, why)

    def _envelope_of(self, document: Frame) -> Envelope | None:
        """None for one that may be anybody's; its number is counted as missing with the next one."""
        try:
            envelope = decode_envelope(document)
        except CodecError:
            return None
        return envelope if envelope.topic == self.topic else None
