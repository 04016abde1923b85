"""`Reader`: what other processes publish, taken in by the thread that needs it."""

from __future__ import annotations

import os
import select
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import zmq
from zmq.backend import zmq_poll

from runtime.codec import Frame, decode, decode_envelope
from runtime.errors import CodecError, TransportError
from runtime.message import Envelope, Kind, Message, Stamped, array_fields
from runtime.reliable.tag import read_tag
from runtime.shared_memory import Place, Views
from runtime.zeromq.ends import Ends
from runtime.zeromq.frames import COUNTED, NOBLOCK, PASSING, WHOLE, again, unpack
from runtime.zeromq.receipts import Receipts
from runtime.zeromq.sockets import (
    DEEP_QUEUE_LENGTH,
    KINDS,
    QUEUE_LENGTH,
    Depth,
    bind_inward,
    deep_endpoint,
    endpoint,
    subscriber,
)

_POLLIN = int(zmq.POLLIN)
_WIDEST_GAP = 1_000_000  # messages counted as lost at once: a damaged number must not spoil the count for good
_BURST = 16  # events received between two looks at the sockets
_FAILURES = 3  # of one segment, before a reader asks for whole messages

_place_decoder = msgspec.msgpack.Decoder(Place)


class Reader:
    """Subscriptions to other processes, read by one thread: `wait` until something comes, then `drain` it."""

    def __init__(
        self,
        types: Mapping[str, type[Message]],
        deliver: Callable[[Stamped[Any]], None],
        lost: Callable[[str, str, int], None],
        *,
        is_counted: bool = True,
        is_deep: bool = False,
        watches_ends: bool = False,
        receiver: str = "",
        reliable: Collection[str] = (),
    ) -> None:
        """`is_counted`: publishers wait for it when they start; not so for those who only watch.

        `is_deep`: it queues states, too, where others are content with the newest. `watches_ends`: for `finish`.
        `receiver`: the process in whose name it acknowledges events on the `reliable` topics.
        """
        self._is_deep = is_deep
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
        self._types = {topic.encode(): message for topic, message in types.items()}
        self._end = COUNTED if is_counted else PASSING
        self._deliver = deliver
        self._lost = lost
        self._last: dict[tuple[str, str], tuple[int, int]] = {}  # sequence and time of publication
        self._receiver, self._reliable = receiver, frozenset(topic.encode() for topic in reliable if receiver)
        self._receipts: Receipts | None = None
        self._elsewhere = Elsewhere(self._end)
        self._sockets: dict[Kind, list[zmq.Socket[bytes]]] = {kind: [] for kind in KINDS}
        self._polled: list[tuple[Any, int]] = []
        self._ready: list[tuple[Any, int]] = []
        self._fds: list[int] = []
        self._is_fresh = False
        self._is_woken = False
        self._ends: list[Ends] | None = [] if watches_ends else None
        self._wake_reader, self._wake_writer = os.pipe()
        for fd in (self._wake_reader, self._wake_writer):
            os.set_blocking(fd, False)

    def connect(self, folder: Path, processes: Iterable[str]) -> None:
        """Subscribe to the topics given, at each of these processes. Call before the first `wait`."""
        processes = tuple(processes)
        if self._reliable & self._types.keys():
            self._receipts = Receipts(folder, processes, self._receiver, self._deliver, self._lost)
        for kind in KINDS:
            topics = [topic for topic, message in self._types.items() if message.message_kind == kind]
            if not topics:
                continue
            for depth, own in self._queues(kind, topics):
                socket = subscriber(self._context, QUEUE_LENGTH[kind] if depth is None else DEEP_QUEUE_LENGTH[depth])
                self._sockets[kind].append(socket)
                for topic in own:
                    socket.setsockopt(zmq.SUBSCRIBE, topic + self._end)
                for topic in self._reliable.intersection(own):
                    socket.setsockopt(zmq.SUBSCRIBE, again(self._receiver) + topic + self._end)
                if self._ends is not None:
                    self._ends.append(Ends(socket))
                for process in processes:
                    socket.connect(
                        endpoint(folder, process, kind) if depth is None else deep_endpoint(folder, process, depth)
                    )
        self._list_sockets()

    def _queues(self, kind: Kind, topics: list[bytes]) -> list[tuple[Depth | None, list[bytes]]]:
        """How deep ZeroMQ's queues are, here and at the sender, and for which topics; None: as usual."""
        if not self._is_deep or kind == "event":
            return [(None, topics)]
        large = [topic for topic in topics if array_fields(self._types[topic])]
        small = [topic for topic in topics if topic not in large]
        queues: list[tuple[Depth | None, list[bytes]]] = [("deep", small), ("arrays", large)]
        return [(depth, own) for depth, own in queues if own]

    def _list_sockets(self) -> None:
        sockets = [socket for kind in KINDS for socket in self._sockets[kind]]  # events stand first
        self._polled = [*((socket, _POLLIN) for socket in sockets), (self._wake_reader, _POLLIN)]
        self._fds = [self._wake_reader, *(int(socket.getsockopt(zmq.FD)) for socket in sockets)]

    def accept(self, folder: Path, name: str, types: Mapping[str, type[Message]] | None = None) -> None:
        """Take in what tools publish, on these topics too. Raises TransportError; call before the first `wait`."""
        self._types.update((topic.encode(), message) for topic, message in (types or {}).items())
        sockets = {kind: subscriber(self._context, QUEUE_LENGTH[kind]) for kind in KINDS}
        for kind, socket in sockets.items():
            self._sockets[kind].append(socket)
        for topic, message in self._types.items():
            sockets[message.message_kind].setsockopt(zmq.SUBSCRIBE, topic + self._end)
        bind_inward(sockets, folder, name)
        self._list_sockets()

    def wait(self, timeout_s: float | None) -> None:
        """Return once a message may have come, `wake` was called, or the time is over; None: no time."""
        self._is_fresh = True
        if self._receipts is not None and self._receipts.is_due:
            next_s = self._receipts.tell()
            if next_s is not None:
                timeout_s = next_s if timeout_s is None else min(timeout_s, next_s)
        if timeout_s is None:
            self._ready = zmq_poll(self._polled, -1)
        else:
            select.select(self._fds, (), (), timeout_s)  # ZeroMQ's own wait counts in milliseconds

    def wake(self) -> None:
        """End the wait that is on, or the next one (any thread)."""
        if not self._is_woken:
            self._is_woken = True
            try:
                os.write(self._wake_writer, b"w")
            except OSError:
                pass  # closed: the process is stopping

    def drain(self, limit: int) -> int:
        """Deliver what has come, at most that many messages, events first; return how many there were.

        ZeroMQ signals only what is new: `wait` is right only after a `drain` that returned 0.
        """
        if self._receipts is not None and self._receipts.is_due:
            self._receipts.tell()  # also where messages never cease
        if self._is_fresh:  # something has just ended a wait: hand it over at once
            self._is_fresh = False
            ready, self._ready = self._ready or zmq_poll(self._polled, 0), []
            if number := self._take_ready(ready, 1, limit):
                return number
        number = 0
        while number < limit:
            taken = self._take_ready(zmq_poll(self._polled, 0), _BURST, limit - number)
            if not taken:
                break
            number += taken
        return number

    def _take_ready(self, ready: list[tuple[Any, int]], burst: int, limit: int) -> int:
        number = 0
        for socket, _ in ready:
            if isinstance(socket, int):
                os.read(self._wake_reader, 64)
                self._is_woken = False  # before the caller looks for what it was woken for
            elif socket in self._sockets["event"]:
                number += self._take_burst(socket, min(burst, limit - number))
            elif number < limit:
                number += self._take_burst(socket, 1)  # an event may have come meanwhile
        return number

    def drain_states(self, limit: int) -> None:
        """Deliver the states that have come; events stay where they are, in order and not yet counted."""
        for socket in self._sockets["state"]:
            self._take_burst(socket, limit)

    def drain_events(self, limit: int) -> None:
        """Deliver the events that have come, at most that many; states stay where they are."""
        for socket in self._sockets["event"]:
            limit -= self._take_burst(socket, limit)

    def _take_burst(self, socket: zmq.Socket[bytes], burst: int) -> int:
        for number in range(burst):
            try:
                frame = socket.recv(NOBLOCK)
            except zmq.Again:
                return number
            self._take(frame, socket)
        return burst

    def close(self) -> None:
        """Close the sockets; nobody may wait or drain any more."""
        for ends in self._ends or ():
            ends.close()
        for sockets in self._sockets.values():
            for socket in sockets:
                socket.close()
        os.close(self._wake_reader)
        os.close(self._wake_writer)
        self._elsewhere.close()
        if self._receipts is not None:
            self._receipts.close()

    def _take(self, frame: bytes, socket: zmq.Socket[bytes]) -> None:
        topic, frames, place, tag = unpack(frame, socket)
        message = self._types.get(topic)
        if message is None:
            return
        if tag is not None and self._receipts is not None and topic in self._reliable:
            self._take_reliable(self._receipts, topic, message, tag, frames)
            return
        try:
            if place is not None:
                arrays = self._elsewhere.fetch(topic, place, socket)
                if isinstance(arrays, str):
                    self._lose(topic, frames[0], arrays)
                    return
                frames += arrays
            stamped = decode([topic, *frames], message)
        except CodecError as problem:
            self._lose(topic, frames[0], f"garbled: {problem}")
            return
        if self._is_new(stamped.envelope):
            self._deliver(stamped)

    def _take_reliable(
        self, receipts: Receipts, topic: bytes, message: type[Message], tag: bytes, frames: Sequence[Frame]
    ) -> None:
        name = topic.decode()
        try:
            read = read_tag(topic, tag)
        except CodecError as problem:
            self._lost(name, f"garbled: {problem}", 1)
            return
        try:
            stamped = decode([topic, *frames], message)
        except CodecError as problem:
            if receipts.take(name, read, None):
                self._lost(name, f"garbled: {problem}", 1)
            return
        receipts.take(name, read, stamped)

    def _is_new(self, envelope: Envelope) -> bool:
        """Count what is missing before this message; False where it has come before."""
        key = (envelope.topic, envelope.source)
        last = self._last.get(key)
        if last is not None:
            last_seq, last_ns = last
            if envelope.seq == last_seq and envelope.published_ns == last_ns:
                return False  # sent again for somebody who came late
            if envelope.seq > last_seq + 1:
                self._lost(envelope.topic, "link", min(envelope.seq - last_seq - 1, _WIDEST_GAP))
        self._last[key] = (envelope.seq, envelope.published_ns)
        return True

    def _lose(self, topic: bytes, document: Frame, reason: str) -> None:
        """Count a message that came and cannot be used, once: its number is not missed as well."""
        try:
            envelope = decode_envelope(document)
            if envelope.topic.encode() == topic:
                self._is_new(envelope)
        except CodecError:
            pass  # then its number is counted as missing with the next one
        self._lost(topic.decode(errors="replace"), reason, 1)


class Elsewhere:
    """Fetches arrays that lie in shared memory; where it cannot, it subscribes to whole messages instead."""

    def __init__(self, end: bytes) -> None:
        self._end = end
        self._views = Views()
        self._failures: Counter[str] = Counter()  # by segment

    def fetch(self, topic: bytes, place: bytes, socket: zmq.Socket[bytes]) -> Sequence[Frame] | str:
        """The arrays, or the reason why they are lost. Raises CodecError where these bytes are no place."""
        try:
            where = _place_decoder.decode(place)
            return self._views.take(where) or "overwritten"
        except (msgspec.MsgspecError, ValueError) as problem:
            raise CodecError(f"not a place in shared memory: {problem}") from problem
        except TransportError as problem:
            self._failures[where.segment] += 1
            if self._failures[where.segment] == _FAILURES:  # not one that has just gone with its writer
                socket.setsockopt(zmq.SUBSCRIBE, WHOLE + topic + self._end)
                socket.setsockopt(zmq.UNSUBSCRIBE, topic + self._end)
            return f"unreachable: {problem}"

    def close(self) -> None:
        """Forget the memory; arrays in use stay good."""
        self._views.close()
