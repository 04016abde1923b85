"""`Retransmitter`: the thread of an outlet that takes in acknowledgements and sends again what was not acknowledged."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from secrets import randbits
from typing import Any

import zmq
from zmq.backend import zmq_poll

from runtime.clock import SystemClock
from runtime.errors import CodecError, TransportError
from runtime.os_realtime import ask_for_fifo
from runtime.serialization.codec import Frame
from runtime.transport.reliable.outbox import FIRST_PERIOD_NS, Again, Outbox
from runtime.transport.reliable.tag import Terms, read_receipt, write_tag
from runtime.transport.zeromq.frames import NOBLOCK, pack_tagged
from runtime.transport.zeromq.sockets import receipt_endpoint

_POLLIN = int(zmq.POLLIN)
_QUEUE_LENGTH = 1024
_MOST_RECEIPT_BYTES = 1 << 16
_PER_TURN = 16  # receipts taken in, or messages sent again, before a publisher may have its turn
_EXPECTED = ("restarted", "closed")  # reasons that nobody need be told of


class Retransmitter:
    """`send` puts frames on the wire; `lock` is held by whoever does so, and whenever the outbox is touched."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        folder: Path,
        process: str,
        terms: Mapping[str, Terms],
        *,
        lock: threading.Lock,
        send: Callable[[Sequence[Frame]], None],
        priority: int,
    ) -> None:
        self._lock, self._send = lock, send
        self._clock = SystemClock()
        self._given_up: deque[tuple[str, str, str]] = deque(maxlen=64)
        self._told: set[tuple[str, str, str]] = set()
        self._outbox = Outbox(
            process,
            randbits(62),
            terms,
            lambda *what: self._given_up.append(what),
        )
        self.topics = frozenset(terms)
        self._socket = context.socket(zmq.PULL)
        self._socket.setsockopt(zmq.RCVHWM, _QUEUE_LENGTH)
        self._socket.setsockopt(zmq.MAXMSGSIZE, _MOST_RECEIPT_BYTES)
        self._socket.setsockopt(zmq.LINGER, 0)
        address = receipt_endpoint(folder, process)
        try:
            self._socket.bind(address)
        except zmq.ZMQError as problem:
            raise TransportError(f"{address} cannot be bound: {problem}") from problem
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)
        self._sleeps_until_ns: int | None = 0  # None: until something comes
        self._is_stopped = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(priority,), name="zeromq-resender")
        self._thread.start()

    def publish(self, frames: Sequence[Frame]) -> None:
        """Send an event to everybody, and keep it until it is acknowledged; the caller holds the lock."""
        topic = bytes(frames[0])
        self._outbox.add(
            topic.decode(),
            frames,
            self._clock.now_ns(),
            lambda tag: self._send(pack_tagged(frames, write_tag(topic, tag))),
        )
        due_ns = self._outbox.next_ns()
        if due_ns is not None and (self._sleeps_until_ns is None or due_ns < self._sleeps_until_ns):
            self._sleeps_until_ns = due_ns
            self._wake()

    @property
    def is_empty(self) -> bool:
        """Whether everything is acknowledged or given up (any thread)."""
        with self._lock:
            return self._outbox.is_empty

    def unacknowledged(self) -> dict[str, dict[str, int]]:
        """By topic and then as "receiver: reason": the messages that were not acknowledged (any thread)."""
        with self._lock:
            counted = dict(self._outbox.unacknowledged)
        found: dict[str, dict[str, int]] = {}
        for (topic, receiver, reason), number in counted.items():
            found.setdefault(topic, {})[f"{receiver}: {reason}"] = number
        return found

    def close(self, patience_s: float) -> None:
        """Go on for at most that long, until all is acknowledged; then give up."""
        with self._lock:
            self._ended.clear()
            is_empty = self._outbox.is_empty
        if not is_empty:
            self._ended.wait(patience_s)
        self._is_stopped = True
        self._wake()
        self._thread.join()
        with self._lock:
            self._outbox.close()
        self._tell()
        self._socket.close()
        os.close(self._wake_reader)
        os.close(self._wake_writer)

    def _wake(self) -> None:
        try:
            os.write(self._wake_writer, b"w")
        except BlockingIOError:
            pass  # it is awake

    def _run(self, priority: int) -> None:
        if priority:
            ask_for_fifo(priority)  # it holds a lock that control loops need, too
        polled: list[tuple[Any, int]] = [(self._socket, _POLLIN), (self._wake_reader, _POLLIN)]
        while not self._is_stopped:
            left_ns = self._turn()
            if left_ns == 0:
                continue
            ready = zmq_poll(polled, -1 if left_ns is None else -(-left_ns // 1_000_000))
            if any(socket == self._wake_reader for socket, _ in ready):
                os.read(self._wake_reader, 4096)

    def _turn(self) -> int | None:
        """Do some of what is to be done; nanoseconds until there is more, None where nobody knows."""
        receipts: list[bytes] = []
        while len(receipts) < _PER_TURN:
            try:
                receipts.append(self._socket.recv(NOBLOCK))
            except zmq.Again:
                break
        with self._lock:
            now_ns = self._clock.now_ns()
            again: list[Again] = []
            for data in receipts:
                try:
                    again += self._outbox.take(read_receipt(data), now_ns)
                except CodecError:
                    continue  # not one of ours
            again += self._outbox.due(now_ns, _PER_TURN)
            for one in again:
                topic = bytes(one.frames[0])
                self._send(pack_tagged(one.frames, write_tag(topic, one.tag), one.receiver))
            next_ns = self._outbox.next_ns()
            if next_ns is None:
                self._ended.set()
                if receipts:
                    next_ns = now_ns + FIRST_PERIOD_NS  # whoever publishes next need not wake this thread then
            self._sleeps_until_ns = next_ns
        self._tell()
        if len(receipts) == _PER_TURN:
            return 0
        return None if next_ns is None else max(0, next_ns - now_ns)

    def _tell(self) -> None:
        """Say once for each topic, receiver and reason that something was not acknowledged."""
        while self._given_up:
            what = self._given_up.popleft()
            if what not in self._told:
                self._told.add(what)
                level = logging.DEBUG if what[2] in _EXPECTED else logging.WARNING
                text = "%s: %s has not acknowledged an event: %s"
                logging.getLogger("bus").log(level, text, *what)
