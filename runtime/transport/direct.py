"""States and events between the processes of one host: from the publishing thread to the handling one, in one wake-up.

Each process listens on one Unix packet socket (`DirectSender`). A process that handles its states connects, names the
topics that it wants, and waits on that very socket (`DirectReader`). A packet is one message, sent by the thread that
publishes it. The connection tells each side when the other has died. A full connection drops a state, which the
receiver sees as a gap; events wait at the sender until there is room, in their order. Events have a connection of their
own, so that none stands behind an image, and with it a pipe, which takes the kernel a third of the time: the receiver
makes it and sends its end along. In the pipe each packet stands behind its length; length 0 says that the next one, too
large to be written at once, lies on the connection. The launch's plan says which topics go this way; all others and
tools use ZeroMQ.

A packet is the topic, a zero byte, a mark, and what the mark says:

- PLAIN: a document.
- BUNDLE: one document with several messages.
- INLINE: a document followed by small arrays.
- SLOT: a document whose arrays lie in shared memory.
- APART: a message that is too large for a packet, or that found no free slot. It lies in anonymous memory, whose
  descriptor comes with the packet. A packet ANNOUNCE precedes it, because a plain `recv` would close the descriptor.
"""

from __future__ import annotations

import array
import mmap
import os
import select
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

import msgspec

from runtime.clock import SystemClock, to_ns
from runtime.errors import CodecError, TransportError, with_remedy
from runtime.message import Message, Stamped
from runtime.operating_system.machine import can
from runtime.serialization.codec import MAX_ARRAY_BYTES, MAX_ARRAYS, Frame
from runtime.transport import fast_lane
from runtime.transport.channel import Channel, Handle, Loss, Lost, Refused
from runtime.transport.fast_lane import KEY_BYTES, LARGEST_FRAME, LARGEST_PACKET, LENGTH, RECEIVE_BYTES, PipeLike
from runtime.transport.rate_limit import RateLimit
from runtime.transport.shared_memory import SlotAddress, Views

PLAIN, BUNDLE, INLINE, SLOT, APART = range(5)
ANNOUNCE = b"\0"
INLINE_BYTES = 16 << 10
"""Arrays travel inside the packet up to this total size, bytes."""

MOST_WAITING = 4096
"""Most events that wait at the sender for room in one connection."""
_BUFFER_BYTES = 1 << 20  # asked for; the kernel gives what it allows, at least room for a hundred small packets
_WHOLE = b"w"  # what a receiver says that cannot reach the shared memory
_FIRST_RETRY_NS, _RETRY_NS = 2_500_000, 20_000_000  # twice as long each time: processes of a run start together
_LOOK_NS = 100_000_000  # between two looks at who came and went, while nobody is there to hear what is sent
_CLOSE_NS = 1_000_000_000  # a socket whose receiver has gone: no thread is about to use its number by then
_CLOSED_ON_EXEC = int(getattr(socket, "MSG_CMSG_CLOEXEC", 0))
DONTWAIT = int(getattr(socket, "MSG_DONTWAIT", 0)) | int(getattr(socket, "MSG_NOSIGNAL", 0))

_Waiting = tuple[bytes, bytes, bytes, bytes]
"""What waits for room: a frame for the pipe; or "" and a packet for the connection; or "" twice, head and document."""
_ON_CONNECTION: _Waiting = (LENGTH.pack(0), b"", b"", b"")
"""It follows upon what was sent by the connection itself."""

_COUNT = struct.Struct("<BI")  # arrays, bytes of the document
_SLOT = struct.Struct(f"<{KEY_BYTES}sHQB")  # segment, slot, generation, arrays; then their sizes
_SIZES = [struct.Struct(f"<{number}Q") for number in range(MAX_ARRAYS + 2)]

_now_ns = SystemClock.now_ns


class _Hello(msgspec.Struct, array_like=True):
    receiver: str
    topics: list[str]
    most_hz: dict[str, float] = {}  # of those of which it wants fewer


_hello_decoder = msgspec.msgpack.Decoder(_Hello)
_encode = msgspec.msgpack.Encoder().encode


def is_available() -> bool:
    """Whether this system supports this transport."""
    return can("packets")


def place(folder: Path, process: str) -> str:
    """The path of the socket from which a process of a run sends its states."""
    return str(folder / f"{process}.direct")


def _new_socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
    return made


def _padded(size: int) -> int:
    return -(-size // 16) * 16


def slot_packet(head: bytes, where: SlotAddress, document: bytes) -> bytes:
    """The packet of a message whose arrays lie in shared memory."""
    count = len(where.sizes)
    return b"".join(
        (
            head,
            b"\x03",
            _SLOT.pack(where.segment.encode(), where.slot, where.generation, count),
            _SIZES[count].pack(*where.sizes),
            document,
        )
    )


def _inline_packet(head: bytes, document: bytes, arrays: Sequence[Frame]) -> bytes:
    count = len(arrays)
    parts: list[Frame] = [head, b"\x02", _COUNT.pack(count, len(document)), _SIZES[count].pack(*map(len, arrays))]
    parts.append(document)
    size = sum(map(len, parts))
    for one in arrays:
        parts += (bytes(_padded(size) - size), one)
        size = _padded(size) + len(one)
    return b"".join(parts)


class _Receiver:
    """A connection to a process that handles our messages."""

    __slots__ = (
        "events",
        "fd",
        "is_apart",
        "is_full",
        "limits",
        "lock",
        "name",
        "pipe",
        "send",
        "socket",
        "topics",
        "waiting",
    )

    def __init__(self, connection: socket.socket, events: select.epoll) -> None:
        """`events` is to tell when there is room again."""
        self.socket = connection
        self.fd = -1  # of the pipe
        self.pipe: FileIO | None = None
        """Where its events go."""
        self.events = events
        self.waiting: deque[_Waiting] = deque()
        """Events for which there was no room."""
        self.is_full = False  # so that `events` tells of room
        self.lock = threading.Lock()
        self.send: Callable[[bytes, int], int] = connection.send
        self.name = ""
        self.topics: tuple[str, ...] = ()
        self.is_apart = False  # it cannot reach our shared memory
        self.limits: dict[str, RateLimit] = {}

    def take_pipe(self, fd: int) -> None:
        """Its events go there. Opened to read as well: no write raises SIGPIPE, and the socket tells who has gone."""
        with suppress(OSError):
            both = os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            os.close(fd)
            fd = both
        self.pipe, self.fd = FileIO(fd, "wb"), fd
        self.events.register(self.pipe, 0)

    def offer(self, packet: bytes, head: bytes, document: bytes) -> bool:
        """Send an event, or keep it until there is room (any thread); False where the receiver has gone."""
        is_small = 0 < len(packet) <= LARGEST_FRAME - LENGTH.size
        with self.lock:
            if len(self.waiting) >= MOST_WAITING:
                pass  # a gap, which it counts
            elif is_small:
                self.waiting.append((LENGTH.pack(len(packet)) + packet, b"", b"", b""))
            else:
                self.waiting += ((b"", packet, head, document), _ON_CONNECTION)
            return self._send_waiting()

    def flush(self) -> bool:
        """Send what waits, as far as there is room (any thread); False where the receiver has gone."""
        with self.lock:
            return not self.waiting or self._send_waiting()

    def _send_waiting(self) -> bool:
        was_full, self.is_full = self.is_full, False
        try:
            while self.waiting:
                self._send_one(*self.waiting[0])
                self.waiting.popleft()
        except BlockingIOError:
            self.is_full = True
        except OSError:
            self.waiting.clear()
            return False
        if not (was_full or self.is_full):
            return True  # nearly always
        try:
            for one in (self.socket, self.pipe):
                if one is not None:
                    events = select.EPOLLOUT if self.is_full and one is self.full else 0
                    self.events.modify(one, events | (select.EPOLLIN if one is self.socket else 0))
        except (OSError, ValueError):
            return False  # it has gone, or all is closed
        return True

    @property
    def full(self) -> socket.socket | FileIO:
        """Where what waits first finds no room."""
        return self.pipe if self.pipe is not None and self.waiting and self.waiting[0][0] else self.socket

    def _send_one(self, frame: bytes, packet: bytes, head: bytes, document: bytes) -> None:
        if frame:
            os.write(self.fd, frame)
        elif packet:
            self.send(packet, DONTWAIT)
        else:
            send_apart(self.socket, head, document, ())

    def close(self) -> None:
        """Close what it is reached by."""
        self.fd = -1
        self.socket.close()
        if self.pipe is not None:
            self.pipe.close()

    def wants(self, topic: str, published_ns: int) -> bool:
        """Whether it gets the message of that topic that was published then."""
        limit = self.limits.get(topic)
        return limit is None or limit.allows(published_ns)


class DirectSender:
    """The sending side of a process; any thread may send.

    `receivers` names, for each topic, the processes to which it may go, and `events` those topics of which none may be
    left out for want of room. Raises TransportError where the socket cannot be made.
    """

    def __init__(
        self, folder: Path, process: str, receivers: Mapping[str, Collection[str]], events: Collection[str] = ()
    ) -> None:
        self.to: dict[str, tuple[_Receiver, ...]] = {}
        """By topic, who is connected."""
        self.fds: dict[str, list[int]] = {topic: [] for topic in receivers}
        """The same as descriptors, in lists that stay the same objects; without those who want fewer messages."""
        self.limited: dict[str, list[_Receiver]] = {topic: [] for topic in receivers}
        """Those who want fewer."""
        self.apart: set[str] = set()
        """The topics that somebody wants who cannot reach our shared memory."""
        self.topics, self.event_topics = frozenset(receivers), frozenset(events)
        self._expected = {topic: frozenset(names) for topic, names in receivers.items()}
        self._connected: list[_Receiver] = []
        self._gone: list[tuple[int, _Receiver]] = []  # and since when
        self._heads: dict[str, bytes] = {topic: topic.encode() + b"\0" for topic in receivers}
        self._lock = threading.Lock()
        self._look_ns = 0
        self.events = select.epoll()
        """Readable where there is something for `look`."""
        self.listener = _new_socket()
        self.events.register(self.listener, select.EPOLLIN)
        path = place(folder, process)
        try:
            Path(path).unlink(missing_ok=True)  # of the process that has crashed
            self.listener.bind(path)
            self.listener.listen(128)
        except OSError as problem:
            self.listener.close()
            self.events.close()
            raise TransportError(f"{path} cannot be bound: {with_remedy(str(problem.strerror))}") from problem

    def lacking(self) -> list[str]:
        """The topics with a receiver that is not connected yet."""
        self.look()
        return [
            topic
            for topic, names in self._expected.items()
            if not names.issubset(one.name for one in self.to.get(topic, ()))
        ]

    def look(self) -> None:
        """Accept new receivers and drop those that have gone (any thread)."""
        if not self._lock.acquire(blocking=False):
            return  # somebody looks already
        try:
            now_ns = _now_ns()
            self._look_ns = now_ns + _LOOK_NS
            if not self._gone and not self.events.closed and not self.events.poll(0, 1):
                return  # nobody has come, gone or said anything
            while self._gone and self._gone[0][0] < now_ns - _CLOSE_NS:
                self._gone.pop(0)[1].close()
            while True:
                try:
                    connection, _ = self.listener.accept()
                except OSError:
                    break  # nobody; or closed
                connection.setblocking(False)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
                self._connected.append(_Receiver(connection, self.events))
                self.events.register(connection, select.EPOLLIN)
            for one in self._connected[:]:
                one.flush()
                self._hear(one)
        finally:
            self._lock.release()

    def _hear(self, one: _Receiver) -> None:
        """What a receiver says: who it is, that it cannot reach shared memory, or that it has gone."""
        try:
            while True:
                said, fds, _, _ = socket.recv_fds(one.socket, RECEIVE_BYTES, 1, DONTWAIT | _CLOSED_ON_EXEC)
                for fd in fds:
                    one.take_pipe(fd)
                if not said:
                    break
                if one.name:
                    one.is_apart = one.is_apart or said == _WHOLE
                    self._list(one.topics)
                    continue
                hello = _hello_decoder.decode(said)
                one.name = hello.receiver
                one.topics = tuple(topic for topic in hello.topics if topic in self._expected)
                one.limits = {topic: RateLimit(hz) for topic, hz in hello.most_hz.items() if hz > 0}
                for topic in one.topics:
                    self.to[topic] = (*self.to.get(topic, ()), one)
                self._list(one.topics)
        except BlockingIOError:
            return
        except (OSError, msgspec.MsgspecError):
            pass
        self._connected.remove(one)  # it has gone, or is none of ours
        for topic in one.topics:
            self.to[topic] = tuple(other for other in self.to[topic] if other is not one)
        self._list(one.topics)
        self.events.unregister(one.socket)
        if one.pipe is not None:
            self.events.unregister(one.pipe)
        with suppress(OSError):
            one.socket.shutdown(socket.SHUT_RDWR)  # closed later: another thread may just be sending there
        self._gone.append((_now_ns(), one))

    def _list(self, topics: Collection[str]) -> None:
        """Keep the descriptors of these topics; the lists are changed in one step each."""
        for topic in topics:
            to = self.to[topic]
            self.limited[topic][:] = [one for one in to if topic in one.limits]
            self.fds[topic][:] = [one.socket.fileno() for one in to if topic not in one.limits]
            (self.apart.add if any(one.is_apart for one in to) else self.apart.discard)(topic)

    def due(self, topic: str, published_ns: int) -> list[int]:
        """The descriptors of the receivers of a message that was published then."""
        return [
            *self.fds[topic],
            *(one.socket.fileno() for one in self.limited[topic] if one.wants(topic, published_ns)),
        ]

    def send(
        self,
        topic: str,
        document: bytes,
        arrays: Sequence[Frame],
        where: SlotAddress | None,
        published_ns: int,
        *,
        is_bundle: bool = False,
    ) -> None:
        """Send one message to every receiver of its topic, without waiting; `where`: its arrays in shared memory."""
        receivers = self.to.get(topic)
        if receivers:
            head = self._heads[topic]
            if topic in self.event_topics:
                packet = b"".join((head, b"\x01" if is_bundle else b"\x00", document))
                self.offer(topic, packet if len(packet) <= LARGEST_PACKET else b"", document)
                return
            if where is not None:
                packet = slot_packet(head, where, document)
            elif not arrays:
                packet = b"".join((head, b"\x01" if is_bundle else b"\x00", document))
            elif sum(map(len, arrays)) <= INLINE_BYTES:
                packet = _inline_packet(head, document, arrays)
            else:
                packet = b""
            self._send_packet(topic, packet, document, arrays, published_ns)
        elif _now_ns() > self._look_ns:
            self.look()

    def offer(self, topic: str, packet: bytes, document: bytes) -> None:
        """Send an event to every receiver of its topic, or keep it until there is room; b"" as a packet: apart."""
        is_lost = False
        for one in self.to.get(topic, ()):
            is_lost = not one.offer(packet, self._heads[topic], document) or is_lost
        if is_lost:
            self.look()  # somebody has gone

    def _send_packet(
        self, topic: str, packet: bytes, document: bytes, arrays: Sequence[Any], published_ns: int
    ) -> None:
        """Send a message as this packet to those who can take it so, and apart to the others; b"": to all apart."""
        is_apart = not 0 < len(packet) <= LARGEST_PACKET
        is_lost = False
        for one in self.to.get(topic, ()):
            if not one.wants(topic, published_ns):
                continue
            try:
                if is_apart or (one.is_apart and arrays):
                    send_apart(one.socket, self._heads[topic], document, arrays)
                else:
                    one.send(packet, DONTWAIT)
            except BlockingIOError:
                pass  # its queue is full: a gap, which it counts
            except OSError:
                is_lost = True
        if is_lost or _now_ns() > self._look_ns:
            self.look()

    def settle(self, patience_s: float) -> None:
        """Send the events that wait for room, for at most so long."""
        end_ns = _now_ns() + to_ns(patience_s)
        for one in self._connected[:]:
            while one.waiting and one.flush() and one.waiting and (left_ns := end_ns - _now_ns()) > 0:
                select.select((one.socket,), (one.full,), (), left_ns * 1e-9)
                self.look()
                if one not in self._connected:
                    break  # it has gone

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self.to.clear()
            for fds in self.fds.values():
                fds.clear()
            for receivers in self.limited.values():
                receivers.clear()
            self.events.close()
            self.listener.close()
            for one in (*self._connected, *(gone for _, gone in self._gone)):
                one.close()
            self._connected.clear()
            self._gone.clear()


def send_apart(to: socket.socket, head: bytes, document: bytes, arrays: Sequence[Frame]) -> None:
    """Send a message in memory that belongs to nobody but itself. Raises OSError."""
    parts = (document, *arrays)
    fd = os.memfd_create("polyrhythm-message", os.MFD_CLOEXEC)
    try:
        for part in parts:
            for piece in (part, bytes(_padded(len(part)) - len(part))):
                left = memoryview(piece)
                while left:
                    left = left[os.write(fd, left) :]
        packet = b"".join((head, b"\x04", bytes((len(parts),)), _SIZES[len(parts)].pack(*map(len, parts))))
        to.send(ANNOUNCE, DONTWAIT)
        given = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", (fd,)))]
        to.sendmsg([packet], given, DONTWAIT)
    finally:
        os.close(fd)


class DirectLink:
    """A connection to one publishing process."""

    __slots__ = ("expects_fd", "fd", "hello", "path", "pipe", "pipe_fd", "socket")

    def __init__(self, path: str, hello: bytes) -> None:
        self.path = path
        self.hello = hello
        self.socket: socket.socket | None = None
        self.fd = -1  # what to wait on
        self.pipe: PipeLike | None = None
        """Where its events come from."""
        self.pipe_fd = -1
        self.expects_fd = False

    def ask_for_whole(self) -> None:
        """Say that this process cannot reach the publisher's shared memory."""
        if self.socket is not None:
            self.socket.send(_WHOLE, DONTWAIT)

    def close(self) -> None:
        """Close what is open; it can be tried again."""
        if self.socket is not None:
            self.socket.close()
        if self.pipe_fd >= 0:
            os.close(self.pipe_fd)
        self.socket, self.pipe, self.fd, self.pipe_fd = None, None, -1, -1


class DirectReader:
    """Receives for one thread messages of other processes that it handles, states or events; only it may call."""

    def __init__(
        self,
        receiver: str,
        types: Mapping[str, type[Message]],
        publishers: Mapping[str, Collection[str]],
        deliver: Callable[[Stamped[Any]], Any],
        lost: Lost,
        refused: Refused = lambda *_: None,
        most_hz: Mapping[str, float] | None = None,
    ) -> None:
        """`receiver` is the name of this process. `publishers` gives the processes that publish each topic. `most_hz`
        limits topics to that many messages a second.
        """
        self.topics = frozenset(types)
        self._deliver = deliver
        self._channels = {
            topic.encode(): Channel(topic, message, b"", lost, refused) for topic, message in types.items()
        }
        for channel in self._channels.values():
            channel.handle = deliver
        self._most_hz = {topic: hz for topic, hz in (most_hz or {}).items() if topic in types}
        for topic in self._most_hz:
            self._channels[topic.encode()].gap = "max_hz"
        self._views = Views()
        self._receive = fast_lane.chosen.receive
        self._receiver, self._publishers = receiver, {topic: publishers[topic] for topic in types}
        self._links: list[DirectLink] = []
        self.by_fd: dict[int, DirectLink] = {}
        """The connections that are up; a new dict with each change."""
        self.held: deque[Stamped[Any]] | None = None
        """Where events are kept that came together, for whoever has room for them; None: it receives states."""
        self.ended_ns: int | None = None
        """When the handler of what was taken last had finished; None where it was queued."""
        self.is_complete = False
        """Whether all publishers are connected, so that `retry` has nothing to do."""
        self._retry_ns, self._wait_ns = 0, _FIRST_RETRY_NS
        self.ended: Callable[[int], None] = lambda fd: None
        """Called before a connection is closed whose publisher has gone."""

    def connect(self, folder: Path) -> None:
        """Connect to the publishers that are up; `retry` connects to the others."""
        topics: dict[str, list[str]] = {}
        for topic, processes in sorted(self._publishers.items()):
            for process in processes:
                topics.setdefault(process, []).append(topic)
        self._links = [
            DirectLink(place(folder, process), _encode(_Hello(self._receiver, own, self._most_hz)))
            for process, own in topics.items()
        ]
        self.retry()

    def retry(self) -> float | None:
        """Try the connections that are due; returns the seconds until the next try, or None where all are connected."""
        self.is_complete = len(self.by_fd) == len(self._links)
        if self.is_complete:
            return None
        now_ns = _now_ns()
        if now_ns < self._retry_ns:
            return (self._retry_ns - now_ns) * 1e-9
        wait_ns, self._wait_ns = self._wait_ns, min(2 * self._wait_ns, _RETRY_NS)
        self._retry_ns = now_ns + wait_ns
        for link in self._links:
            if link.socket is None:
                self._try(link)
        return None if len(self.by_fd) == len(self._links) else wait_ns * 1e-9

    def _try(self, link: DirectLink) -> None:
        made = _new_socket()
        inner = outer = -1
        try:
            made.connect(link.path)
            if self.held is None:
                made.send(link.hello)
            else:
                inner, outer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
                socket.send_fds(made, [link.hello], [outer])
                os.close(outer)  # its end is the publisher's alone: it closes with that
        except OSError:
            made.close()
            for fd in (inner, outer):
                if fd >= 0:
                    os.close(fd)
            return
        link.socket, link.fd, link.expects_fd = made, made.fileno(), False
        if inner >= 0:
            link.fd = link.pipe_fd = inner
            link.pipe = fast_lane.chosen.Pipe(inner)
        self.by_fd = {**self.by_fd, link.fd: link}

    def _end(self, link: DirectLink) -> None:
        """The publisher has gone: it will be back, or not."""
        assert link.socket is not None
        self.ended(link.fd)
        self.by_fd = {other: one for other, one in self.by_fd.items() if other != link.fd}
        self.is_complete = False
        link.close()

    def drain(self, limit: int) -> int:
        """Deliver at most `limit` waiting states of each publisher; returns how many there were."""
        number = 0
        for link in self.by_fd.values():
            taken = 0
            while taken < limit and self.take(link, is_free=False):
                taken += 1
            number += taken
        return number

    def use(self, handles: Mapping[str, Handle]) -> None:
        """Set what handles messages of these topics directly, in place of delivery, when one ends a wait."""
        for topic in self.topics & handles.keys():
            self._channels[topic.encode()].handle = handles[topic]

    def take(self, link: DirectLink, *, is_free: bool) -> bool:
        """Receive one state; False where none waits, and where the publisher has gone.

        `is_free` says that the handler of the message may run now.
        """
        self.ended_ns = None
        if link.expects_fd:
            return self._take_after_announcement(link)
        try:
            found = self._receive(link.fd, self._channels, self._views.maps)
        except OSError:
            found = b""
        if type(found) is not tuple:
            return found is not None and self._take_rarer(link, found, -1)
        channel, document, array = found
        if array is None:
            channel.lose(document, "overwritten")
            return True
        if array:
            channel.held[0] = array
            stamped = channel.open_held(document, channel.is_new)
        else:
            stamped = channel.open(document, channel.is_new)
        if stamped is None:
            channel.held[0] = None
            self._take_decoded(channel, document, (array,) if array else ())
        else:
            self.ended_ns = channel.handle(stamped) if is_free else self._deliver(stamped)
        return True

    def take_events(self, link: DirectLink) -> bool:
        """Receive the events that wait into `held`; False where none does, or the publisher has gone."""
        assert self.held is not None
        opened: list[Any] = []
        number = link.pipe.take(self._channels, opened) if link.pipe is not None else None
        if number is None:
            return False
        if not number:
            self.held.extend(opened)
            return True
        for one in opened:
            if type(one) is Stamped:
                self.held.append(one)
            elif one:
                self._take_rarer(link, one, -1)
            else:
                while link.socket is not None and self._take_after_announcement(link) and link.expects_fd:
                    pass
        if number < 0 and link.socket is not None:
            self._end(link)
        return number > 0

    def take_event(self, link: DirectLink) -> bool:
        """The same; one that comes alone is handled here and now."""
        self.ended_ns = None
        if self.held or not self.take_events(link):
            return bool(self.held)
        if len(self.held or ()) == 1 and self.held is not None:
            stamped = self.held.popleft()
            self.ended_ns = self._channels[stamped.envelope.topic.encode()].handle(stamped)
        return True

    def _take_decoded(self, channel: Channel, document: Frame, arrays: Sequence[Frame]) -> None:
        stamped = channel.read(document, arrays)
        if stamped is not None and channel.is_new(stamped.envelope):
            if self.held is not None:
                self.held.append(stamped)  # behind those that came before it
            else:
                self._deliver(stamped)

    def _take_rarer(self, link: DirectLink, packet: bytes, fd: int) -> bool:
        """Take in what is no document alone, and no array in memory that is known."""
        if not packet:
            self._end(link)
            return False
        at = packet.find(b"\0")
        channel = self._channels.get(packet[: max(0, at)])
        if channel is None:
            if fd >= 0:
                os.close(fd)
            link.expects_fd = packet == ANNOUNCE
            return True
        mark = packet[at + 1] if len(packet) > at + 1 else -1
        document: Frame = packet[at + 2 :]
        if mark == BUNDLE:
            self._take_bundle(channel, document)
            return True
        try:
            found = (document, ()) if mark == PLAIN else self._read(link, mark, packet, at + 2, fd)
        except CodecError as problem:
            channel.lose(document, "garbled", str(problem))
            return True
        if isinstance(found[1], Loss):
            channel.lose(found[0], *found[1])
        else:
            self._take_decoded(channel, found[0], found[1])
        return True

    def _take_bundle(self, channel: Channel, document: Frame) -> None:
        bundle = channel.read_bundle(document)
        if bundle and channel.is_new_bundle(bundle[0].envelope, bundle[-1].envelope):
            if self.held is not None:
                self.held.extend(bundle)
                return
            for stamped in bundle:
                self._deliver(stamped)

    def _read(
        self, link: DirectLink, mark: int, packet: bytes, at: int, fd: int
    ) -> tuple[Frame, Sequence[Frame] | Loss]:
        """The document and the arrays, or why they are lost. Raises CodecError for a packet that is none."""
        try:
            if mark == SLOT:
                segment, slot, generation, count = _SLOT.unpack_from(packet, at)
                at += _SLOT.size
                sizes = _SIZES[count].unpack_from(packet, at)
                document: Frame = packet[at + 8 * count :]
                where = SlotAddress(segment.rstrip(b"\0").decode(), slot, generation, sizes)
                return document, self._views.fetch(where, link.ask_for_whole)
            if mark == INLINE:
                count, size = _COUNT.unpack_from(packet, at)
                sizes = _SIZES[count].unpack_from(packet, at + _COUNT.size)
                begin = at + _COUNT.size + 8 * count
                return packet[begin : begin + size], _pieces(memoryview(packet), sizes, begin + size)
            if mark == APART and fd >= 0:
                count = packet[at]
                sizes = _SIZES[count].unpack_from(packet, at + 1)
                status = os.fstat(fd)
                if status.st_size != sum(map(_padded, sizes)) or max(sizes) > MAX_ARRAY_BYTES:
                    raise ValueError("not a message in memory")
                whole = memoryview(mmap.mmap(fd, status.st_size, prot=mmap.PROT_READ))
                document, *arrays = _pieces(whole, sizes, 0)
                return document, arrays
        except (ValueError, struct.error, IndexError, UnicodeError, OSError) as problem:
            raise CodecError(f"not a packet: {problem}") from problem
        finally:
            if fd >= 0:
                os.close(fd)
        raise CodecError(f"not a packet: mark {mark}")

    def _take_after_announcement(self, link: DirectLink) -> bool:
        """Take in a packet that may bring a descriptor; where it does not, that is still to come."""
        assert link.socket is not None
        try:
            packet, given, _, _ = link.socket.recvmsg(RECEIVE_BYTES, socket.CMSG_SPACE(4), DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            packet, given = b"", []
        for level, kind, data in given:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                link.expects_fd = False
                return self._take_rarer(link, packet, array.array("i", data[:4])[0])
        return self._take_rarer(link, packet, -1)

    def close(self) -> None:
        """Close all connections; arrays in use stay valid."""
        for link in self._links:
            link.close()
        self._links, self.by_fd = [], {}
        self._views.close()


def _pieces(whole: memoryview, sizes: Sequence[int], begin: int) -> list[memoryview]:
    """The arrays one after another, each at a multiple of 16. Raises ValueError where they are not there."""
    found = []
    for size in sizes:
        begin = _padded(begin)
        found.append(whole[begin : begin + size])
        begin += size
    if begin > len(whole):
        raise ValueError("it ends early")
    return found
