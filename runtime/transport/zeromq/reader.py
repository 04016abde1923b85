"""`Reader`: receives what other processes publish, on the thread that needs it."""

from __future__ import annotations

import select
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import zmq
from zmq.backend import zmq_poll

from runtime.clock import SystemClock, to_ns
from runtime.errors import CodecError
from runtime.message import Envelope, Kind, Message, Stamped, array_fields
from runtime.operating_system.real_time import ask_for_fifo, name_thread
from runtime.operating_system.wake_pipe import WakePipe
from runtime.serialization.codec import Frame
from runtime.transport.channel import Channel, Handle, Loss, Lost, Refused
from runtime.transport.direct import DirectReader
from runtime.transport.reliable.tag import read_tag
from runtime.transport.shared_memory import SlotAddress, Views
from runtime.transport.zeromq.acks import Acks
from runtime.transport.zeromq.frames import BUNDLE, COUNTED, NOBLOCK, PASSING, WHOLE, again, unpack
from runtime.transport.zeromq.retransmitter import Retransmitter
from runtime.transport.zeromq.sockets import (
    DEEP_QUEUE_LENGTH,
    KINDS,
    QUEUE_LENGTH,
    Depth,
    bind_inward,
    deep_endpoint,
    endpoint,
    subscriber,
)

Vouched = Mapping[str, Mapping[str, Collection[str]]]
"""For each topic and process, the nodes in whose names that process may publish there."""
_POLLIN = int(zmq.POLLIN)
_BURST = 16  # events received between two looks at the sockets

_place_decoder = msgspec.msgpack.Decoder(SlotAddress)


class SharedMemoryReader:
    """Reads arrays in shared memory; where it cannot, it subscribes to whole messages instead."""

    def __init__(self, end: bytes) -> None:
        self._end = end
        self.views = Views()

    def fetch(self, topic: bytes, place: bytes, socket: zmq.Socket[bytes]) -> Sequence[Frame] | Loss:
        """The arrays, or why they are lost. Raises CodecError where the bytes are no address."""

        def ask_for_whole() -> None:
            socket.setsockopt(zmq.SUBSCRIBE, WHOLE + topic + self._end)
            socket.setsockopt(zmq.UNSUBSCRIBE, topic + self._end)

        try:
            return self.views.fetch(_place_decoder.decode(place), ask_for_whole)
        except (msgspec.MsgspecError, ValueError) as problem:
            raise CodecError(f"not a place in shared memory: {problem}") from problem

    def close(self) -> None:
        """Unmap the memory; arrays in use stay valid."""
        self.views.close()


class ConnectionMonitor:
    """Tracks who is connected to a subscribing socket; ZeroMQ reports an end after all that was sent before it."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket
        self._events = socket.get_monitor_socket(int(zmq.EVENT_CONNECTED | zmq.EVENT_DISCONNECTED))
        self._connected: set[int] = set()  # file descriptors

    def wait(self, end_ns: int) -> bool:
        """Wait until nobody is connected, until `end_ns` at most; returns whether that is so."""
        from zmq.utils.monitor import recv_monitor_message  # few readers need it, and it loads asyncio's sockets

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


class Reader:
    """Subscriptions to other processes, read by one thread: `poll` until nothing is left, then `wait`."""

    def __init__(
        self,
        types: Mapping[str, type[Message]],
        deliver: Callable[[Stamped[Any]], None],
        lost: Lost,
        *,
        is_counted: bool = True,
        is_deep: bool = False,
        watches_ends: bool = False,
        receiver: str = "",
        reliable: Collection[str] = (),
        refused: Refused = lambda source, topic, why: None,
        direct: DirectReader | None = None,
        direct_events: DirectReader | None = None,
    ) -> None:
        """With `is_counted`, publishers wait for this reader when they start. With `is_deep`, it queues states instead
        of keeping the newest. `watches_ends` is needed for `finish`. `receiver` is the name in which it acknowledges
        events of `reliable` topics. `refused` is called for each message that cannot be decoded although its sender is
        known. `direct` receives states that come directly from their publishers to the same thread; they go first.
        `direct_events` does so with events, on connections of their own.
        """
        self._is_deep = is_deep
        self.direct, self.direct_events = direct, direct_events
        self._handles: Mapping[str, Handle] = {}
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
        self._types = {topic.encode(): message for topic, message in types.items()}
        self._end = COUNTED if is_counted else PASSING
        self._deliver = deliver
        self._lost = lost
        self._refused = refused
        self._channels = {topic.encode(): self._channel(topic, message) for topic, message in types.items()}
        self._latest: Channel | None = None
        self._receiver, self._reliable = receiver, frozenset(topic.encode() for topic in reliable if receiver)
        self._receipts: Acks | None = None
        self.elsewhere = SharedMemoryReader(self._end)
        self._sockets: dict[Kind, list[zmq.Socket[bytes]]] = {kind: [] for kind in KINDS}
        self._polled: list[tuple[Any, int]] = []
        self._fds: list[int] = []
        self._ready: list[int] = []  # of these, those that ended the last wait
        self._by_fd: dict[int, zmq.Socket[bytes]] = {}
        self._has_cleared_wake = False
        self._inward_event: zmq.Socket[bytes] | None = None
        self._inward_state: zmq.Socket[bytes] | None = None  # where tools send to
        self._owners: Mapping[str, str] = {}
        self._nodes: Collection[str] = ()
        self._vouched: Vouched = {}
        self._checked: dict[zmq.Socket[bytes], str] = {}  # where names are checked, and whose it is; "": tools'
        self._held: deque[Stamped[Any]] = deque()  # events of a bundle for which there was no room
        if direct_events is not None:
            direct_events.held = self._held
        self._ends: list[ConnectionMonitor] | None = [] if watches_ends else None
        self._woken = WakePipe()

    def _channel(self, topic: str, message: type[Message]) -> Channel:
        return Channel(
            topic, message, topic.encode() + PASSING + b"\0", self._lost, self._refused
        )  # of a message without arrays

    def connect(
        self,
        folder: Path,
        processes: Iterable[str],
        owners: Mapping[str, str] | None = None,
        nodes: Collection[str] = (),
        vouched: Vouched | None = None,
    ) -> None:
        """Subscribe to the topics at each of these processes; call it before the first `wait`.

        `owners` names topics that are accepted from one process only. `nodes` are names that no tool may use. `vouched`
        names topics that are accepted from these processes only, each in the names of these nodes; no nodes means any
        name.
        """
        processes = tuple(processes)
        self._owners, self._nodes = dict(owners or {}), frozenset(nodes)
        self._vouched = {topic: of for topic, of in (vouched or {}).items() if topic.encode() in self._types}
        if self._reliable & self._types.keys():
            self._receipts = Acks(folder, processes, self._receiver, self._deliver, self._lost)
        for owner in sorted({*self._owners.values()} & {*processes}):
            owned = {topic for topic in self._owners if self._owners[topic] == owner}
            self._subscribe(folder, (owner,), owned)  # first: a fence is read before what others say about it
        for process in processes:
            if own := {topic for topic, of in self._vouched.items() if process in of}:
                self._checked.update(dict.fromkeys(self._subscribe(folder, (process,), own), process))
        apart = {*self._owners, *self._vouched}
        self._subscribe(folder, processes, {topic.decode() for topic in self._types} - apart)
        self._list_sockets()
        for direct in filter(None, (self.direct, self.direct_events)):
            direct.connect(folder)

    def _subscribe(self, folder: Path, processes: Sequence[str], wanted: Collection[str]) -> list[zmq.Socket[bytes]]:
        made = []
        for kind in KINDS:
            topics = [
                topic
                for topic, message in self._types.items()
                if message.message_kind == kind and topic.decode() in wanted
            ]
            for depth, own in self._queues(kind, topics) if topics else ():
                socket = subscriber(self._context, QUEUE_LENGTH[kind] if depth is None else DEEP_QUEUE_LENGTH[depth])
                self._sockets[kind].append(socket)
                made.append(socket)
                for topic in own:
                    socket.setsockopt(zmq.SUBSCRIBE, topic + self._end)
                for topic in self._reliable.intersection(own):
                    socket.setsockopt(zmq.SUBSCRIBE, again(self._receiver) + topic + self._end)
                if self._ends is not None:
                    self._ends.append(ConnectionMonitor(socket))
                for process in processes:
                    socket.connect(
                        endpoint(folder, process, kind) if depth is None else deep_endpoint(folder, process, depth)
                    )
        return made

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
        self._polled = [*((socket, _POLLIN) for socket in sockets), (self._woken.fd, _POLLIN)]
        self._by_fd = {int(socket.getsockopt(zmq.FD)): socket for socket in sockets}
        self._fds = [*self._by_fd, self._woken.fd]

    def accept(self, folder: Path, name: str, types: Mapping[str, type[Message]] | None = None) -> None:
        """Accept what tools publish on these topics too; call it before the first `wait`. Raises TransportError."""
        for more, message in (types or {}).items():
            self._types[more.encode()] = message
            self._channels.setdefault(more.encode(), self._channel(more, message))
        sockets = {kind: subscriber(self._context, QUEUE_LENGTH[kind]) for kind in KINDS}
        for kind, socket in sockets.items():
            self._sockets[kind].append(socket)
        self._inward_event, self._inward_state = sockets["event"], sockets["state"]
        self._checked.update(dict.fromkeys(sockets.values(), ""))
        for topic, message in self._types.items():
            if topic.decode() not in self._owners:
                sockets[message.message_kind].setsockopt(zmq.SUBSCRIBE, topic + self._end)
        bind_inward(sockets, folder, name)
        self._list_sockets()

    def wait(self, timeout_s: float | None) -> bool:
        """Return True once a message may have come or `wake` was called, False at the timeout; None waits without a
        limit.

        ZeroMQ signals only what is new: call it only after a `poll` that returned False.
        """
        if self._receipts is not None and self._receipts.is_due:
            next_s = self._receipts.tell()
            if next_s is not None:
                timeout_s = next_s if timeout_s is None else min(timeout_s, next_s)
        direct, events = self.direct, self.direct_events
        for one in (direct, events):
            next_s = None if one is None or one.is_complete else one.retry()
            if next_s is not None:
                timeout_s = next_s if timeout_s is None else min(timeout_s, next_s)
        # As `fds`: after a rest a further function costs ten microseconds.
        fds = [*self._fds, *(direct.by_fd if direct else ()), *(events.by_fd if events else ())]
        self._ready = select.select(fds, (), (), timeout_s)[0]  # ZeroMQ's own wait counts in milliseconds
        return bool(self._ready)

    @property
    def fds(self) -> list[int]:
        """Descriptors to wait on in place of `wait`; then call `poll` until it returns False."""
        direct, events = self.direct, self.direct_events  # no loop of our own: it is asked for at each wait
        return [*self._fds, *(direct.by_fd if direct else ()), *(events.by_fd if events else ())]

    def wake(self) -> None:
        """End the present wait, or the next one (any thread)."""
        self._woken.wake()

    def poll(self, limit: int, end_ns: int = 0) -> bool:
        """Hand on what waits; returns whether there may be more, or something to look for before the next `wait`.

        What `use` named is handled in place, until `end_ns` at most, where it is an event of the common kind or the
        only state that ended a wait. Of all else at most `limit` messages are delivered, events first.
        """
        ready, direct = self._ready, self.direct
        if len(ready) == 1 and direct is not None and (link := direct.by_fd.get(ready[0])) is not None:
            self._ready = []
            direct.take(link, is_free=True)  # the usual case, in as few steps as can be
            return False
        if self._handles and self._serve(end_ns):
            return True
        self._has_cleared_wake = False
        if self._receipts is not None and self._receipts.is_due and self._receipts.tell() == 0.0:
            return True  # it has given up what was missing, and delivered what waited for that
        if ready and self._take_one_of_each(limit):
            return True
        number = self._drain_straight(limit)
        if not self._by_fd:  # what comes straight ends a wait for as long as it is there
            return number > 0 or self._has_cleared_wake
        while number < limit:
            taken = self._take_ready(zmq_poll(self._polled, 0), _BURST, limit - number)
            if not taken:
                break
            number += taken
        if direct is not None:
            number += direct.drain(_BURST)
        return number > 0 or self._has_cleared_wake

    def _take_one_of_each(self, limit: int) -> int:
        """Hand over one message of each socket that has just ended a wait, at once."""
        number, direct = 0, self.direct
        ready, self._ready = self._ready, []
        for fd in ready:
            if fd == self._woken.fd:
                self._clear_wake()
            elif fd not in self._by_fd:
                link = direct.by_fd.get(fd) if direct is not None else None
                if link is not None and direct is not None:  # else it has gone meanwhile
                    number += direct.take(link, is_free=not self._has_cleared_wake)  # it may be to stop
            elif number < limit:
                number += self._take_burst(self._by_fd[fd], 1)
        return number

    def use(self, handles: Mapping[str, Handle]) -> None:
        """Set what handles messages of these topics directly when nothing else comes first; before the first `wait`."""
        self._handles = handles
        for topic, channel in self._channels.items():
            channel.handle = handles.get(topic.decode(), self._deliver)
        for direct in filter(None, (self.direct, self.direct_events)):
            direct.use(handles)

    def _serve_straight(self, end_ns: int) -> tuple[int, bool]:
        """As `_serve`, only events that come straight; returns also whether there may be more."""
        number, held, events = 0, self._held, self.direct_events
        handles, deliver = self._handles, self._deliver
        links = list(events.by_fd.values()) if events is not None else []
        topic, handle = "", cast(Handle, deliver)
        while held or links:
            if not held and events is not None and not events.take_events(links[-1]):
                links.pop()
            while held:
                stamped = held.popleft()
                number += 1
                if stamped.envelope.topic is not topic:
                    topic = stamped.envelope.topic
                    handle = handles.get(topic, deliver)
                ended_ns = handle(stamped)
                if ended_ns is None or ended_ns > end_ns:
                    return number, True
        return number, False

    def _drain_straight(self, limit: int) -> int:
        """Deliver at most so many events that came straight, or are left of a bundle."""
        number, events = self._deliver_held(limit) if self._held else 0, self.direct_events
        for link in events.by_fd.values() if events is not None else ():
            assert events is not None
            while number < limit and not self._held and events.take_events(link):
                number += self._deliver_held(limit - number) if self._held else 1
        return number

    def _serve(self, end_ns: int) -> int:
        """Handle events of the common kind one after another; returns how many there were.

        It ends at the first one that must wait, or that finished after `end_ns`. The common kind has no arrays and no
        tag, and comes from a permitted sender.
        """
        number, is_more = self._serve_straight(end_ns)
        if is_more:
            return number
        for socket in self._sockets["event"]:
            if socket in self._checked:
                continue
            recv, channel = socket.recv, self._latest
            if channel is not None:
                opens, is_new, handle = channel.open, channel.is_new, channel.handle
            while True:
                try:
                    frame = recv(NOBLOCK)
                except zmq.Again:
                    break
                number += 1
                opened = None if channel is None else opens(frame, is_new)
                if opened is None:
                    self._take(frame, socket)
                    return number
                ended_ns = handle(opened)
                if ended_ns is None or ended_ns > end_ns:
                    return number
        return number

    def _clear_wake(self) -> None:
        self._woken.clear()
        self._has_cleared_wake = True

    def _take_ready(self, ready: list[tuple[Any, int]], burst: int, limit: int) -> int:
        number = 0
        for socket, _ in ready:
            if isinstance(socket, int):
                self._clear_wake()
            elif socket in self._sockets["event"]:
                number += self._take_burst(socket, min(burst, limit - number))
            elif number < limit:
                number += self._take_burst(socket, 1)  # an event may have come meanwhile
        return number

    def drain_states(self, limit: int) -> None:
        """Deliver the waiting states; events stay queued in order, and are not counted yet."""
        if self.direct is not None:
            self.direct.drain(limit)
        for socket in self._sockets["state"]:
            self._take_burst(socket, limit)

    def drain_events(self, limit: int) -> None:
        """Deliver at most `limit` waiting events; states stay queued."""
        limit -= self._drain_straight(limit)
        for socket in self._sockets["event"]:
            limit -= self._take_burst(socket, limit)

    def _take_burst(self, socket: zmq.Socket[bytes], burst: int) -> int:
        holds = socket in self._sockets["event"]  # what is held of a bundle waits for room among the events
        number = self._deliver_held(burst) if self._held and holds else 0
        while number < burst:
            try:
                frame = socket.recv(NOBLOCK)
            except zmq.Again:
                break
            self._take(frame, socket)
            number += 1
            if self._held and holds:
                number += self._deliver_held(burst - number)
        return number

    def _deliver_held(self, limit: int) -> int:
        """Deliver what is left of a bundle of events, at most that many."""
        held, deliver = self._held, self._deliver
        number = min(limit, len(held))
        for _ in range(number):
            deliver(held.popleft())
        return number

    def close(self) -> None:
        """Close the sockets; nobody may wait or drain any more."""
        for ends in self._ends or ():
            ends.close()
        for sockets in self._sockets.values():
            for socket in sockets:
                socket.close()
        self._woken.close()
        self.elsewhere.close()
        for direct in filter(None, (self.direct, self.direct_events)):
            direct.close()
        if self._receipts is not None:
            self._receipts.close()

    def _take(self, head: bytes, socket: zmq.Socket[bytes]) -> None:
        channel = self._latest  # mostly of the same topic as the message before
        if channel is None or not head.startswith(channel.head):
            end = head.find(PASSING)
            channel = self._channels.get(head[:end])
            if channel is None or head[end + 2 : end + 3] != b"\0":
                if channel is not None and head[end + 2 : end + 3] == BUNDLE:
                    self._take_bundle(channel, head[end + 3 :], socket)
                else:
                    self._take_rarer(head, socket)
                return
            self._latest = channel
        document = head[len(channel.head) :]
        try:
            stamped = channel.decode(channel.topic, document)
        except CodecError as problem:
            channel.lose(document, "garbled", str(problem))
            return
        envelope = stamped.envelope
        if socket in self._checked and self._is_forged(channel, envelope, socket):
            return
        last = channel.last.get(envelope.source)
        if last is not None and envelope.seq == last.seq + 1:  # nearly always: asked here, it costs no call
            channel.last[envelope.source] = envelope
        elif not channel.is_new(envelope):
            return
        self._deliver(stamped)

    def _is_forged(self, channel: Channel, envelope: Envelope, socket: zmq.Socket[bytes]) -> bool:
        """Whether a tool speaks in the name of a node, or a process in the name of a node that is not in it."""
        process = self._checked[socket]
        if process:
            named = self._vouched[channel.topic][process]
            if not named or envelope.source in named:
                return False
            self._lost(channel.topic, "forged", 1, f"{process} speaks in the name of {envelope.source}")
            return True
        if envelope.source not in self._nodes:
            return False
        self._lost(channel.topic, "forged", 1, f"a tool speaks in the name of {envelope.source}")
        return True

    def _take_bundle(self, channel: Channel, document: Frame, socket: zmq.Socket[bytes]) -> None:
        """Take in messages that were published at once: of events the first, and the others are held."""
        bundle = channel.read_bundle(document)
        if not bundle:
            return
        first, newest = bundle[0].envelope, bundle[-1].envelope
        if socket in self._checked and any(self._is_forged(channel, one.envelope, socket) for one in bundle):
            return
        if not channel.is_new_bundle(first, newest):
            return
        if channel.is_event:
            self._held.extend(bundle)
            self._deliver_held(1)
        else:
            for stamped in bundle:
                self._deliver(stamped)

    def _take_rarer(self, head: bytes, socket: zmq.Socket[bytes]) -> None:
        """Take in a message with arrays or a tag, or one that is sent again to this process alone."""
        topic, (document, *arrays), place, tag = unpack(head, socket)
        channel = self._channels.get(topic)
        if channel is None:
            return
        if tag is not None and self._receipts is not None and topic in self._reliable:
            if socket not in (self._inward_event, self._inward_state):  # no tool asks to be acknowledged
                self._take_reliable(self._receipts, channel, tag, document, arrays, socket)
            return
        try:
            if place is not None:
                found = self.elsewhere.fetch(topic, place, socket)
                if isinstance(found, Loss):
                    channel.lose(document, *found)
                    return
                arrays.extend(found)
        except CodecError as problem:
            channel.lose(document, "garbled", str(problem))
            return
        stamped = channel.read(document, arrays)
        if stamped is None:
            return
        if socket in self._checked and self._is_forged(channel, stamped.envelope, socket):
            return
        if channel.is_new(stamped.envelope):
            self._deliver(stamped)

    def _take_reliable(
        self,
        receipts: Acks,
        channel: Channel,
        tag: bytes,
        document: Frame,
        arrays: Sequence[Frame],
        socket: zmq.Socket[bytes],
    ) -> None:
        topic = channel.topic
        try:
            read = read_tag(topic.encode(), tag)
        except CodecError as problem:
            self._lost(topic, "garbled", 1, str(problem))
            return
        try:
            stamped = channel.decode(topic, document, arrays)
        except CodecError as problem:
            if receipts.take(topic, read, None):
                self._lost(topic, "garbled", 1, str(problem))
                channel.tell_sender(document, str(problem))
            return
        if socket in self._checked and self._is_forged(channel, stamped.envelope, socket):
            receipts.take(topic, read, None)  # what comes after it does not wait for it
            return
        receipts.take(topic, read, stamped)


_PER_TURN = 256  # messages, then look whether to stop


class SubscriberThread(Reader):
    """A `Reader` with a thread of its own."""

    def start(self, priority: int = 0, resender: Retransmitter | None = None) -> None:
        """Start to read. `priority` is the thread's real-time priority, 0 for an ordinary one.

        `resender` is that of the publishing side, which this thread works as well.
        """
        self._is_stopped = False
        self._resender = resender
        if resender is not None:
            self._fds += resender.fds
        self._thread = threading.Thread(target=self._read, args=(priority,), name="bus")
        self._thread.start()

    def finish(self, timeout_s: float) -> bool:
        """Read until every publisher has closed and all that it sent is delivered; False where the time runs out first.

        Needs `watches_ends`. Only `close` may follow.
        """
        assert self._ends is not None
        end_ns = SystemClock().now_ns() + to_ns(timeout_s)
        left = [ends for ends in self._ends if not ends.wait(end_ns)]
        self._is_stopped = True
        self.wake()
        self._thread.join()
        while self.poll(_PER_TURN):
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
        name_thread("bus")
        if priority:
            ask_for_fifo(priority)  # with the resender it holds a lock that control loops need, too
        resender, left_s = self._resender, None
        while not self._is_stopped:
            if resender is not None:
                left_s = resender.work(self._ready)
            if not self.poll(_PER_TURN) and left_s != 0:
                self.wait(left_s)
