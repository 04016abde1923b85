"""What two gateways say to each other. A message of a topic keeps its frames; all else is one small document."""

from __future__ import annotations

from typing import Any

import msgspec

from runtime.errors import CodecError

MESSAGE, STATE, IMAGE, EVENT, RECEIPT, WORD = b"M", b"S", b"I", b"E", b"R", b"W"
"""First frame: a topic's message as it is; a state that comes by several ways, with its number; one made small,
with its number; a reliable event, with its tag; which of those have come; a word between the gateways."""


class HostHello(msgspec.Struct, frozen=True, tag="hello"):
    """Who speaks, and what for; repeated until it is answered."""

    host: str
    session: str  # a new one each time the gateway starts
    graph: str  # fingerprint of the nodes, topics and message types: both ends must run the same
    is_reply: bool = False


class ClockQuestion(msgspec.Struct, frozen=True, tag="ask"):
    """What is your clock? Also the proof of life."""

    sent_ns: int
    session: str


class ClockAnswer(msgspec.Struct, frozen=True, tag="answer"):
    """It was `there_ns` when I read your question."""

    sent_ns: int
    there_ns: int


class Ack(msgspec.Struct, frozen=True, tag="ack"):
    """The image of that number has come."""

    number: int


class Bye(msgspec.Struct, frozen=True, tag="bye"):
    """The run here ends. With an outcome, it ends everywhere."""

    ok: bool | None = None
    reason: str = ""


class Busy(msgspec.Struct, frozen=True, tag="busy"):
    """Another gateway of your host is connected here, and stays."""


Word = HostHello | ClockQuestion | ClockAnswer | Ack | Bye | Busy

_decoder: msgspec.msgpack.Decoder[Word] = msgspec.msgpack.Decoder(Word)
_encoder = msgspec.msgpack.Encoder()


def word(content: Word) -> list[bytes]:
    """The frames of a word."""
    return [WORD, _encoder.encode(content)]


def read_word(frames: list[bytes]) -> Word:
    """The word in some frames. Raises CodecError where they hold none."""
    if len(frames) != 2:
        raise CodecError(f"{len(frames)} frames; expected a word of two")
    try:
        return _decoder.decode(frames[1])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
        raise CodecError(f"no word between gateways: {problem}") from problem


def number_frame(number: int) -> bytes:
    """A number as a frame."""
    return number.to_bytes(8, "big")


def read_number(frame: Any) -> int:
    """The number of a frame. Raises CodecError."""
    if len(frame) != 8:
        raise CodecError("no number of an image")
    return int.from_bytes(frame, "big")
