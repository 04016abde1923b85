"""`Admission`: which messages of the other host may be published here, and with which stamps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from nodes.hosts.clock_offset import ClockOffset, shifted
from runtime.clock import to_ns
from runtime.errors import CodecError
from runtime.message import Envelope, Message, Stamped
from runtime.serialization.codec import decode

FUTURE_NS = to_ns(0.005)


class Traffic(msgspec.Struct, frozen=True):
    """What may cross a link, by topic."""

    sends: Mapping[str, type[Message]]
    receives: Mapping[str, type[Message]]
    sources: Mapping[str, tuple[str, ...]]  # who may publish it there; nobody named: any tool


class AdmissionRefused(Exception):
    """A message that may not come in: a code, and a sentence where a person should read it."""

    def __init__(self, reason: str, sentence: str = "") -> None:
        super().__init__(sentence or reason)
        self.reason, self.sentence = reason, sentence


class LinkCodec(Protocol):
    """Makes messages of one type small for a link, and large again; `Message.message_link_codec` names it."""

    @property
    def small(self) -> type[Message]:
        """The type that crosses the link instead."""
        ...

    def shrink(self, message: Any, quality: int) -> Message:
        """The small message at this quality, 1 to 100. Raises ValueError where it cannot be made."""
        ...

    def grow(self, small: Any) -> Message:
        """The message again. Raises ValueError where its bytes are damaged."""
        ...


LinkCodecs = Mapping[type[Message], LinkCodec]
"""The codec of each message type; a type without one crosses as it is."""


class Admission:
    """The admission of one link, for its two threads, which bring different topics."""

    def __init__(self, traffic: Traffic, other: str, others: frozenset[str], codecs: LinkCodecs) -> None:
        self._traffic, self._other = traffic, other
        self._others, self._codecs = others, codecs
        self._last: dict[tuple[str, str], tuple[int, int]] = {}

    def forget(self) -> None:
        """Start anew, because the other gateway has restarted."""
        self._last.clear()

    def check(self, topic: str) -> type[Message]:
        """The type of a topic on which the other host may publish. Raises AdmissionRefused for another topic."""
        declared = self._traffic.receives.get(topic)
        if declared is None:
            raise AdmissionRefused("not allowed", f"{self._other} may not publish {topic[:80]!r}")
        return declared

    def admitted(self, frames: Sequence[bytes], offset: ClockOffset, now_ns: int) -> Stamped[Message] | None:
        """The message as it is published here; None for a repetition. Raises AdmissionRefused, and CodecError."""
        topic = frames[0].decode(errors="replace") if frames else ""
        declared = self.check(topic)
        codec = self._codecs.get(declared)
        stamped: Stamped[Message] = decode(frames, codec.small if codec is not None else declared)
        envelope = stamped.envelope
        if not self._may_publish(envelope):
            source = envelope.source[:80]
            raise AdmissionRefused("not allowed", f"{source!r} may not publish {topic!r} from {self._other}")
        if codec is not None:
            try:
                stamped = Stamped(codec.grow(stamped.message), envelope)
            except ValueError as problem:
                raise CodecError(str(problem)) from problem
        key, mark = (topic, envelope.source), (envelope.seq, envelope.published_ns)
        if self._last.get(key) == mark:
            return None  # repeated for somebody who came late there
        self._last[key] = mark
        moved = shifted(stamped, offset.shift_ns(now_ns))
        if moved.envelope.published_ns > now_ns + FUTURE_NS:
            raise AdmissionRefused("from the future")
        return moved

    def _may_publish(self, envelope: Envelope) -> bool:
        allowed = self._traffic.sources[envelope.topic]
        return envelope.source in allowed or (not allowed and envelope.source not in self._others)
