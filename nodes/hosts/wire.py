"""What two gateways send each other: a topic's message keeps its frames; all else is one small document."""

from __future__ import annotations

import msgspec

from runtime.errors import CodecError

MESSAGE, STATE, IMAGE, EVENT, RECEIPT, WORD = b"M", b"S", b"I", b"E", b"R", b"W"
"""First frames: a topic's message; a numbered state that comes several ways; a numbered image; a reliable event with
its tag; which of those have come; a document between the gateways.
"""


class HostHello(msgspec.Struct, frozen=True, tag="hello"):
    """Who speaks, and for which run; repeated until it is answered."""

    host: str
    session: str  # a new one each time the gateway starts
    graph: str  # fingerprint of the nodes, topics and message types: both ends must run the same
    is_reply: bool = False


class ClockQuestion(msgspec.Struct, frozen=True, tag="ask"):
    """Asks for the other clock's time; also the heartbeat of the link."""

    sent_ns: int
    session: str


class ClockAnswer(msgspec.Struct, frozen=True, tag="answer"):
    """The answer: this clock showed `there_ns` when the question was read."""

    sent_ns: int
    there_ns: int


class Ack(msgspec.Struct, frozen=True, tag="ack"):
    """The image of this number has arrived."""

    number: int


class Bye(msgspec.Struct, frozen=True, tag="bye"):
    """The run ends here; with an outcome, it ends everywhere."""

    ok: bool | None = None
    reason: str = ""


class Busy(msgspec.Struct, frozen=True, tag="busy"):
    """Another gateway of the caller's host is connected already, and stays."""


Word = HostHello | ClockQuestion | ClockAnswer | Ack | Bye | Busy

_decoder: msgspec.msgpack.Decoder[Word] = msgspec.msgpack.Decoder(Word)
_encoder = msgspec.msgpack.Encoder()


def word(content: Word) -> list[bytes]:
    """The frames of one such document."""
    return [WORD, _encoder.encode(content)]


def read_word(frames: list[bytes]) -> Word:
    """The document in these frames. Raises CodecError where there is none."""
    if len(frames) != 2:
        raise CodecError(f"{len(frames)} frames; expected a word of two")
    try:
        return _decoder.decode(frames[1])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
        raise CodecError(f"no word between gateways: {problem}") from problem
