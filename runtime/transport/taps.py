"""How tools join a run over ZeroMQ.

A `Tap` receives topics as any process does, but is not counted as a subscriber. An `Injector` publishes into the second
address of each process, where tools connect.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

import zmq

from runtime.clock import SystemClock, to_ns
from runtime.errors import CodecError, TransportError
from runtime.message import Envelope, Kind, Message
from runtime.serialization.codec import Frame, encode, split_bundle
from runtime.transport.channel import Loss
from runtime.transport.zeromq import (
    KINDS,
    PASSING,
    QUEUE_LENGTH,
    READY,
    TAP_QUEUE_LENGTH,
    SharedMemoryReader,
    bind_inward,
    endpoint,
    inward_endpoint,
    is_bundle,
    pack,
    send,
    subscriber,
    unpack,
)

OTHERS_S = 0.3
"""How long a message waits for the receivers that need not have it, s.

It is short, because a person who drives must renew their lease within 0.6 s meanwhile.
"""


NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class Tap:
    """What a tool receives of a run, as frames, events first, with no thread. A slow tool delays nobody else.

    Where the disk is too full for its sockets it receives what the run publishes, and nothing of other tools.
    """

    def __init__(self, folder: Path, processes: Iterable[str], topics: Mapping[str, Kind], name: str) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._sockets: dict[Kind, zmq.Socket[bytes]] = {
            kind: subscriber(self._context, TAP_QUEUE_LENGTH[kind]) for kind in KINDS
        }
        for topic, kind in topics.items():
            self._sockets[kind].setsockopt(zmq.SUBSCRIBE, topic.encode() + PASSING)
        self.elsewhere = SharedMemoryReader(PASSING)
        self._waiting: deque[tuple[list[Frame], int]] = deque()  # the rest of a bundle
        self.size_bytes = 0
        """Of the message that was received last, on the wire: of a bundle its share."""
        used = set(topics.values())
        for kind, socket in self._sockets.items():
            for process in processes if kind in used else ():
                socket.connect(endpoint(folder, process, kind))
        self._files = [folder / f"{name}.in.{kind}" for kind in KINDS]
        try:
            bind_inward(self._sockets, folder, name)
        except TransportError as problem:
            if getattr(problem.__cause__, "errno", None) not in NO_ROOM:
                self.close()
                raise
        self._poller = zmq.Poller()
        for socket in self._sockets.values():
            self._poller.register(socket, zmq.POLLIN)

    def receive(self, timeout_s: float) -> list[Frame] | None:
        """The next message as topic, document and arrays; None where none came in time."""
        if self._waiting:
            return self._next()
        for _ in range(2):
            for kind in KINDS:
                try:
                    head = self._sockets[kind].recv(zmq.NOBLOCK)
                except zmq.Again:
                    continue
                self._waiting.extend(self._messages(head, self._sockets[kind]))
                if self._waiting:
                    return self._next()
            if not self._poller.poll(max(0, round(timeout_s * 1000))):
                break
        return None

    def _next(self) -> list[Frame]:
        frames, self.size_bytes = self._waiting.popleft()
        return frames

    def _messages(self, head: bytes, socket: zmq.Socket[bytes]) -> list[tuple[list[Frame], int]]:
        """Frames and size of each message in it; none where they cannot be had, which shows in the numbers."""
        topic, frames, place, _ = unpack(head, socket)
        try:
            if is_bundle(head):
                documents = split_bundle(frames[0])
                sizes = shares(len(head), [len(document) for document in documents])
                return [([topic, document], size) for document, size in zip(documents, sizes, strict=True)]
            if place is not None:
                arrays = self.elsewhere.fetch(topic, place, socket)
                if isinstance(arrays, Loss):
                    return []
                frames += arrays
        except CodecError:
            return []
        return [([topic, *frames], sum(len(frame) for frame in frames) + len(topic) + 2)]

    def close(self) -> None:
        """Unsubscribe and close."""
        self.elsewhere.close()
        for socket in self._sockets.values():
            socket.close()
        self._context.term()
        for file in self._files:
            file.unlink(missing_ok=True)  # ZeroMQ leaves them


def shares(whole: int, parts: Sequence[int]) -> list[int]:
    """Divides a whole in proportion to these parts; the shares add up to it."""
    ends = [whole * end // sum(parts) for end in accumulate(parts)]
    return [end - begin for begin, end in pairwise([0, *ends])]


class Injector:
    """Publishes for a tool into a run: to each process, and each tool, that subscribes to the topic."""

    def __init__(self, folder: Path, kind: Kind, processes: Iterable[str], needed: str = "") -> None:
        """`needed` is the one process without which nothing may be sent; the others get only `OTHERS_S` to answer."""
        suffix = f".in.{kind}"
        others = {file.name.removesuffix(suffix) for file in folder.glob(f"*-*{suffix}")}
        self._processes = set(processes)
        self._needed = {needed} if needed else self._processes
        # What this process hears itself answers only while it is read: nobody waits for that here.
        self.unready = self._processes | {name for name in others if not name.startswith(f"tool-{os.getpid()}-")}
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._context.socket(zmq.XPUB)
        self._socket.setsockopt(zmq.SNDHWM, QUEUE_LENGTH["event"])
        self._socket.setsockopt(zmq.LINGER, 1000)
        for name in self._processes | others:
            self._socket.connect(inward_endpoint(folder, name, kind))

    def await_ready(self, timeout_s: float) -> list[str]:
        """Wait until all receivers are connected; returns those that are not at the end."""
        clock = SystemClock()
        end_ns = clock.now_ns() + to_ns(timeout_s)
        is_enough = False
        while self.unready:
            if not is_enough and not self.unready & self._needed:
                is_enough = True  # a tool that died may have left its socket
                end_ns = min(end_ns, clock.now_ns() + to_ns(OTHERS_S))
            left_ms = (end_ns - clock.now_ns()) // 1_000_000
            if left_ms <= 0 or not self._socket.poll(left_ms):
                break
            notice = self._socket.recv()
            if notice[:2] == b"\x01" + READY:
                self.unready.discard(notice[2:].decode(errors="replace"))
        return sorted(self.unready & self._processes)

    def publish(self, envelope: Envelope, message: Message) -> None:
        """Send to every subscriber, without waiting."""
        send(self._socket, pack(encode(envelope, message)))

    def close(self) -> None:
        """Send what is queued, for at most a second, and close."""
        self._socket.close()
        self._context.term()
