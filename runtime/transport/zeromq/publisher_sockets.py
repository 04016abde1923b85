"""`PublisherSockets`: how a process sends to the others."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import zmq

from runtime.clock import SystemClock, to_ns
from runtime.message import Envelope, Kind, Message, array_fields
from runtime.serialization.arrays import is_numbers, write_array
from runtime.serialization.codec import (
    Frame,
    document_encoder,
    document_writer,
    encode_bundles,
    encode_parts,
    fingerprint,
    holds_arrays,
)
from runtime.transport import fast_lane
from runtime.transport.direct import INLINE_BYTES, DirectSender
from runtime.transport.fast_lane import LARGEST_FRAME, LARGEST_PACKET, LENGTH
from runtime.transport.reliable.tag import Terms
from runtime.transport.shared_memory import SHARED_FROM_BYTES, Pool, SlotAddress, sweep
from runtime.transport.zeromq.frames import (
    BUNDLE,
    NOBLOCK,
    PASSING,
    POLLIN,
    READY,
    WHOLE,
    announce,
    pack,
    send,
    send_one,
)
from runtime.transport.zeromq.retransmitter import Retransmitter
from runtime.transport.zeromq.sockets import KINDS, bind_outward, schedule

_POLL_S = 0.002
_LAST_RECEIPTS_S = 0.3
_LAST_EVENTS_S = 0.5
_NOTICES_EVERY = 256  # messages sent, between two looks at who came and went
_LOOK_EVENTS_NS = 20_000_000
_LOOK_NS = 100_000_000  # between two such looks where all go straight


class _Way:
    """One of the two sockets; whoever uses it holds its lock."""

    __slots__ = ("lock", "socket", "until_notices")

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self.socket = socket
        self.lock = threading.Lock()
        self.until_notices = _NOTICES_EVERY


class PublisherSockets:
    """The publishing side of a process; any thread may send."""

    def __init__(
        self,
        folder: Path,
        process: str,
        priority: int = 0,
        reliable: Mapping[str, Terms] | None = None,
        *,
        direct: Mapping[str, Collection[str]] | None = None,
        direct_events: Collection[str] = (),
        shared_from_bytes: int = SHARED_FROM_BYTES,
        has_own_threads: bool = True,
    ) -> None:
        """`priority` is the real-time priority of the sending threads; 0 leaves them ordinary. Without
        `has_own_threads` it sends by the threads that also read (`end_threads`), and the reading thread works its
        `resender`. `reliable` are the topics whose events are kept until they are acknowledged. `direct` names the
        topics that go directly to some processes, and to which; `direct_events` those of them that are events. Arrays
        smaller than `shared_from_bytes` travel inside their message.
        """
        self.kept: dict[str, Sequence[Frame]] = {}
        """The newest message of each topic that offers it to late joiners; its keys are set by the owner."""
        self._has_own_threads = has_own_threads
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
        if has_own_threads:
            self._context = zmq.Context()  # `close` waits for what is queued
            schedule(self._context, priority)
        self.ways: dict[Kind, _Way] = {}
        self._heads: dict[str, bytes] = {}
        self._subscribers: Counter[str] = Counter()  # by topic, over ZeroMQ; known a little late
        self._whole: Counter[str] = Counter()  # topic -> subscribers who cannot reach our shared memory
        sweep()  # what an earlier process left behind when it was killed
        self.pool = Pool()
        self._shared_from_bytes = shared_from_bytes
        self._told_problem = ""
        self.sender = DirectSender(folder, process, direct, direct_events) if direct else None
        self._look_ns = 0
        for kind in KINDS:
            socket = self._context.socket(zmq.XPUB)
            socket.setsockopt(zmq.XPUB_VERBOSER, 1)
            socket.setsockopt(zmq.LINGER, 500)
            bind_outward(socket, folder, process, kind)
            self.ways[kind] = _Way(socket)
        self.resender: Retransmitter | None = None
        reliable = {topic: terms for topic, terms in (reliable or {}).items() if terms.receivers}
        if reliable:
            events = self.ways["event"]
            self.resender = Retransmitter(
                *(self._context, folder, process, reliable),
                lock=events.lock,
                send=lambda frames: send(events.socket, frames),
            )
            if has_own_threads:
                self.resender.start(priority)

    async def await_subscribers(
        self,
        expected: Mapping[str, int],
        timeout_s: float,
        stop: asyncio.Event,
        connect: Callable[[], object] = lambda: None,
    ) -> list[str]:
        """Wait until each topic has so many subscribed processes; returns the topics that still lack some at the end.

        Tools do not count. `connect` is called repeatedly, because the others wait for this process as well.
        """
        missing = Counter(expected)
        clock = SystemClock()
        end_ns = clock.now_ns() + to_ns(timeout_s)
        while True:
            for way in self.ways.values():
                while way.socket.poll(0):
                    notice = way.socket.recv()
                    if notice[1:2] == READY:
                        continue
                    topic, change = self._note(notice)
                    if not notice.endswith(PASSING):
                        missing[topic] -= change
            connect()
            lacking = sorted({topic for topic, count in missing.items() if count > 0}.union(self._not_connected()))
            if not lacking or stop.is_set() or clock.now_ns() >= end_ns:
                return lacking
            await clock.sleep(_POLL_S)

    def _not_connected(self) -> list[str]:
        return [] if self.sender is None else self.sender.lacking()

    def publish(self, envelope: Envelope, message: Message) -> None:
        """Send to every subscriber, without waiting. A full queue drops the message, and the receiver sees a gap."""
        topic = envelope.topic
        document, arrays = encode_parts(envelope, message)
        way = self.ways[message.message_kind]
        if self.resender is not None and topic in self.resender.topics:
            with way.lock:
                self.resender.publish((topic.encode(), document, *arrays))
            return
        if arrays:
            self._publish_with(arrays, document, topic, way, message.message_kind, envelope.published_ns)
            return
        if self.sender is not None and topic in self.sender.topics:
            self.sender.send(topic, document, (), None, envelope.published_ns)
            if not self.is_heard(topic):
                return
        frame = (self._heads.get(topic) or self._head_of(topic)) + document
        with way.lock:
            if topic in self.kept:
                self.kept[topic] = (frame,)
            send_one(way.socket, frame, NOBLOCK)
            way.until_notices -= 1
            if not way.until_notices:
                self._look_for_notices(way)

    def writer(self, topic: str, message: type[Message]) -> Callable[[Envelope, Message], None]:
        """A faster `publish` for one topic, in as few steps as possible where all its receivers are direct.

        The common case has no arrays, or one contiguous array that finds a free slot. One call at a time.
        """
        if message.message_kind == "event" and not holds_arrays(message):
            return self._event_writer(topic, message)
        direct, names = self.sender, array_fields(message)
        if direct is None or topic not in direct.topics or topic in self.kept or (holds_arrays(message) and not names):
            return self.publish
        for count in (self._subscribers, self._whole):
            count[topic] += 0  # so that it is there: to look in vain in a Counter is a call of Python
        return (
            self._array_writer(topic, message, direct, names) if names else self._plain_writer(topic, message, direct)
        )

    def _plain_writer(
        self, topic: str, message: type[Message], direct: DirectSender
    ) -> Callable[[Envelope, Message], None]:
        """Of a sample without arrays."""
        fds, limited, due = direct.fds[topic], direct.limited[topic], direct.due
        general, look, subscribers, whole = self.publish, direct.look, self._subscribers, self._whole
        head, mark = topic.encode() + b"\0\0", fingerprint(message)
        encode, send_to, most = document_encoder(write_array), fast_lane.chosen.send, LARGEST_PACKET - len(head)

        def write(envelope: Envelope, message: Message) -> None:
            if not (fds or limited) or subscribers[topic] > 0 or whole[topic] > 0:
                return general(envelope, message)
            try:
                document = encode((mark, envelope, message))
            except Exception:  # noqa: BLE001  # it says why
                return general(envelope, message)
            if len(document) > most:
                return general(envelope, message)
            if send_to(head, document, due(topic, envelope.published_ns) if limited else fds):
                look()  # somebody has gone
            return None

        return write

    def _array_writer(
        self, topic: str, message: type[Message], direct: DirectSender, names: Sequence[str]
    ) -> Callable[[Envelope, Message], None]:
        """Of a sample whose first array goes through a slot of the pool, and whose others are None."""
        fds, limited, apart, due = direct.fds[topic], direct.limited[topic], direct.apart, direct.due
        general, look, subscribers, whole = self.publish, direct.look, self._subscribers, self._whole
        head, mark = topic.encode() + b"\0", fingerprint(message)
        name, others, segments, grace_ns = names[0], names[1:], self.pool.by_size, self.pool.grace_ns
        kinds: dict[Any, str] = {}
        held: list[Any] = [None]

        def hook(value: Any) -> object:
            if value is not held[0]:
                raise TypeError("another array")
            held[0] = None
            return (0, kinds[value.dtype], value.shape)

        encode = document_encoder(hook)

        def write_one(envelope: Envelope, message: Message) -> None:
            array: Any = getattr(message, name)
            if (
                array is None
                or not (fds or limited)
                or topic in apart
                or subscribers[topic] > 0
                or whole[topic] > 0
                or (segment := segments.get(array.nbytes)) is None
            ):
                return general(envelope, message)
            for other in others:
                if getattr(message, other) is not None:
                    return general(envelope, message)
            if array.dtype not in kinds:
                if not is_numbers(array.dtype.str):
                    return general(envelope, message)
                kinds[array.dtype] = array.dtype.str
            held[0] = array
            try:
                document = encode((mark, envelope, message))
            except Exception:  # noqa: BLE001  # it says why
                return general(envelope, message)
            now_ns = segment.used_ns = envelope.published_ns
            to = due(topic, now_ns) if limited else fds
            if not to:
                return None
            broken = segment.ring.send(array, now_ns, grace_ns, head, segment.key, document, to)
            if broken is None:
                return general(envelope, message)
            if broken:
                look()  # somebody has gone
            return None

        return write_one

    def _event_writer(self, topic: str, message: type[Message]) -> Callable[[Envelope, Message], None]:
        if self.resender is not None and topic in self.resender.topics:
            return self.publish
        if self.sender is not None and topic in self.sender.topics:
            return self._direct_event_writer(topic, message, self.sender)
        general, mark, way, encode = (
            self.publish,
            fingerprint(message),
            self.ways["event"],
            document_encoder(write_array),
        )
        head, acquire, release, socket = self._head_of(topic), way.lock.acquire, way.lock.release, way.socket

        def write(envelope: Envelope, message: Message) -> None:
            try:
                frame = head + encode((mark, envelope, message))
            except Exception:  # noqa: BLE001  # it says why
                return general(envelope, message)
            acquire()
            try:
                send_one(socket, frame, NOBLOCK)
                way.until_notices -= 1
                if not way.until_notices:
                    self._look_for_notices(way)
            finally:
                release()
            return None

        return write

    def _direct_event_writer(
        self, topic: str, message: type[Message], direct: DirectSender
    ) -> Callable[[Envelope, Message], None]:
        general, subscribers, to, look = self.publish, self._subscribers, direct.to, self.look
        mark, encode_into, offer = fingerprint(message), document_writer(write_array), fast_lane.chosen.offer
        subscribers[topic] += 0
        packet, look_ns = bytearray(bytes(LENGTH.size) + topic.encode() + b"\0\0"), 0
        begin = len(packet)

        def write(envelope: Envelope, message: Message) -> None:
            nonlocal look_ns
            receivers = to.get(topic)
            if receivers is None or subscribers[topic] > 0:
                return general(envelope, message)
            try:
                encode_into((mark, envelope, message), packet, begin)
            except Exception:  # noqa: BLE001  # it says why
                return general(envelope, message)
            if len(packet) > LARGEST_FRAME:
                return general(envelope, message)
            for one in receivers:
                # Without its lock: once a message of this thread waits, so do its later ones; others' have no order.
                is_sent = not one.waiting and offer(one.fd, packet)
                if not is_sent and not one.offer(bytes(packet[LENGTH.size :]), b"", b""):  # it is full, or has gone
                    direct.look()
            if envelope.published_ns > look_ns:  # behind the message: whoever came meanwhile gets the next one
                look_ns = envelope.published_ns + _LOOK_EVENTS_NS
                look()
            return None

        return write

    def _head_of(self, topic: str) -> bytes:
        """What stands before the document of a message without arrays."""
        head = self._heads[topic] = topic.encode() + PASSING + b"\0"
        return head

    def _publish_with(
        self, arrays: Sequence[Frame], document: bytes, topic: str, way: _Way, kind: Kind, published_ns: int
    ) -> None:
        name = topic.encode()
        whole: Sequence[Frame] = ()
        place = self._store(topic, arrays) if kind == "state" else None
        if self.sender is not None and topic in self.sender.topics:
            self.sender.send(topic, document, arrays, place, published_ns)
            if not self.is_heard(topic):
                return
        if place is None:
            packed = pack((name, document, *arrays))
        else:
            packed = announce(name, document, place)
            if self._whole[topic] > 0:
                whole = pack((WHOLE + name, document, *arrays))
        with way.lock:
            if topic in self.kept:
                self.kept[topic] = packed
            send(way.socket, packed)
            if whole:
                send(way.socket, whole)
            way.until_notices -= 1
            if not way.until_notices:
                self._look_for_notices(way)

    def is_heard(self, topic: str) -> bool:
        """Whether the topic has a subscriber over ZeroMQ; one that just came may be missed for a tenth of a second."""
        if SystemClock.now_ns() > self._look_ns:
            self.look()
        return self._subscribers[topic] > 0 or self._whole[topic] > 0

    @property
    def notices_fds(self) -> list[int]:
        """Descriptors that are readable when `look` may have work; ZeroMQ signals each once, and not always."""
        return [int(way.socket.getsockopt(zmq.FD)) for way in self.ways.values()]

    def look(self) -> None:
        """Note which readers have come or gone over ZeroMQ (any thread)."""
        self._look_ns = SystemClock.now_ns() + _LOOK_NS
        for way in self.ways.values():
            with way.lock:
                self._look_for_notices(way)

    def publish_all(self, envelope: Envelope, messages: Sequence[Message]) -> None:
        """Send messages without arrays that were published together; `envelope` is that of the first."""
        topic = envelope.topic
        if topic in self.kept or (self.resender is not None and topic in self.resender.topics):
            for number, message in enumerate(messages):
                self.publish(envelope.later(number), message)
            return
        way = self.ways[messages[0].message_kind]
        head = topic.encode() + PASSING + BUNDLE
        direct = self.sender if self.sender is not None and topic in self.sender.topics else None
        for document in encode_bundles(envelope, messages):
            if direct is not None:
                direct.send(topic, document, (), None, envelope.published_ns, is_bundle=True)
                if not self.is_heard(topic):
                    continue
            with way.lock:
                send_one(way.socket, head + document, NOBLOCK)
                way.until_notices -= 1
                if not way.until_notices:
                    self._look_for_notices(way)

    def _store(self, topic: str, arrays: Sequence[Frame]) -> SlotAddress | None:
        """Where the arrays of a message lie in shared memory; None where they have to travel inside it.

        Only states go there, where a newer one may overwrite one that nobody has taken in yet; and not those that are
        kept for late joiners, for the same reason.
        """
        is_direct = self.sender is not None and topic in self.sender.topics
        if sum(map(len, arrays)) < (INLINE_BYTES + 1 if is_direct else self._shared_from_bytes) or topic in self.kept:
            return None
        place = self.pool.store(arrays)
        if place is None and self.pool.problem != self._told_problem:
            self._told_problem = self.pool.problem
            logging.getLogger("bus").warning("%s; large messages travel whole, which costs more", self._told_problem)
        return place

    def _note(self, notice: bytes) -> tuple[str, int]:
        """The topic that somebody has subscribed to (1) or leaves (-1)."""
        change = 1 if notice[:1] == b"\x01" else -1
        topic = notice[1:].rstrip(b"\0").decode(errors="replace")
        if topic.startswith(WHOLE.decode()):
            topic = topic[1:]
            self._whole[topic] += change
        else:
            self._subscribers[topic] += change
        return topic, change

    def _look_for_notices(self, way: _Way) -> None:
        way.until_notices = _NOTICES_EVERY
        self._send_late_join(way.socket)

    def send_late_join(self) -> None:
        """Send the newest states to readers that came since the last call (any thread)."""
        if self.sender is not None:
            self.sender.look()
        for way in self.ways.values():
            with way.lock:
                self._send_late_join(way.socket)

    def _send_late_join(self, socket: zmq.Socket[bytes]) -> None:
        joined = set()
        while int(socket.getsockopt(zmq.EVENTS)) & POLLIN:  # ZeroMQ keeps these notices until somebody reads them
            topic, change = self._note(socket.recv(NOBLOCK))
            if change > 0:
                joined.add(topic)
        for topic in joined:
            if frames := self.kept.get(topic):
                send(socket, frames)  # to those too who have it already; they know it by its number

    @property
    def is_acknowledged(self) -> bool:
        """Whether no reliable event waits for an acknowledgement (any thread)."""
        return self.resender is None or self.resender.is_empty

    def unacknowledged(self) -> dict[str, dict[str, int]]:
        """How many reliable events were not acknowledged, by topic and "process: reason" (any thread)."""
        return self.resender.unacknowledged() if self.resender is not None else {}

    def settle(self) -> None:
        """Wait a moment for the last receipts; the thread that works the `resender` must go on meanwhile."""
        if self.resender is not None:
            self.resender.settle(_LAST_RECEIPTS_S)

    def close(self) -> None:
        """Send what is queued, for at most half a second, and close."""
        if self._has_own_threads:
            self.settle()
        if self.resender is not None:
            self.resender.close()
        if self.sender is not None:
            self.sender.settle(_LAST_EVENTS_S)
            self.sender.close()
        for way in self.ways.values():
            with way.lock:
                way.socket.close()
        if self._has_own_threads:
            self._context.term()
        self.pool.close()
