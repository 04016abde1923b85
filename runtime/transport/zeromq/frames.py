"""What ZeroMQ carries of a message: topic and document in one frame, and the arrays in further frames or elsewhere.

The first frame is the topic, two zero bytes, the number of arrays that follow as a byte, and the document. Where the
arrays lie in shared memory that byte is SHARED, the place follows with its length before it, and no frame comes
after. Who cannot reach that memory subscribes to the topic with WHOLE before it, and gets the arrays in frames.
Of a reliable event that byte is TAGGED, and the number of arrays, the tag's length and the tag follow it. What is sent
again to one process alone has AGAIN, that process's name and a zero byte before the topic. Where the document holds
several messages that byte is BUNDLE.
Processes subscribe to the topic and one zero byte, tools to both of them, so that the publisher can tell them apart;
and no topic is the prefix of another.
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
SHARED_FROM_BYTES = 128 << 10
"""From this size on arrays go through shared memory; see docs/decisions/shared-memory.md."""
READY = b"\xff"  # with its name after it: an inlet's subscription that tells an injector that it is connected

# Plain numbers: pyzmq's flags are enumerations, slow to combine and to convert.
NOBLOCK, _NOBLOCK_MORE, _RCVMORE = int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE), int(zmq.RCVMORE)

send_one = zmq.backend.Socket.send  # what `zmq.Socket.send` calls after it has looked for routing and groups
_place_encoder = msgspec.msgpack.Encoder()


def send(socket: zmq.Socket[bytes], frames: Sequence[Frame]) -> None:
    """Send without waiting."""
    if len(frames) > 1:
        for frame in frames[:-1]:
            send_one(socket, frame, _NOBLOCK_MORE)
    send_one(socket, frames[-1], NOBLOCK)


def pack(frames: Sequence[Frame]) -> Sequence[Frame]:
    """What ZeroMQ carries of a topic, a document and arrays: the first two as one, which costs less."""
    topic, document, *arrays = frames
    return (b"".join((topic, PASSING, bytes((len(arrays),)), document)), *arrays)


def announce(topic: bytes, document: bytes, place: SlotAddress) -> Sequence[Frame]:
    """What ZeroMQ carries of a message whose arrays lie in shared memory."""
    where = _place_encoder.encode(place)
    return (b"".join((topic, PASSING, SHARED, len(where).to_bytes(2, "little"), where, document)),)


def pack_tagged(frames: Sequence[Frame], tag: bytes, receiver: str = "") -> Sequence[Frame]:
    """What ZeroMQ carries of a reliable event, to everybody or to one receiver."""
    topic, document, *arrays = frames
    begin = again(receiver) if receiver else b""
    return [b"".join((begin, topic, PASSING, TAGGED, bytes((len(arrays), len(tag))), tag, document)), *arrays]


def again(receiver: str) -> bytes:
    """What stands before the topic of an event that is sent to one process alone."""
    return b"".join((AGAIN, receiver.encode(), b"\0"))


def is_bundle(head: bytes) -> bool:
    """Whether the document of a message with this first frame holds several messages."""
    end = head.find(PASSING) + len(PASSING)
    return head[end : end + 1] == BUNDLE


def unpack(head: bytes, socket: zmq.Socket[bytes]) -> tuple[bytes, list[Frame], bytes | None, bytes | None]:
    """Of a message with this first frame: topic, document and arrays, the place of arrays elsewhere, and the tag."""
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
