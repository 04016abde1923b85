"""Nodes that the benchmarks run."""

from __future__ import annotations

import json
import statistics
import time
from itertools import pairwise

import numpy as np

from bench.image_peers import FRAMES, frames
from bench.result import lateness_ms, percentile
from nodes.msgs import Image
from runtime import Message, Node, Publisher, QoS, Subscription, every, on

WARM_UP = 100  # messages


class Parcel(Message):
    """As many bytes as asked for."""

    sent_ns: int
    body: bytes


class Reading(Message, kind="state"):
    """The same as a state."""

    sent_ns: int
    body: bytes


class Source(Node):
    """Sends parcels at a rate."""

    parcel = Publisher(Parcel, "parcel")

    def __init__(self, size_bytes: int = 4096) -> None:
        self.body = bytes(size_bytes)

    @every(hz=200)
    def send(self) -> None:
        self.parcel.publish(Parcel(sent_ns=self.clock.now_ns(), body=self.body))


class RealtimeSource(Source):
    """The same on a control loop."""

    realtime = True


class StateSource(Node):
    """Sends readings at a rate."""

    reading = Publisher(Reading, "reading")

    def __init__(self, size_bytes: int = 4096) -> None:
        self.body = bytes(size_bytes)

    @every(hz=200)
    def send(self) -> None:
        self.reading.publish(Reading(sent_ns=self.clock.now_ns(), body=self.body))


class RealtimeStateSource(StateSource):
    """The same on a control loop."""

    realtime = True


class Ages:
    """How old messages are when a handler gets them; the first ones, until everything is warm, do not count."""

    def __init__(self, count: int) -> None:
        self.left = WARM_UP
        self.count = count
        self.us: list[float] = []

    def add(self, age_ns: int) -> str:
        """Note one; the figures as JSON where that was the last one, else ""."""
        if self.left:
            self.left -= 1
            return ""
        self.us.append(age_ns * 1e-3)
        return json.dumps({"ages_us": self.us}) if len(self.us) == self.count else ""


class Sink(Node):
    """Collects how old parcels are when its handler gets them, and ends the run with the figures."""

    parcel = Subscription(Parcel, "parcel")

    def __init__(self, count: int = 600) -> None:
        self.ages = Ages(count)

    @on(parcel)
    def take(self, parcel: Parcel) -> None:
        if told := self.ages.add(self.clock.now_ns() - parcel.sent_ns):
            self.finish(ok=True, reason=told)


class RealtimeSink(Sink):
    """The same on a control loop."""

    realtime = True


class StateSink(Node):
    """The same with readings."""

    reading = Subscription(Reading, "reading")

    def __init__(self, count: int = 600) -> None:
        self.ages = Ages(count)

    @on(reading)
    def take(self, reading: Reading) -> None:
        if told := self.ages.add(self.clock.now_ns() - reading.sent_ns):
            self.finish(ok=True, reason=told)


class RealtimeStateSink(StateSink):
    """The same on a control loop."""

    realtime = True


class Credit(Message):
    """So many parcels have been handled."""

    count: int


class Flood(Node):
    """Sends a number of parcels as fast as the other side takes them, with a window of so many on their way."""

    parcel = Publisher(Parcel, "parcel")
    credit = Subscription(Credit, "credit")

    def __init__(self, count: int = 60_000, window: int = 2000, size_bytes: int = 64, is_at_once: bool = False) -> None:
        """`is_at_once`: what there is credit for goes out by one `publish_all`, else by a `publish` for each."""
        self.count = count
        self.window = window
        self.is_at_once = is_at_once
        self.body = bytes(size_bytes)
        self.sent = 0

    @on(credit)
    def send(self, credit: Credit) -> None:
        end = min(self.count, credit.count + self.window)
        parcels = (Parcel(sent_ns=0, body=self.body) for _ in range(self.sent, end))
        if self.is_at_once:
            self.parcel.publish_all(parcels)
        else:
            for parcel in parcels:
                self.parcel.publish(parcel)
        self.sent = max(self.sent, end)


class UncheckedFlood(Flood):
    """The same, with every other window sent past the check of the parcels' fields; tells both times."""

    def __init__(self, count: int = 60_000, window: int = 2000, size_bytes: int = 64) -> None:
        super().__init__(count, window, size_bytes)
        self.is_checked = True
        self.began_ns = 0
        self.took_ns: dict[bool, list[int]] = {True: [], False: []}

    @on(Flood.credit)
    def send(self, credit: Credit) -> None:
        now_ns = self.clock.now_ns()
        if credit.count > 4 * self.window:  # warm
            self.took_ns[self.is_checked].append(now_ns - self.began_ns)
        self.is_checked, self.began_ns = not self.is_checked, now_ns
        port, sink = self.parcel, self.parcel.sink
        assert sink is not None
        end = min(self.count, credit.count + self.window)
        parcels = (Parcel(sent_ns=0, body=self.body) for _ in range(self.sent, end))
        if self.is_checked:
            for parcel in parcels:
                port.publish(parcel)
        else:
            for parcel in parcels:
                sink(port, parcel, None)
        self.sent = end
        if credit.count >= self.count:
            window_s = {checked: statistics.median(took) * 1e-9 for checked, took in self.took_ns.items()}
            found = {"checked_hz": self.window / window_s[True], "unchecked_hz": self.window / window_s[False]}
            self.finish(ok=True, reason=json.dumps(found))


class Tally(Node):
    """Counts parcels and gives credit for more, at each half of the window."""

    parcel = Subscription(Parcel, "parcel")
    credit = Publisher(Credit, "credit")

    def __init__(self, count: int = 60_000, window: int = 2000) -> None:
        self.count = count
        self.half = window // 2
        self.taken = 0
        self.start_ns = 0

    @every(hz=10)
    def begin(self) -> None:
        if not self.start_ns:
            self.start_ns = self.clock.now_ns()
            self.credit.publish(Credit(count=0))

    @on(parcel)
    def take(self, parcel: Parcel) -> None:
        self.taken += 1
        if self.taken % self.half == 0:
            self.credit.publish(Credit(count=self.taken))
        if self.taken == self.count:
            taken_s = (self.clock.now_ns() - self.start_ns) * 1e-9
            lost = sum(self.parcel.dropped.values())
            self.finish(ok=True, reason=json.dumps({"hz": self.count / taken_s, "lost": lost}))


class RealtimeFlood(Flood):
    """The same on a control loop."""

    realtime = True


class RealtimeTally(Tally):
    """The same on a control loop."""

    realtime = True


class Metronome(Node):
    """A 20 Hz control loop that does nothing but be late or not."""

    realtime = True
    beat = Publisher(Parcel, "beat")

    def __init__(self, seconds: float = 5.0) -> None:
        self.seconds = seconds
        self.period_ns = 50_000_000
        self.moments_ns: list[int] = []

    @every(hz=20)
    def tick(self) -> None:
        now_ns = self.clock.now_ns()
        self.moments_ns.append(now_ns)
        self.beat.publish(Parcel(sent_ns=now_ns, body=b""))
        if (now_ns - self.moments_ns[0]) * 1e-9 >= self.seconds:
            late_ms = lateness_ms(self.moments_ns, self.period_ns)
            missed = max(0, int(self.seconds * 20) + 1 - len(late_ms))
            figures = {
                "late_ms": late_ms,
                "p50": percentile(late_ms, 50),
                "p99": percentile(late_ms, 99),
                "missed": missed,
            }
            self.finish(ok=True, reason=json.dumps(figures))


class PlainMetronome(Node):
    """A 50 Hz timer of a plain node, as the README teaches it."""

    beat = Publisher(Parcel, "beat")

    def __init__(self, seconds: float = 4.0) -> None:
        self.seconds = seconds
        self.moments_ns: list[int] = []

    @every(hz=50)
    def tick(self) -> None:
        self.moments_ns.append(self.clock.now_ns())
        self.beat.publish(Parcel(sent_ns=self.moments_ns[-1], body=b""))
        if (self.moments_ns[-1] - self.moments_ns[0]) * 1e-9 >= self.seconds:
            self.finish(ok=True, reason=json.dumps({"moments_ns": self.moments_ns}))


class Holder(Node):
    """A 100 Hz timer beside a blocking handler that reads one number of a large value, or all of it, or nothing."""

    beat = Publisher(Parcel, "beat")

    def __init__(self, mb: int = 1, reads: str = "one", seconds: float = 3.0) -> None:
        self.value = [np.ones(250_000, np.float32) for _ in range(mb)]
        self.reads = reads
        self.seconds = seconds
        self.found = 0.0
        self.moments_ns: list[int] = []

    @every(hz=5, blocking=True)
    def look(self) -> None:
        if self.reads == "one":
            self.found = float(self.value[-1][3])
        elif self.reads == "all":
            self.found = float(sum(part.sum() for part in self.value))

    @every(hz=100)
    def tick(self) -> None:
        moments_ns = self.moments_ns = [*self.moments_ns, self.clock.now_ns()]
        self.beat.publish(Parcel(sent_ns=moments_ns[-1], body=b""))
        if (moments_ns[-1] - moments_ns[0]) * 1e-9 >= self.seconds:
            gaps_ms = [(after - before) * 1e-6 for before, after in pairwise(moments_ns)]
            self.finish(ok=True, reason=json.dumps({"worst_gap_ms": max(gaps_ms[10:])}))


class Blocker(Node):
    """A planner that hangs: it never returns from its handler while the run lasts."""

    beat = Subscription(Parcel, "beat")

    def __init__(self, blocks: bool = True) -> None:
        self.blocks = blocks

    @on(beat)
    def hang(self, beat: Parcel) -> None:
        while self.blocks:
            time.sleep(1.0)


class Camera(Node):
    """Sends small colour images with depth, as the simulated head camera does."""

    image = Publisher(Image, "head/image")

    def on_start(self) -> None:
        import numpy as np

        self.rgb = np.random.default_rng(0).integers(0, 255, (120, 160, 3), np.uint8)
        self.depth = np.random.default_rng(1).random((120, 160), np.float32)

    @every(hz=15)
    def capture(self) -> None:
        image = Image(camera="head", captured_ns=self.clock.now_ns(), rgb=self.rgb.copy(), depth_m=self.depth.copy())
        self.image.publish(image)


class Film(Node):
    """Sends images as fast as the other side takes them, with a window of so many on their way."""

    image = Publisher(Image, "film")
    credit = Subscription(Credit, "credit")

    def __init__(self, count: int = 600, window: int = 8) -> None:
        self.count = count
        self.window = window
        self.sent = 0

    def on_start(self) -> None:
        self.frames = frames(640, 480)

    @on(credit)
    def send(self, credit: Credit) -> None:
        end = min(self.count, credit.count + self.window)
        for number in range(self.sent, end):
            image = Image(camera="film", captured_ns=self.clock.now_ns(), rgb=self.frames[number % FRAMES])
            self.image.publish(image)
        self.sent = max(self.sent, end)


class Screen(Node):
    """Counts images, and gives credit for one more with each."""

    image = Subscription(Image, "film", qos=QoS(depth=8))
    credit = Publisher(Credit, "credit")

    def __init__(self, count: int = 600) -> None:
        self.count = count
        self.taken = 0
        self.start_ns = 0

    @every(hz=10)
    def begin(self) -> None:
        lost = sum(self.image.dropped.values())
        if not self.start_ns:
            self.start_ns = self.clock.now_ns()
            self.credit.publish(Credit(count=0))
        elif self.taken + lost >= self.count:
            taken_s = (self.clock.now_ns() - self.start_ns) * 1e-9
            self.finish(ok=True, reason=json.dumps({"hz": self.count / taken_s, "lost": lost}))

    @on(image)
    def take(self, image: Image) -> None:
        self.taken += 1
        self.credit.publish(Credit(count=self.taken + sum(self.image.dropped.values())))
