"""The data that travels with reliable events: a `Tag` with the event, a `Receipt` back, and the `Terms` of a topic."""

from __future__ import annotations

import zlib
from typing import Annotated

import msgspec

from runtime.errors import CodecError
from runtime.message import Count

MOST_KEPT = 1024
"""Most unacknowledged messages of a topic; no number runs further ahead of the first missing one."""

_CRC_BYTES = 4
_LONGEST_NAME = 64

Name = Annotated[str, msgspec.Meta(max_length=_LONGEST_NAME)]


class Terms(msgspec.Struct, frozen=True):
    """The processes that acknowledge a topic's events, and how long it is worth trying.

    An event is sent again for `lifespan_s`. Later ones wait for it for `hold_s`; 0 means that they do not wait.
    """

    receivers: tuple[str, ...]
    lifespan_s: float
    hold_s: float


class Tag(msgspec.Struct, frozen=True, array_like=True):
    """Numbers an event: `number` counts from 1 the messages of one topic that one `session` of a `sender` sent.

    Numbers below `first` are acknowledged or given up: nobody need wait for them. `sent_ns` is when it was first sent.
    """

    sender: Name
    session: Count
    number: Count
    first: Count
    sent_ns: Count
    hold_ns: Count
    lifespan_ns: Count


class Settled(msgspec.Struct, frozen=True, array_like=True):
    """What a receiver has of one topic: all numbers below `top`, except the ranges in `missing`, without their ends."""

    topic: str
    top: Count
    missing: tuple[tuple[Count, Count], ...] = ()


class Receipt(msgspec.Struct, frozen=True, array_like=True):
    """What a receiver, which listens since `since_ns`, has of one session of a sender."""

    receiver: Name
    since_ns: Count
    session: Count
    topics: tuple[Settled, ...]


_encoder = msgspec.msgpack.Encoder()
_tags = msgspec.msgpack.Decoder(Tag)
_receipts = msgspec.msgpack.Decoder(Receipt)


def write_tag(topic: bytes, tag: Tag) -> bytes:
    """The tag as bytes, with a checksum that covers the topic: one flipped bit must not spoil all later numbers."""
    body = _encoder.encode(tag)
    return zlib.crc32(body, zlib.crc32(topic)).to_bytes(_CRC_BYTES, "little") + body


def read_tag(topic: bytes, data: bytes) -> Tag:
    """The tag in these bytes. Raises CodecError where they are no tag of a message on that topic."""
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
    """The receipt as bytes."""
    return _encoder.encode(receipt)


def read_receipt(data: bytes) -> Receipt:
    """The receipt in these bytes. Raises CodecError where they are none."""
    try:
        return _receipts.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
        raise CodecError(f"not a receipt: {problem}") from problem
