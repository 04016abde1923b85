"""`LossyWire`: stands between a publishing process and its readers, and loses, doubles and swaps what passes.

The readers connect to a folder of its own, in which it plays the publisher. Subscriptions pass unharmed, for ZeroMQ
sends them once; events and receipts do not.
"""

from __future__ import annotations

import random
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

import zmq

from runtime.transport.zeromq.sockets import endpoint, receipt_endpoint


class LossyWire:
    """From `with` to its end; `loss`, `double` and `swap` are shares of the messages, one way and the other."""

    def __init__(self, real: Path, played: Path, process: str, *, loss: float, double: float, swap: float, seed: int):
        self.lost = self.passed = 0
        self.loss, self.double, self.swap = loss, double, swap
        self._luck = random.Random(seed)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._inner = self._socket(zmq.XSUB)
        self._outer = self._socket(zmq.XPUB)
        self._outer.setsockopt(zmq.XPUB_VERBOSER, 1)
        self._receipts_in, self._receipts_out = self._socket(zmq.PULL), self._socket(zmq.PUSH)
        self._inner.connect(endpoint(real, process, "event"))
        self._outer.bind(endpoint(played, process, "event"))
        self._receipts_in.bind(receipt_endpoint(played, process))
        self._receipts_out.connect(receipt_endpoint(real, process))
        self._held: dict[Any, list[bytes]] = {}
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="lossy-wire")

    def _socket(self, kind: int) -> zmq.Socket[bytes]:
        socket = self._context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        return socket

    def _run(self) -> None:
        poller = zmq.Poller()
        for socket in (self._inner, self._outer, self._receipts_in):
            poller.register(socket, zmq.POLLIN)
        while not self._is_stopped:
            for socket, _ in poller.poll(20):
                if socket is self._outer:
                    self._inner.send(self._outer.recv())
                elif socket is self._inner:
                    self._harm(self._inner.recv_multipart(), self._outer)
                else:
                    self._harm(self._receipts_in.recv_multipart(), self._receipts_out)
            for socket in list(self._held):
                if self._luck.random() < 0.5:
                    socket.send_multipart(self._held.pop(socket))

    def _harm(self, frames: list[bytes], way: zmq.Socket[bytes]) -> None:
        self.passed += 1
        if self._luck.random() < self.loss:
            self.lost += 1
            return
        if self._luck.random() < self.swap and way not in self._held:
            self._held[way] = frames
            return
        for _ in range(1 + (self._luck.random() < self.double)):
            way.send_multipart(frames)
        if way in self._held:
            way.send_multipart(self._held.pop(way))

    def __enter__(self) -> LossyWire:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self._is_stopped = True
        self._thread.join()
        for socket in (self._inner, self._outer, self._receipts_in, self._receipts_out):
            socket.close()
        self._context.term()
