"""The ZeroMQ transport between processes; the only file that imports `zmq`.

Each process binds two XPUB sockets, one for events and one for states, so that an image never stands before an
interrupt; each connects to those of the others and subscribes to the topics that it needs. Starts one I/O thread, which
receives and hands over what it decoded.

Tools come and go: a `Tap` hears topics like any process but is not counted as one, and an `Injector` sends into the
second address of each process, where its inlet is bound and a tool connects.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import zmq

from runtime.clock import SystemClock, to_ns
from runtime.codec import decode, encode
from runtime.errors import CodecError, TransportError
from runtime.message import Envelope, Kind, Message, Stamped
from runtime.scheduling import ask_for_fifo

QUEUE_LENGTH: dict[Kind, int] = {"event": 4096, "state": 16}
TAP_QUEUE_LENGTH: dict[Kind, int] = {"event": 4096, "state": 64}
MAX_MESSAGE_BYTES = 64 << 20
_POLL_S = 0.005
_STATES_PER_TURN = 32  # then look at the events again
_NOTICES_EVERY = 256  # messages sent, between two looks at who came and went
_KINDS: tuple[Kind, Kind] = ("event", "state")

# The first frame is the topic and two zero bytes. Processes subscribe to the topic and one zero byte, tools to both of
# them, so that the publisher can tell them apart; and no topic is the prefix of another.
_COUNTED = b"\0"
_PASSING = b"\0\0"
_READY = b"\xff"  # with its name after it: an inlet's subscription that tells an injector that it is connected


def endpoint(folder: Path, process: str, kind: Kind) -> str:
    """Where a process of a run publishes messages of that kind."""
    return f"ipc://{folder / f'{process}.{kind}'}"


def inward_endpoint(folder: Path, name: str, kind: Kind) -> str:
    """Where a process of a run, or a tool, takes in what tools publish."""
    return f"ipc://{folder / f'{name}.in.{kind}'}"


def endpoints(folder: Path, process: str) -> list[Path]:
    """The sockets of a process, as files."""
    return [folder / f"{process}{way}.{kind}" for way in ("", ".in") for kind in _KINDS]


def schedule_transport(priority: int) -> None:
    """Let ZeroMQ's own threads run with SCHED_FIFO; call before the first socket, and only where that is granted."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
    context.set(zmq.THREAD_SCHED_POLICY, os.SCHED_FIFO)
    context.set(zmq.THREAD_PRIORITY, priority)


class Outlet:
    """The publishing side of a process; any thread may send."""

    def __init__(self, folder: Path, process: str) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()  # its own: `close` waits for what is queued
        self._lock = threading.Lock()
        self._sockets: dict[Kind, zmq.Socket[bytes]] = {}
        self._until_notices: dict[Kind, int] = dict.fromkeys(_KINDS, _NOTICES_EVERY)
        for kind in _KINDS:
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
                    if not notice.endswith(_PASSING) and notice[1:2] != _READY:
                        topic = notice[1:].rstrip(b"\0").decode(errors="replace")
                        missing[topic] -= 1 if notice[:1] == b"\x01" else -1
            lacking = sorted(topic for topic, count in missing.items() if count > 0)
            if not lacking or stop.is_set() or clock.now_ns() >= end_ns:
                return lacking
            await clock.sleep(_POLL_S)

    def publish(self, envelope: Envelope, message: Message) -> None:
        """Send to whoever subscribes; never waits. A full queue drops, which the receiver sees as a gap."""
        frames = encode(envelope, message)
        frames[0] = bytes(frames[0]) + _PASSING
        kind = message.message_kind
        with self._lock:
            self._sockets[kind].send_multipart(frames, zmq.NOBLOCK)
            self._until_notices[kind] -= 1
            if not self._until_notices[kind]:
                self._until_notices[kind] = _NOTICES_EVERY
                _forget_notices(self._sockets[kind])

    def close(self) -> None:
        """Send what is queued, for at most half a second, and close."""
        with self._lock:
            for socket in self._sockets.values():
                socket.close()
        self._context.term()


class Inlet:
    """The receiving side of a process: subscriptions to other processes, and the thread that reads them."""

    def __init__(
        self,
        types: Mapping[str, type[Message]],
        deliver: Callable[[Stamped[Any]], None],
        lost: Callable[[str, str, int], None],
        *,
        is_counted: bool = True,
        priority: int = 0,
    ) -> None:
        """`is_counted`: publishers wait for it when they start; not so for those who only watch.

        `priority`: real-time priority of the thread; 0 leaves it ordinary.
        """
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
        self._types = {topic.encode() + _PASSING: message for topic, message in types.items()}
        self._end = _COUNTED if is_counted else _PASSING
        self._deliver = deliver
        self._lost = lost
        self._priority = priority
        self._last_seq: dict[tuple[str, str], int] = {}
        self._sockets: dict[Kind, zmq.Socket[bytes]] = {}
        self._stop_address = f"inproc://stop-{id(self)}"
        self._stop_receiver = self._context.socket(zmq.PAIR)
        self._stop_receiver.bind(self._stop_address)
        for kind in _KINDS:
            self._sockets[kind] = _subscriber(self._context, QUEUE_LENGTH[kind])
        self._thread = threading.Thread(target=self._read, name="zeromq-inlet")

    def connect(self, folder: Path, processes: Iterable[str]) -> None:
        """Subscribe to the topics given, at each of these processes. Call before `start`."""
        for topic, message in self._types.items():
            self._sockets[message.message_kind].setsockopt(zmq.SUBSCRIBE, topic.rstrip(b"\0") + self._end)
        for process in processes:
            for kind, socket in self._sockets.items():
                socket.connect(endpoint(folder, process, kind))

    def accept(self, folder: Path, name: str) -> None:
        """Take in what tools publish, too. Raises TransportError; call before `start`."""
        _bind_inward(self._sockets, folder, name)

    def start(self) -> None:
        """Start reading."""
        self._thread.start()

    def close(self) -> None:
        """Stop reading and close."""
        if self._thread.is_alive():
            stop = self._context.socket(zmq.PAIR)
            stop.connect(self._stop_address)
            stop.send(b"")
            self._thread.join()
            stop.close()
        self._stop_receiver.close()
        for socket in self._sockets.values():
            socket.close()

    def _read(self) -> None:
        if self._priority:
            ask_for_fifo(self._priority)
        events, states = self._sockets["event"], self._sockets["state"]
        poller = zmq.Poller()
        for socket in (self._stop_receiver, events, states):
            poller.register(socket, zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            if self._stop_receiver in ready:
                return
            self._drain(events, limit=None)
            for _ in range(_STATES_PER_TURN):
                if not self._drain(states, limit=1):
                    break
                self._drain(events, limit=None)

    def _drain(self, socket: zmq.Socket[bytes], limit: int | None) -> int:
        number = 0
        while limit is None or number < limit:
            try:
                frames = socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                break
            number += 1
            self._take(frames)
        return number

    def _take(self, frames: Sequence[bytes]) -> None:
        message = self._types.get(frames[0])
        if message is None:
            return
        topic = frames[0].rstrip(b"\0")
        try:
            stamped = decode([topic, *frames[1:]], message)
        except CodecError as problem:
            self._lost(topic.decode(errors="replace"), f"garbled: {problem}", 1)
            return
        envelope = stamped.envelope
        key = (envelope.topic, envelope.source)
        last = self._last_seq.get(key)
        if last is not None and envelope.seq > last + 1:
            self._lost(envelope.topic, "link", envelope.seq - last - 1)
        self._last_seq[key] = envelope.seq
        self._deliver(stamped)


class Tap:
    """What a tool hears of a run, as frames: events first, no thread. Its own slowness costs nobody else anything."""

    def __init__(self, folder: Path, processes: Iterable[str], topics: Mapping[str, Kind], name: str) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._sockets: dict[Kind, zmq.Socket[bytes]] = {
            kind: _subscriber(self._context, TAP_QUEUE_LENGTH[kind]) for kind in _KINDS
        }
        for topic, kind in topics.items():
            self._sockets[kind].setsockopt(zmq.SUBSCRIBE, topic.encode() + _PASSING)
        used = set(topics.values())
        for kind, socket in self._sockets.items():
            for process in processes if kind in used else ():
                socket.connect(endpoint(folder, process, kind))
        self._files = [folder / f"{name}.in.{kind}" for kind in _KINDS]
        _bind_inward(self._sockets, folder, name)
        self._poller = zmq.Poller()
        for socket in self._sockets.values():
            self._poller.register(socket, zmq.POLLIN)

    def receive(self, timeout_s: float) -> list[bytes] | None:
        """The next message as topic, document and arrays; None where none came in time."""
        for _ in range(2):
            for kind in _KINDS:
                try:
                    frames = self._sockets[kind].recv_multipart(zmq.NOBLOCK)
                except zmq.Again:
                    continue
                return [frames[0].rstrip(b"\0"), *frames[1:]]
            if not self._poller.poll(max(0, round(timeout_s * 1000))):
                break
        return None

    def close(self) -> None:
        """Hear no more."""
        for socket in self._sockets.values():
            socket.close()
        self._context.term()
        for file in self._files:
            file.unlink(missing_ok=True)  # ZeroMQ leaves them


class Injector:
    """What a tool sends into a run: to each process that hears the topic, and to the tools that do."""

    def __init__(self, folder: Path, kind: Kind, processes: Iterable[str]) -> None:
        suffix = f".in.{kind}"
        others = {file.name.removesuffix(suffix) for file in folder.glob(f"*-*{suffix}")}
        self._processes = set(processes)
        self._unready = self._processes | others
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._context.socket(zmq.XPUB)
        self._socket.setsockopt(zmq.SNDHWM, QUEUE_LENGTH["event"])
        self._socket.setsockopt(zmq.LINGER, 1000)
        for name in self._unready:
            self._socket.connect(inward_endpoint(folder, name, kind))

    def await_ready(self, timeout_s: float) -> list[str]:
        """Wait until all are connected; return the processes that still are not at the end."""
        clock = SystemClock()
        end_ns = clock.now_ns() + to_ns(timeout_s)
        others_end_ns = clock.now_ns() + to_ns(min(timeout_s, 0.3))  # a tool that died may have left its socket
        while self._unready:
            end_now_ns = end_ns if self._unready & self._processes else others_end_ns
            left_ms = (end_now_ns - clock.now_ns()) // 1_000_000
            if left_ms <= 0 or not self._socket.poll(left_ms):
                break
            notice = self._socket.recv()
            if notice[:2] == b"\x01" + _READY:
                self._unready.discard(notice[2:].decode(errors="replace"))
        return sorted(self._unready & self._processes)

    def publish(self, envelope: Envelope, message: Message) -> None:
        """Send to whoever subscribes; never waits."""
        frames = encode(envelope, message)
        frames[0] = bytes(frames[0]) + _PASSING
        self._socket.send_multipart(frames, zmq.NOBLOCK)

    def close(self) -> None:
        """Send what is queued, for at most a second, and close."""
        self._socket.close()
        self._context.term()


def _subscriber(context: zmq.Context[zmq.Socket[bytes]], queue_length: int) -> zmq.Socket[bytes]:
    socket = context.socket(zmq.SUB)
    socket.setsockopt(zmq.RCVHWM, queue_length)
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
    socket.setsockopt(zmq.RECONNECT_IVL, 20)
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, 200)
    socket.setsockopt(zmq.LINGER, 0)
    return socket


def _bind_inward(sockets: Mapping[Kind, zmq.Socket[bytes]], folder: Path, name: str) -> None:
    for kind, socket in sockets.items():
        socket.setsockopt(zmq.SUBSCRIBE, _READY + name.encode())
        address = inward_endpoint(folder, name, kind)
        try:
            socket.bind(address)
        except zmq.ZMQError as problem:
            raise TransportError(f"{address} cannot be bound: {problem}") from problem


def _forget_notices(socket: zmq.Socket[bytes]) -> None:
    """Read who subscribed and left since the start: ZeroMQ keeps these notices until somebody does."""
    while int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
        socket.recv(zmq.NOBLOCK)
