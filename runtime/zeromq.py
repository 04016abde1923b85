"""The ZeroMQ transport between processes; the only file that imports `zmq`.

Each process binds two XPUB sockets, one for events and one for states, so that an image never stands before an
interrupt; each connects to those of the others and subscribes to the topics that it needs. Starts one I/O thread, which
receives and hands over what it decoded.
"""

from __future__ import annotations

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

QUEUE_LENGTH: dict[Kind, int] = {"event": 4096, "state": 16}
MAX_MESSAGE_BYTES = 64 << 20
_STATES_PER_TURN = 32  # then look at the events again


def endpoint(folder: Path, process: str, kind: Kind) -> str:
    """Where a process of a run publishes messages of that kind."""
    return f"ipc://{folder / f'{process}.{kind}'}"


class Outlet:
    """The publishing side of a process; any thread may send."""

    def __init__(self, folder: Path, process: str) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
        self._lock = threading.Lock()
        self._sockets: dict[Kind, zmq.Socket[bytes]] = {}
        for kind in ("event", "state"):
            socket = self._context.socket(zmq.XPUB)
            socket.setsockopt(zmq.SNDHWM, QUEUE_LENGTH[kind])
            socket.setsockopt(zmq.XPUB_VERBOSE, 1)
            socket.setsockopt(zmq.LINGER, 500)
            address = endpoint(folder, process, kind)
            try:
                socket.bind(address)
            except zmq.ZMQError as problem:
                raise TransportError(f"{address} cannot be bound: {problem}") from problem
            self._sockets[kind] = socket

    def await_subscribers(self, expected: Mapping[str, int], kinds: Mapping[str, Kind], timeout_s: float) -> list[str]:
        """Wait until each topic has that many subscriptions; return the topics that still lack some at the end."""
        missing = Counter({topic: number for topic, number in expected.items() if number})
        clock = SystemClock()
        end_ns = clock.now_ns() + to_ns(timeout_s)
        for kind, socket in self._sockets.items():
            while any(count > 0 and kinds.get(topic, "event") == kind for topic, count in missing.items()):
                left_ms = (end_ns - clock.now_ns()) // 1_000_000
                if left_ms <= 0 or not socket.poll(left_ms):
                    break
                notice = socket.recv()
                if notice[:1] == b"\x01":
                    missing[notice[1:].rstrip(b"\0").decode(errors="replace")] -= 1
        return sorted(topic for topic, count in missing.items() if count > 0)

    def publish(self, envelope: Envelope, message: Message) -> None:
        """Send to whoever subscribes; never waits. A full queue drops, which the receiver sees as a gap."""
        frames = encode(envelope, message)
        frames[0] = bytes(frames[0]) + b"\0"  # so that no topic is the prefix of another
        with self._lock:
            self._sockets[message.message_kind].send_multipart(frames, zmq.NOBLOCK)

    def close(self) -> None:
        """Send what is queued, for at most half a second, and close."""
        with self._lock:
            for socket in self._sockets.values():
                socket.close()


class Inlet:
    """The receiving side of a process: subscriptions to other processes, and the thread that reads them."""

    def __init__(
        self,
        types: Mapping[str, type[Message]],
        deliver: Callable[[Stamped[Any]], None],
        lost: Callable[[str, str, int], None],
    ) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
        self._types = {topic.encode() + b"\0": message for topic, message in types.items()}
        self._deliver = deliver
        self._lost = lost
        self._last_seq: dict[tuple[str, str], int] = {}
        self._sockets: dict[Kind, zmq.Socket[bytes]] = {}
        self._stop_address = f"inproc://stop-{id(self)}"
        self._stop_receiver = self._context.socket(zmq.PAIR)
        self._stop_receiver.bind(self._stop_address)
        for kind in ("event", "state"):
            socket = self._context.socket(zmq.SUB)
            socket.setsockopt(zmq.RCVHWM, QUEUE_LENGTH[kind])
            socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
            socket.setsockopt(zmq.RECONNECT_IVL, 20)
            socket.setsockopt(zmq.RECONNECT_IVL_MAX, 200)
            socket.setsockopt(zmq.LINGER, 0)
            self._sockets[kind] = socket
        self._thread = threading.Thread(target=self._read, name="zeromq-inlet")

    def connect(self, folder: Path, processes: Iterable[str]) -> None:
        """Subscribe to the topics given, at each of these processes. Call before `start`."""
        for topic, message in self._types.items():
            self._sockets[message.message_kind].setsockopt(zmq.SUBSCRIBE, topic)
        for process in processes:
            for kind, socket in self._sockets.items():
                socket.connect(endpoint(folder, process, kind))

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
