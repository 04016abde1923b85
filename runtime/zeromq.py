"""The ZeroMQ transport between processes; only this file and `zeromq_tools` import `zmq`.

Each process binds two XPUB sockets, one for events and one for states, so that an image never stands before an
interrupt; each connects to those of the others and subscribes to the topics that it needs. A control loop that alone
wants a topic reads its own `Reader`, with no thread between; all else comes by the process's `Inlet`, a reader with one
thread, which hands over what it decoded.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import zmq
from zmq.backend import zmq_poll
from zmq.utils.monitor import recv_monitor_message

from runtime.clock import SystemClock, to_ns
from runtime.codec import Frame, decode, decode_envelope, encode
from runtime.errors import CodecError, TransportError
from runtime.message import Envelope, Kind, Message, Stamped, array_fields
from runtime.scheduling import ask_for_fifo
from runtime.shared_memory import Place, Pool, Views, sweep

QUEUE_LENGTH: dict[Kind, int] = {"event": 4096, "state": 16}
DEEP_QUEUE_LENGTH, DEEP_ARRAYS_LENGTH = 4096, 64
"""Of states, for a process whose recorder must miss none: those without arrays, and those with."""
TAP_QUEUE_LENGTH: dict[Kind, int] = {"event": 4096, "state": 64}
MAX_MESSAGE_BYTES = 64 << 20
_POLL_S = 0.005
_PER_TURN = 256  # messages, then look whether to stop
_WIDEST_GAP = 1_000_000  # messages counted as lost at once: a damaged number must not spoil the count for good
_BURST = 16  # events received between two looks at the sockets
_NOTICES_EVERY = 256  # messages sent, between two looks at who came and went
KINDS: tuple[Kind, Kind] = ("event", "state")

# Plain numbers: pyzmq's flags are enumerations, slow to combine and to convert.
_POLLIN, _RCVMORE = int(zmq.POLLIN), int(zmq.RCVMORE)
_NOBLOCK, _NOBLOCK_MORE = int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE)

# The first frame is the topic, two zero bytes, the number of arrays that follow as a byte, and the document. Where the
# arrays lie in shared memory that byte is _SHARED, the place follows with its length before it, and no frame comes
# after. Who cannot reach that memory subscribes to the topic with _WHOLE before it, and gets the arrays in frames.
# Processes subscribe to the topic and one zero byte, tools to both of them, so that the publisher can tell them apart;
# and no topic is the prefix of another.
_COUNTED = b"\0"
PASSING = b"\0\0"
_SHARED = b"\x80"
_WHOLE = b"\x01"
SHARED_FROM_BYTES = 32 << 10
"""From this size on arrays go through shared memory; see docs/decisions/shared-memory.md."""

_FAILURES = 3  # of one segment, before a reader asks for whole messages
READY = b"\xff"  # with its name after it: an inlet's subscription that tells an injector that it is connected


def endpoint(folder: Path, process: str, kind: Kind) -> str:
    """Where a process of a run publishes messages of that kind."""
    return f"ipc://{folder / f'{process}.{kind}'}"


def inward_endpoint(folder: Path, name: str, kind: Kind) -> str:
    """Where a process of a run, or a tool, takes in what tools publish."""
    return f"ipc://{folder / f'{name}.in.{kind}'}"


def endpoints(folder: Path, process: str) -> list[Path]:
    """The sockets of a process, as files."""
    return [folder / f"{process}{way}.{kind}" for way in ("", ".in") for kind in KINDS]


def _schedule(context: zmq.Context[zmq.Socket[bytes]], priority: int) -> None:
    """Let ZeroMQ's own threads run with SCHED_FIFO; before the first socket, and only where that is granted."""
    if priority:
        context.set(zmq.THREAD_SCHED_POLICY, os.SCHED_FIFO)
        context.set(zmq.THREAD_PRIORITY, priority)


def schedule_readers(priority: int) -> None:
    """Set the priority of the transport's threads that bring messages to this process; before the first reader."""
    _schedule(zmq.Context.instance(), priority)


class Outlet:
    """The publishing side of a process; any thread may send."""

    def __init__(self, folder: Path, process: str, priority: int = 0) -> None:
        """`priority`: real-time priority of the thread that sends; 0 leaves it ordinary."""
        self.kept: dict[str, Sequence[Frame]] = {}
        """The newest message of each topic that offers it to late joiners; its keys are set by the owner."""
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()  # its own: `close` waits for what is queued
        _schedule(self._context, priority)
        self._locks: dict[Kind, threading.Lock] = {kind: threading.Lock() for kind in KINDS}
        self._sockets: dict[Kind, zmq.Socket[bytes]] = {}
        self._until_notices: dict[Kind, int] = dict.fromkeys(KINDS, _NOTICES_EVERY)
        self._whole: Counter[str] = Counter()  # topic -> subscribers who cannot reach our shared memory
        sweep()  # what an earlier process left behind when it was killed
        self._pool = Pool()
        self._told_problem = ""
        for kind in KINDS:
            socket = self._context.socket(zmq.XPUB)
            socket.setsockopt(zmq.SNDHWM, QUEUE_LENGTH[kind])
            socket.setsockopt(zmq.XPUB_VERBOSER, 1)
            socket.setsockopt(zmq.LINGER, 500)
            address = endpoint(folder, process, kind)
            try:
                socket.bind(address)
            except zmq.ZMQError as problem:
                raise TransportError(f"{address} cannot be bound: {problem}") from problem
            self._sockets[kind] = socket

    async def await_subscribers(self, expected: Mapping[str, int], timeout_s: float, stop: asyncio.Event) -> list[str]:
        """Wait until each topic has that many processes subscribed; return the topics that still lack some at the end.

        Tools that hear a topic are not counted.
        """
        missing = Counter(expected)
        clock = SystemClock()
        end_ns = clock.now_ns() + to_ns(timeout_s)
        while True:
            for socket in self._sockets.values():
                while socket.poll(0):
                    notice = socket.recv()
                    if notice[1:2] == READY:
                        continue
                    topic, change = self._note(notice)
                    if not notice.endswith(PASSING):
                        missing[topic] -= change
            lacking = sorted(topic for topic, count in missing.items() if count > 0)
            if not lacking or stop.is_set() or clock.now_ns() >= end_ns:
                return lacking
            await clock.sleep(_POLL_S)

    def publish(self, envelope: Envelope, message: Message) -> None:
        """Send to whoever subscribes; never waits. A full queue drops, which the receiver sees as a gap."""
        frames = encode(envelope, message)
        kind = message.message_kind
        place = self._store(envelope.topic, frames) if len(frames) > 2 and kind == "state" else None
        packed = pack(frames) if place is None else announce(frames, place)
        with self._locks[kind]:
            if envelope.topic in self.kept:
                self.kept[envelope.topic] = packed
            send(self._sockets[kind], packed)
            if place is not None and self._whole[envelope.topic] > 0:
                send(self._sockets[kind], pack([_WHOLE + frames[0], *frames[1:]]))
            self._until_notices[kind] -= 1
            if not self._until_notices[kind]:
                self._until_notices[kind] = _NOTICES_EVERY
                self._greet(kind)

    def _store(self, topic: str, frames: Sequence[Frame]) -> Place | None:
        """Where the arrays of a message lie in shared memory; None where they have to travel inside it.

        Only states go there, where a newer one may overwrite one that nobody has taken in yet; and not those that are
        kept for late joiners, for the same reason.
        """
        if sum(len(frame) for frame in frames[2:]) < SHARED_FROM_BYTES or topic in self.kept:
            return None
        place = self._pool.store(frames[2:])
        if place is None and self._pool.problem != self._told_problem:
            self._told_problem = self._pool.problem
            logging.getLogger("bus").warning("%s; large messages travel whole, which costs more", self._told_problem)
        return place

    def _note(self, notice: bytes) -> tuple[str, int]:
        """The topic that somebody has subscribed to (1) or leaves (-1)."""
        change = 1 if notice[:1] == b"\x01" else -1
        topic = notice[1:].rstrip(b"\0").decode(errors="replace")
        if topic.startswith(_WHOLE.decode()):
            topic = topic[1:]
            self._whole[topic] += change
        return topic, change

    def greet(self) -> None:
        """Send the newest states to those who have come since the last time (any thread)."""
        for kind in KINDS:
            with self._locks[kind]:
                self._greet(kind)

    def _greet(self, kind: Kind) -> None:
        socket = self._sockets[kind]
        joined = set()
        while int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN:  # ZeroMQ keeps these notices until somebody reads them
            topic, change = self._note(socket.recv(_NOBLOCK))
            if change > 0:
                joined.add(topic)
        for topic in joined:
            if frames := self.kept.get(topic):
                send(socket, frames)  # to those too who have it already; they know it by its number

    def close(self) -> None:
        """Send what is queued, for at most half a second, and close."""
        for kind, socket in self._sockets.items():
            with self._locks[kind]:
                socket.close()
        self._context.term()
        self._pool.close()


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
    ) -> None:
        """`is_counted`: publishers wait for it when they start; not so for those who only watch.

        `is_deep`: it queues states, too, where others are content with the newest. `watches_ends`: for `finish`.
        """
        self._is_deep = is_deep
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
        self._types = {topic.encode(): message for topic, message in types.items()}
        self._end = _COUNTED if is_counted else PASSING
        self._deliver = deliver
        self._lost = lost
        self._last: dict[tuple[str, str], tuple[int, int]] = {}  # sequence and time of publication
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
        for kind in KINDS:
            topics = [topic for topic, message in self._types.items() if message.message_kind == kind]
            if not topics:
                continue
            for queue_length, own in self._queues(kind, topics):
                socket = subscriber(self._context, queue_length)
                self._sockets[kind].append(socket)
                for topic in own:
                    socket.setsockopt(zmq.SUBSCRIBE, topic + self._end)
                if self._ends is not None:
                    self._ends.append(Ends(socket))
                for process in processes:
                    socket.connect(endpoint(folder, process, kind))
        self._list_sockets()

    def _queues(self, kind: Kind, topics: list[bytes]) -> list[tuple[int, list[bytes]]]:
        """How long ZeroMQ's queues are, and for which topics."""
        if not self._is_deep or kind == "event":
            return [(QUEUE_LENGTH[kind], topics)]
        large = [topic for topic in topics if array_fields(self._types[topic])]
        small = [topic for topic in topics if topic not in large]
        return [(length, own) for length, own in ((DEEP_QUEUE_LENGTH, small), (DEEP_ARRAYS_LENGTH, large)) if own]

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
                frame = socket.recv(_NOBLOCK)
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

    def _take(self, frame: bytes, socket: zmq.Socket[bytes]) -> None:
        topic, frames, place = unpack(frame, socket)
        message = self._types.get(topic)
        if message is None:
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


class Ends:
    """Who is connected to a subscribing socket: ZeroMQ tells of an end after all that came before it was taken in."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket
        self._events = socket.get_monitor_socket(int(zmq.EVENT_CONNECTED | zmq.EVENT_DISCONNECTED))
        self._connected: set[int] = set()  # file descriptors

    def wait(self, end_ns: int) -> bool:
        """Wait until nobody is connected, at most until that time; whether it is so."""
        clock = SystemClock()
        while True:
            left_ms = (end_ns - clock.now_ns()) // 1_000_000 if self._connected else 0
            if not self._events.poll(max(0, left_ms)):
                return not self._connected
            event = recv_monitor_message(self._events)
            if event["event"] == zmq.EVENT_CONNECTED:
                self._connected.add(int(event["value"]))
            else:
                self._connected.discard(int(event["value"]))

    def close(self) -> None:
        """Stop watching."""
        self._socket.disable_monitor()
        self._events.close()


class Inlet(Reader):
    """A reader with a thread of its own."""

    def start(self, priority: int = 0) -> None:
        """Start reading. `priority`: real-time priority of the thread; 0 leaves it ordinary."""
        self._is_stopped = False
        self._thread = threading.Thread(target=self._read, args=(priority,), name="zeromq-inlet")
        self._thread.start()

    def finish(self, timeout_s: float) -> bool:
        """Go on reading until every publisher has closed and all that it sent is delivered; False where time is over.

        Needs `watches_ends`. Only `close` may follow.
        """
        assert self._ends is not None
        end_ns = SystemClock().now_ns() + to_ns(timeout_s)
        left = [ends for ends in self._ends if not ends.wait(end_ns)]
        self._is_stopped = True
        self.wake()
        self._thread.join()
        while self.drain(_PER_TURN):
            pass
        return not left

    def close(self) -> None:
        """Stop reading and close."""
        thread: threading.Thread | None = getattr(self, "_thread", None)
        if thread is not None:
            self._is_stopped = True
            self.wake()
            thread.join()
        super().close()

    def _read(self, priority: int) -> None:
        if priority:
            ask_for_fifo(priority)
        while not self._is_stopped:
            if not self.drain(_PER_TURN):
                self.wait(None)


def send(socket: zmq.Socket[bytes], frames: Sequence[Frame]) -> None:
    """Send without waiting."""
    for frame in frames[:-1]:
        socket.send(frame, _NOBLOCK_MORE)
    socket.send(frames[-1], _NOBLOCK)


def pack(frames: Sequence[Frame]) -> Sequence[Frame]:
    """What ZeroMQ carries of a topic, a document and arrays: the first two as one, which costs less."""
    topic, document, *arrays = frames
    return [b"".join((topic, PASSING, bytes((len(arrays),)), document)), *arrays]


def announce(frames: Sequence[Frame], place: Place) -> Sequence[Frame]:
    """What ZeroMQ carries of a message whose arrays lie in shared memory."""
    where = _place_encoder.encode(place)
    return [b"".join((frames[0], PASSING, _SHARED, len(where).to_bytes(2, "little"), where, frames[1]))]


def unpack(head: bytes, socket: zmq.Socket[bytes]) -> tuple[bytes, list[Frame], bytes | None]:
    """Of a message with this first frame: the topic, the document and arrays, and the place of arrays elsewhere."""
    end = head.find(PASSING)
    topic = head[1:end] if head[:1] == _WHOLE else head[:end]
    mark = head[end + 2 : end + 3] if end >= 0 else b""
    if mark == _SHARED:
        begin = end + 5
        middle = begin + int.from_bytes(head[end + 3 : begin], "little")
        return topic, [head[middle:]], head[begin:middle]
    frames: list[Frame] = [head[end + 3 :]]
    if mark != b"\0":
        while socket.get(_RCVMORE):
            frames.append(socket.recv(_NOBLOCK))
    return topic, frames, None


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
                socket.setsockopt(zmq.SUBSCRIBE, _WHOLE + topic + self._end)
                socket.setsockopt(zmq.UNSUBSCRIBE, topic + self._end)
            return f"unreachable: {problem}"

    def close(self) -> None:
        """Forget the memory; arrays in use stay good."""
        self._views.close()


_place_encoder = msgspec.msgpack.Encoder()
_place_decoder = msgspec.msgpack.Decoder(Place)


def subscriber(context: zmq.Context[zmq.Socket[bytes]], queue_length: int) -> zmq.Socket[bytes]:
    socket = context.socket(zmq.SUB)
    socket.setsockopt(zmq.RCVHWM, queue_length)
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
    socket.setsockopt(zmq.RECONNECT_IVL, 20)
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, 200)
    socket.setsockopt(zmq.LINGER, 0)
    return socket


def bind_inward(sockets: Mapping[Kind, zmq.Socket[bytes]], folder: Path, name: str) -> None:
    for kind, socket in sockets.items():
        socket.setsockopt(zmq.SUBSCRIBE, READY + name.encode())
        address = inward_endpoint(folder, name, kind)
        try:
            socket.bind(address)
        except zmq.ZMQError as problem:
            raise TransportError(f"{address} cannot be bound: {problem}") from problem
