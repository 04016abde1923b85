"""The frames of a message over ZeroMQ: topic and document in one, and the arrays in further frames or elsewhere.

The first frame is the topic, two zero bytes, the number of array frames as a byte, and the document. Other values of
that byte mean:

- SHARED: the arrays lie in shared memory; their address follows, with its length before it, and no frame comes after.
- TAGGED: a reliable event; the number of arrays, the tag's length and the tag follow.
- BUNDLE: the document holds several messages.

A reader that cannot reach the shared memory subscribes to the topic with WHOLE before it, and gets the arrays in
frames. An event that is sent again to one process has AGAIN, that process's name and a zero byte before the topic.
Processes subscribe to the topic and one zero byte, tools to both, so that the publisher can tell them apart. So no
topic is the prefix of another.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import zmq
import zmq.backend

from runtime.serialization.codec import Frame
from runtime.transport.shared_memory import SlotAddress

MAX_MESSAGE_BYTES = 64 << 20
COUNTED = b"\0"
PASSING = b"\0\0"
SHARED = b"\x80"
TAGGED = b"\x81"
BUNDLE = b"\x82"
WHOLE, AGAIN = b"\x01", b"\x02"
READY = b"\xff"  # with its name after it: an inlet's subscription that tells an injector that it is connected

# Plain numbers: pyzmq's flags are enumerations, slow to combine and to convert.
POLLIN = int(zmq.POLLIN)
NOBLOCK, _NOBLOCK_MORE, _RCVMORE = int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE), int(zmq.RCVMORE)

send_one = zmq.backend.Socket.send  # what `zmq.Socket.send` calls after it has looked for routing and groups
_place_encoder = msgspec.msgpack.Encoder()


def send(socket: zmq.Socket[bytes], frames: Sequence[Frame]) -> None:
    """Send frames without waiting."""
    if len(frames) > 1:
        for frame in frames[:-1]:
            send_one(socket, frame, _NOBLOCK_MORE)
    send_one(socket, frames[-1], NOBLOCK)


def pack(frames: Sequence[Frame]) -> Sequence[Frame]:
    """The frames of a topic, a document and arrays; topic and document share one, which costs less."""
    topic, document, *arrays = frames
    return (b"".join((topic, PASSING, bytes((len(arrays),)), document)), *arrays)


def announce(topic: bytes, document: bytes, place: SlotAddress) -> Sequence[Frame]:
    """The frame of a message whose arrays lie in shared memory."""
    where = _place_encoder.encode(place)
    return (b"".join((topic, PASSING, SHARED, len(where).to_bytes(2, "little"), where, document)),)


def pack_tagged(frames: Sequence[Frame], tag: bytes, receiver: str = "") -> Sequence[Frame]:
    """The frames of a reliable event, to everybody or to one receiver."""
    topic, document, *arrays = frames
    begin = again(receiver) if receiver else b""
    return [b"".join((begin, topic, PASSING, TAGGED, bytes((len(arrays), len(tag))), tag, document)), *arrays]


def again(receiver: str) -> bytes:
    """The prefix of the topic of an event that is sent to one process alone."""
    return b"".join((AGAIN, receiver.encode(), b"\0"))


def is_bundle(head: bytes) -> bool:
    """Whether the message with this first frame is a bundle of several."""
    end = head.find(PASSING) + len(PASSING)
    return head[end : end + 1] == BUNDLE


def unpack(head: bytes, socket: zmq.Socket[bytes]) -> tuple[bytes, list[Frame], bytes | None, bytes | None]:
    """Topic, document and arrays of a message, the address of arrays elsewhere, and the tag, from its first frame."""
    end = head.find(PASSING)
    topic = head[:end]
    if topic[:1] == WHOLE:
        topic = topic[1:]
    elif topic[:1] == AGAIN:
        topic = topic.rpartition(b"\0")[2]
    mark = head[end + 2 : end + 3] if end >= 0 else b""
    if mark == SHARED:
        begin = end + 5
        middle = begin + int.from_bytes(head[end + 3 : begin], "little")
        return topic, [head[middle:]], head[begin:middle], None
    tag, begin = None, end + 3
    if mark == TAGGED:
        mark, begin = head[end + 3 : end + 4], end + 5
        middle = begin + int.from_bytes(head[end + 4 : begin], "little")
        tag, begin = head[begin:middle], middle
    frames: list[Frame] = [head[begin:]]
    if mark != b"\0":
        while socket.get(_RCVMORE):
            frames.append(socket.recv(NOBLOCK))
    return topic, frames, None, tag
