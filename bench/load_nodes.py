"""Nodes that the benchmarks run."""

from __future__ import annotations

import json
import time

from bench.result import percentile
from runtime import Message, Node, Publisher, Subscription, every, on


class Parcel(Message):
    """As many bytes as asked for."""

    sent_ns: int
    body: bytes


class Source(Node):
    """Sends parcels at a rate."""

    realtime = True
    parcel = Publisher(Parcel, "parcel")

    def __init__(self, size_bytes: int = 4096) -> None:
        self.body = bytes(size_bytes)

    @every(hz=200)
    def send(self) -> None:
        self.parcel.publish(Parcel(sent_ns=self.clock.now_ns(), body=self.body))


class Sink(Node):
    """Collects how old parcels are when its handler gets them, and ends the run with the figures."""

    realtime = True
    parcel = Subscription(Parcel, "parcel")

    def __init__(self, count: int = 600) -> None:
        self.count = count
        self.ages_us: list[float] = []

    @on(parcel)
    def take(self, parcel: Parcel) -> None:
        self.ages_us.append((self.clock.now_ns() - parcel.sent_ns) * 1e-3)
        if len(self.ages_us) == self.count:
            figures = {"p50": percentile(self.ages_us, 50), "p99": percentile(self.ages_us, 99)}
            self.finish(ok=True, reason=json.dumps(figures))


class Flood(Node):
    """Sends a number of small parcels as fast as they go."""

    parcel = Publisher(Parcel, "parcel")

    def __init__(self, count: int = 100_000) -> None:
        self.left = count

    @every(hz=100)
    def send(self) -> None:
        for _ in range(min(self.left, 500)):
            self.parcel.publish(Parcel(sent_ns=self.clock.now_ns(), body=bytes(32)))
        self.left -= min(self.left, 500)


class Metronome(Node):
    """A 20 Hz control loop that does nothing but be late or not."""

    realtime = True
    beat = Publisher(Parcel, "beat")

    def __init__(self, seconds: float = 5.0) -> None:
        self.seconds = seconds
        self.period_ns = 50_000_000
        self.first_ns = 0
        self.lateness_ms: list[float] = []

    @every(hz=20)
    def tick(self) -> None:
        now_ns = self.clock.now_ns()
        self.first_ns = self.first_ns or now_ns
        self.lateness_ms.append(((now_ns - self.first_ns + self.period_ns // 2) % self.period_ns) * 1e-6 - 25.0)
        self.beat.publish(Parcel(sent_ns=now_ns, body=b""))
        if (now_ns - self.first_ns) * 1e-9 >= self.seconds:
            late = [abs(value - min(self.lateness_ms)) for value in self.lateness_ms]
            expected = int(self.seconds * 20)
            figures = {
                "p50": percentile(late, 50),
                "p99": percentile(late, 99),
                "missed": max(0, expected + 1 - len(late)),
            }
            self.finish(ok=True, reason=json.dumps(figures))


class Blocker(Node):
    """A planner that hangs: it never returns from its handler while the run lasts."""

    beat = Subscription(Parcel, "beat")

    def __init__(self, blocks: bool = True) -> None:
        self.blocks = blocks

    @on(beat)
    def hang(self, beat: Parcel) -> None:
        while self.blocks:
            time.sleep(1.0)
