"""`Admission`: which messages of the other host may be published here, and with which stamps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from runtime.clock import to_ns
from runtime.errors import CodecError
from runtime.hosts.clock_offset import ClockOffset
from runtime.hosts.clock_offset_apply import shifted
from runtime.hosts.image_codec import Shrinker, SmallImage
from runtime.message import Envelope, Message, Stamped
from runtime.messages.codec import decode
from runtime.msgs import EStop, Image, Interrupt

FUTURE_NS = to_ns(0.005)


class Traffic(msgspec.Struct, frozen=True):
    """What may cross, by topic."""

    sends: Mapping[str, type[Message]]
    receives: Mapping[str, type[Message]]
    sources: Mapping[str, tuple[str, ...]]  # who may publish it there; nobody named: any tool


class AdmissionRefused(Exception):
    """A message that may not come in: why, in a word, and in a sentence where somebody should read it."""

    def __init__(self, reason: str, sentence: str = "") -> None:
        super().__init__(sentence or reason)
        self.reason, self.sentence = reason, sentence


def stops_a_robot(message: Message) -> bool:
    """Whether it is better late than never."""
    match message:
        case Interrupt(depth="stop") | EStop(is_pressed=True):
            return True
        case _:
            return False


class Admission:
    """Of one link, for its two threads, which bring different topics."""

    def __init__(self, traffic: Traffic, other: str, own_nodes: frozenset[str], shrinker: Shrinker | None) -> None:
        self._traffic, self._other = traffic, other
        self._own_nodes, self._shrinker = own_nodes, shrinker
        self._last: dict[tuple[str, str], tuple[int, int]] = {}

    def forget(self) -> None:
        """The other gateway began anew."""
        self._last.clear()

    def check(self, topic: str) -> type[Message]:
        """The type of a topic that the other host may publish. Raises Refused for another."""
        declared = self._traffic.receives.get(topic)
        if declared is None:
            raise AdmissionRefused("not allowed", f"{self._other} may not publish {topic[:80]!r}")
        return declared

    def admitted(self, frames: Sequence[bytes], offset: ClockOffset, now_ns: int) -> Stamped[Message] | None:
        """The message as it is to be published; None for a repetition. Raises Refused, and CodecError for garbage."""
        topic = frames[0].decode(errors="replace") if frames else ""
        declared = self.check(topic)
        is_small_image = declared is Image and self._shrinker is not None
        stamped: Stamped[Message] = decode(frames, SmallImage if is_small_image else declared)
        envelope = stamped.envelope
        if not self._may_publish(envelope):
            source = envelope.source[:80]
            raise AdmissionRefused("not allowed", f"{source!r} may not publish {topic!r} from {self._other}")
        if is_small_image and self._shrinker is not None:
            assert isinstance(stamped.message, SmallImage)
            try:
                stamped = Stamped(self._shrinker.grow(stamped.message), envelope)
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
        return envelope.source in allowed or (not allowed and envelope.source not in self._own_nodes)
