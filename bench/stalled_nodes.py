"""Nodes for a subscriber that is stopped for a while: who sends, who is stopped, and what it hears afterwards."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.result import percentile
from runtime import Message, Node, Publisher, QoS, Subscription, every, on

LIFESPAN_S = 0.25


class Bulk(Message, kind="state"):
    """A megabyte of state."""

    sent_ns: int
    body: NDArray[np.uint8]


class Order(Message, kind="state"):
    """A command that nobody may follow once it is older than its lifespan."""

    sent_ns: int


class Hello(Message):
    """Where the process of a node can be found."""

    pid: int


class Resumed(Message):
    """What a receiver saw after a pause."""

    recovery_s: float  # from the moment it ran on until it heard something that was sent after that
    oldest_order_s: float
    orders: int


class Sleeper(Node):
    """Hears bulk data and orders, and is stopped by a signal now and then."""

    realtime = True
    bulk = Subscription(Bulk, "bulk")
    order = Subscription(Order, "order", qos=QoS(lifespan_s=LIFESPAN_S))
    hello = Publisher(Hello, "hello")
    resumed = Publisher(Resumed, "resumed")

    def __init__(self) -> None:
        self.last_ns = 0
        self.woke_ns = 0
        self.recovered_ns = 0
        self.ages_s: list[float] = []

    @every(hz=100)
    def watch(self) -> None:
        """Notice a pause by the gap that it leaves."""
        now_ns = self.clock.now_ns()
        if self.last_ns and now_ns - self.last_ns > 1_000_000_000:
            self.woke_ns = now_ns
        self.last_ns = now_ns
        if not self.woke_ns:
            self.hello.publish(Hello(pid=os.getpid()))
        if self.recovered_ns and now_ns - self.woke_ns > 1_500_000_000:
            recovery_s = (self.recovered_ns - self.woke_ns) * 1e-9
            self.resumed.publish(
                Resumed(recovery_s=recovery_s, oldest_order_s=max(self.ages_s, default=0.0), orders=len(self.ages_s))
            )

    @on(bulk)
    def take_bulk(self, bulk: Bulk) -> None:
        self.watch()
        if self.woke_ns and not self.recovered_ns and bulk.sent_ns > self.woke_ns:
            self.recovered_ns = self.clock.now_ns()

    @on(order)
    def follow(self, order: Order) -> None:
        self.ages_s.append((self.clock.now_ns() - order.sent_ns) * 1e-9)


class Driver(Node):
    """Sends 30 MB/s and orders, stops the other process for a while, and ends the run with what came of it."""

    realtime = True
    bulk = Publisher(Bulk, "bulk")
    order = Publisher(Order, "order")
    hello = Subscription(Hello, "hello")
    resumed = Subscription(Resumed, "resumed")

    def __init__(self, pause_s: float = 60.0) -> None:
        self.pause_s = pause_s
        self.pid = 0
        self.sent = 0
        self.rss_mb: list[float] = []
        self.before_mb = 0.0
        self.late_ms: list[float] = []

    @every(hz=30)
    def send(self) -> None:
        now_ns = self.clock.now_ns()
        self.sent += 1
        self.bulk.publish(Bulk(sent_ns=now_ns, body=np.full(1 << 20, self.sent % 256, np.uint8)))
        self.order.publish(Order(sent_ns=self.clock.now_ns()))
        self.late_ms.append((self.clock.now_ns() - now_ns) * 1e-6)
        self.rss_mb.append(rss_mb())
        if self.sent == 90 and self.pid:  # memory and caches are there
            self.before_mb = rss_mb()
            os.kill(self.pid, signal.SIGSTOP)
            self.waker = threading.Timer(self.pause_s, os.kill, (self.pid, signal.SIGCONT))
            self.waker.start()

    @on(hello)
    def meet(self, hello: Hello) -> None:
        self.pid = hello.pid

    @on(resumed)
    def end(self, resumed: Resumed) -> None:
        figures = {
            "growth_mb": max(self.rss_mb) - self.before_mb,
            "recovery_s": resumed.recovery_s,
            "oldest_order_s": resumed.oldest_order_s,
            "publish_p99_ms": percentile(self.late_ms, 99),
        }
        self.finish(ok=True, reason=json.dumps(figures))

    def on_stop(self) -> None:
        waker: threading.Timer | None = getattr(self, "waker", None)
        if waker is not None:
            waker.cancel()
            os.kill(self.pid, signal.SIGCONT)


def rss_mb() -> float:
    """Memory of this process now, the shared one included."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
