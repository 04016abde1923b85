"""What goes with reliable events: a `Tag` there, a `Receipt` back; `Terms`: for whom, and for how long."""

from __future__ import annotations

import zlib
from typing import Annotated

import msgspec

from runtime.errors import CodecError
from runtime.message import Count

LIFESPAN_S, HOLD_S = 5.0, 1.0
MOST_KEPT = 1024
"""Messages of a topic that wait for an acknowledgement; no number is further ahead of the first that is missing."""

_CRC_BYTES = 4
_LONGEST_NAME = 64

Name = Annotated[str, msgspec.Meta(max_length=_LONGEST_NAME)]


class Terms(msgspec.Struct, frozen=True):
    """Of one topic: the processes that acknowledge its events, and for how long it is worth trying.

    An event is sent again for `lifespan_s`; later ones wait for it `hold_s`, with 0 not at all.
    """

    receivers: tuple[str, ...] = ()
    lifespan_s: float = LIFESPAN_S
    hold_s: float = HOLD_S


class Tag(msgspec.Struct, frozen=True, array_like=True):
    """`number` counts the messages of one topic that one `session` of a `sender` has sent, from 1.

    What is below `first` is acknowledged or given up: nobody need wait for it. `sent_ns` is the time of the first try.
    """

    sender: Name
    session: Count
    number: Count
    first: Count
    sent_ns: Count
    hold_ns: Count
    lifespan_ns: Count


class Settled(msgspec.Struct, frozen=True, array_like=True):
    """Of one topic: all numbers below `top` but those in `missing` (from, to; the latter not included)."""

    topic: str
    top: Count
    missing: tuple[tuple[Count, Count], ...] = ()


class Receipt(msgspec.Struct, frozen=True, array_like=True):
    """What a receiver, who hears since `since_ns`, has of one session of a sender."""

    receiver: Name
    since_ns: Count
    session: Count
    topics: tuple[Settled, ...]


_encoder = msgspec.msgpack.Encoder()
_tags = msgspec.msgpack.Decoder(Tag)
_receipts = msgspec.msgpack.Decoder(Receipt)


def write_tag(topic: bytes, tag: Tag) -> bytes:
    """The tag with its checksum, which covers the topic as well: one flipped bit must not spoil all later numbers."""
    body = _encoder.encode(tag)
    return zlib.crc32(body, zlib.crc32(topic)).to_bytes(_CRC_BYTES, "little") + body


def read_tag(topic: bytes, data: bytes) -> Tag:
    """Raises CodecError where these bytes are no tag of a message on that topic."""
    body = data[_CRC_BYTES:]
    if zlib.crc32(body, zlib.crc32(topic)) != int.from_bytes(data[:_CRC_BYTES], "little"):
        raise CodecError("the tag of a reliable message is damaged")
    try:
        tag = _tags.decode(body)
    except (msgspec.MsgspecError, UnicodeError) as problem:
        raise CodecError(f"not the tag of a reliable message: {problem}") from problem
    if not tag.first <= tag.number < tag.first + MOST_KEPT:
        raise CodecError(f"message {tag.number} cannot stand beside {tag.first}, which is still on its way")
    return tag


def write_receipt(receipt: Receipt) -> bytes:
    """As bytes."""
    return _encoder.encode(receipt)


def read_receipt(data: bytes) -> Receipt:
    """Raises CodecError where these bytes are no receipt."""
    try:
        return _receipts.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
        raise CodecError(f"not a receipt: {problem}") from problem
