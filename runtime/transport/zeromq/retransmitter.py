"""`Retransmitter`: takes in acknowledgements and sends again what was not acknowledged.

In a process of a run the thread that reads the bus does this as well (`work`); elsewhere it has its own thread.
"""

from __future__ import annotations

import logging
import select
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from secrets import randbits

import zmq

from runtime.clock import NS_PER_S, SystemClock
from runtime.errors import CodecError
from runtime.operating_system.real_time import ask_for_fifo, name_thread
from runtime.operating_system.wake_pipe import WakePipe
from runtime.serialization.codec import Frame
from runtime.transport.reliable.outbox import FIRST_PERIOD_NS, Again, Outbox
from runtime.transport.reliable.tag import Terms, read_receipt, write_tag
from runtime.transport.zeromq.frames import NOBLOCK, pack_tagged
from runtime.transport.zeromq.sockets import bind, receipt_endpoint

_QUEUE_LENGTH = 1024
_MOST_RECEIPT_BYTES = 1 << 16
_PER_TURN = 16  # receipts taken in, or messages sent again, before a publisher may have its turn
_EXPECTED = ("restarted", "closed")  # reasons that nobody need be told of


class Retransmitter:
    """`send` puts frames on the wire; `lock` is held by whoever does that, and whenever the outbox is used."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        folder: Path,
        process: str,
        terms: Mapping[str, Terms],
        *,
        lock: threading.Lock,
        send: Callable[[Sequence[Frame]], None],
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
        bind(self._socket, receipt_endpoint(folder, process))
        self._woken = WakePipe()
        self.fds = frozenset((int(self._socket.getsockopt(zmq.FD)), self._woken.fd))
        """What whoever calls `work` waits on."""
        self._sleeps_until_ns: int | None = 0  # None: until something comes
        self._has_more = False  # where it stopped at _PER_TURN
        self._is_stopped = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, priority: int) -> None:
        """Do the work on a thread of its own, with this real-time priority; 0 leaves it ordinary."""
        self._thread = threading.Thread(target=self._run, args=(priority,), name="receipts")
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
            self._woken.wake()

    @property
    def is_empty(self) -> bool:
        """Whether every message is acknowledged or given up (any thread)."""
        with self._lock:
            return self._outbox.is_empty

    def unacknowledged(self) -> dict[str, dict[str, int]]:
        """How many messages were not acknowledged, by topic and "receiver: reason" (any thread)."""
        with self._lock:
            counted = dict(self._outbox.unacknowledged)
        found: dict[str, dict[str, int]] = {}
        for (topic, receiver, reason), number in counted.items():
            found.setdefault(topic, {})[f"{receiver}: {reason}"] = number
        return found

    def settle(self, patience_s: float) -> None:
        """Wait until all is acknowledged, for at most this long; the work must go on meanwhile."""
        with self._lock:
            self._ended.clear()
            is_empty = self._outbox.is_empty
        if not is_empty:
            self._ended.wait(patience_s)

    def close(self) -> None:
        """Give up what is not acknowledged; `work` may not be called any more."""
        if self._thread is not None:
            self._is_stopped = True
            self._woken.wake()
            self._thread.join()
        with self._lock:
            self._outbox.close()
        self._tell()
        self._socket.close()
        self._woken.close()

    def _run(self, priority: int) -> None:
        name_thread("receipts")
        if priority:
            ask_for_fifo(priority)  # it holds a lock that control loops need, too
        ready: Collection[int] = ()
        while not self._is_stopped:
            left_s = self.work(ready)
            ready = () if left_s == 0 else select.select(self.fds, (), (), left_s)[0]

    def work(self, ready: Collection[int]) -> float | None:
        """Do what is due, and return the seconds until more is; None where that is not known.

        `ready` are the descriptors of `fds` that ended the wait before; ZeroMQ signals each of them only once.
        """
        until_ns = self._sleeps_until_ns
        if not self._has_more and self.fds.isdisjoint(ready):
            if until_ns is None:
                return None
            left_ns = until_ns - self._clock.now_ns()
            if left_ns > 0:
                return left_ns / NS_PER_S
        if self._woken.fd in ready:
            self._woken.clear()
        return self._turn()

    def _turn(self) -> float | None:
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
        self._has_more = len(receipts) == _PER_TURN
        if self._has_more:
            return 0.0
        return None if next_ns is None else max(0, next_ns - now_ns) / NS_PER_S

    def _tell(self) -> None:
        """Say once for each topic, receiver and reason that something was not acknowledged."""
        while self._given_up:
            what = self._given_up.popleft()
            if what not in self._told:
                self._told.add(what)
                level = logging.DEBUG if what[2] in _EXPECTED else logging.WARNING
                text = "%s: %s has not acknowledged an event: %s"
                logging.getLogger("bus").log(level, text, *what)
