"""`Acks`: puts the reliable events of one reader in order, and acknowledges them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import zmq

from runtime.clock import SystemClock
from runtime.message import Stamped
from runtime.transport.channel import Lost
from runtime.transport.reliable.inbox import Inbox
from runtime.transport.reliable.tag import Tag, write_receipt
from runtime.transport.zeromq.frames import NOBLOCK
from runtime.transport.zeromq.sockets import receipt_endpoint

_QUEUE_LENGTH = 64  # a receipt that is lost is made good by the next one


class Acks:
    """Acknowledges for the one thread that reads: `processes` are the senders, `receiver` the name to use."""

    def __init__(
        self,
        folder: Path,
        processes: Iterable[str],
        receiver: str,
        deliver: Callable[[Stamped[Any]], None],
        lost: Lost,
    ) -> None:
        self._folder = folder
        self._processes = frozenset(processes)
        self._clock = SystemClock()
        self._inbox: Inbox[Stamped[Any]] = Inbox(
            receiver, self._clock.now_ns(), deliver, lambda topic, number: lost(topic, "link", number, "")
        )
        self._sockets: dict[str, zmq.Socket[bytes]] = {}

    @property
    def is_due(self) -> bool:
        """Whether `tell` has work, now or later."""
        return self._inbox.owes

    def take(self, topic: str, tag: Tag, stamped: Stamped[Any] | None) -> bool:
        """Take in an event for delivery in its turn, None where it cannot be decoded; False where it came before."""
        return self._inbox.offer(topic, tag, stamped, self._clock.now_ns())

    def tell(self) -> float | None:
        """Acknowledge what is due and give up what is missing for too long; returns the seconds until the next time."""
        now_ns = self._clock.now_ns()
        has_changed = self._inbox.expire(now_ns)
        for sender, receipt in self._inbox.receipts(now_ns):
            if sender in self._processes:
                try:
                    self._socket(sender).send(write_receipt(receipt), NOBLOCK)
                except zmq.Again:
                    pass  # the sender takes none in; it will send again, and be told again
        if has_changed:
            return 0.0  # something may have been delivered
        next_ns = self._inbox.next_ns()
        return None if next_ns is None else max(0.0, (next_ns - now_ns) * 1e-9)

    def close(self) -> None:
        """Acknowledge what has come, and close."""
        self._inbox.hurry()
        self.tell()
        for socket in self._sockets.values():
            socket.close()

    def _socket(self, sender: str) -> zmq.Socket[bytes]:
        socket = self._sockets.get(sender)
        if socket is None:
            socket = self._sockets[sender] = zmq.Context.instance().socket(zmq.PUSH)
            socket.setsockopt(zmq.SNDHWM, _QUEUE_LENGTH)
            socket.setsockopt(zmq.RECONNECT_IVL, 20)
            socket.setsockopt(zmq.RECONNECT_IVL_MAX, 200)
            socket.setsockopt(zmq.LINGER, 100)
            socket.connect(receipt_endpoint(self._folder, sender))
        return socket
