"""`Channel`: one topic as a reader hears it: how messages are decoded, and which number of each source came last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime.errors import CodecError
from runtime.message import Envelope, Message, Stamped
from runtime.serialization.codec import Frame, decode_envelope, decoder_of, one_array_reader

_WIDEST_GAP = 1_000_000  # messages counted as lost at once: a damaged number must not spoil the count for good

Lost = Callable[[str, str, int], None]
"""Told of messages that are lost: the topic, why, and how many."""


Handle = Callable[[Stamped[Any]], int | None]
"""Handles a message at once, and says when it had done so, in ns; or puts it where it waits, and says None."""

Refused = Callable[[str, str, str], None]
"""Told of a message that cannot be read although its sender can be: the sender's node, the topic and why."""


class Channel:
    """One topic of one reader; `head` is what its frames begin with."""

    __slots__ = (
        "_refused",
        "decode",
        "decode_bundle",
        "decoder",
        "fingerprint",
        "gap",
        "handle",
        "head",
        "is_event",
        "last",
        "lost",
        "one_array",
        "read",
        "topic",
    )

    def __init__(
        self, topic: str, message: type[Message], head: bytes, lost: Lost, refused: Refused = lambda *_: None
    ) -> None:
        self.decoder = decoder_of(message)
        self.topic = topic
        self.head = head
        self.read, self.fingerprint = self.decoder.read, self.decoder.fingerprint
        self.one_array = one_array_reader(message)
        self.decode, self.decode_bundle = self.decoder.decode, self.decoder.decode_bundle
        self.gap = "link"
        """Why messages are missing: lost on their way, or, as `max_hz`, not sent to somebody who wants fewer."""
        self.is_event = message.message_kind == "event"
        self.last: dict[str, Envelope] = {}
        self.handle: Handle = lambda stamped: None
        """What is done with a message where nothing else is to be done first; set by the reader."""
        self.lost, self._refused = lost, refused

    def is_new(self, envelope: Envelope) -> bool:
        """Count what is missing before this message; False where it has come before."""
        last = self.last.get(envelope.source)
        if last is not None and envelope.seq != last.seq + 1:
            if envelope.seq == last.seq and envelope.published_ns == last.published_ns:
                return False  # sent again for somebody who came late
            self._count_gap(envelope, last)
        self.last[envelope.source] = envelope
        return True

    def is_new_bundle(self, first: Envelope, newest: Envelope) -> bool:
        """The same for messages that were published at once."""
        last = self.last.get(first.source)
        if last is not None and newest.seq == last.seq and newest.published_ns == last.published_ns:
            return False  # it has come before
        if last is not None:
            self._count_gap(first, last)
        self.last[first.source] = newest
        return True

    def _count_gap(self, envelope: Envelope, last: Envelope) -> None:
        if envelope.seq > last.seq + 1:
            self.lost(self.topic, self.gap, min(envelope.seq - last.seq - 1, _WIDEST_GAP))

    def lose(self, document: Frame, reason: str) -> None:
        """Count a message that came and cannot be used, once: its number is not missed as well."""
        envelope = self._envelope_of(document)
        if envelope is not None:
            self.is_new(envelope)
        self.lost(self.topic, reason, 1)
        kind, _, why = reason.partition(": ")
        if kind == "garbled":
            self.tell_sender(document, why)

    def tell_sender(self, document: Frame, why: str) -> None:
        """Let whoever sent a message know that it cannot be read, and why."""
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
