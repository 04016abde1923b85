"""What an acknowledgement costs: events published and heard with and without it, in turns, in one process.

Run it with: python -m bench.reliable
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import threading
import time
from pathlib import Path

from nodes.msgs import Utterance
from runtime.clock import SystemClock
from runtime.message import Envelope
from runtime.qos import HOLD_S, LIFESPAN_S
from runtime.transport.reliable.tag import Terms
from runtime.transport.zeromq import PublisherSockets, SubscriberThread

EVENTS, HZ, WARM_UP = 1000, 100.0, 50


class Pair:
    """A publisher and a listener, with the times that each event took, in ns."""

    def __init__(self, folder: Path, terms: Terms | None) -> None:
        self.publish_ns: list[int] = []
        self.arrive_ns: list[int] = []
        self._clock = SystemClock()
        self.outlet = PublisherSockets(folder, "mouth", reliable={"said": terms} if terms else None)
        self.inlet = SubscriberThread(
            {"said": Utterance},
            lambda stamped: self.arrive_ns.append(self._clock.now_ns() - stamped.envelope.published_ns),
            lambda topic, reason, number, why: print(f"lost: {number} by {reason}"),
            receiver="ear",
            reliable=["said"] if terms else [],
        )
        self.inlet.connect(folder, ["mouth"])
        self.inlet.start()
        asyncio.run(self.outlet.await_subscribers({"said": 1}, 20.0, asyncio.Event()))

    def say(self, number: int) -> None:
        """Publish one event."""
        start_ns = self._clock.now_ns()
        self.outlet.publish(Envelope("said", "mouth", number, start_ns), Utterance(speaker="ann", text="Stop!"))
        self.publish_ns.append(self._clock.now_ns() - start_ns)

    def close(self) -> None:
        """Close both."""
        self.inlet.close()
        self.outlet.close()


def main() -> None:
    """Print medians and 99th percentiles, in us, and the ratios."""
    pause = threading.Event()
    cpu_s = {}
    with tempfile.TemporaryDirectory(prefix="pr-") as plain, tempfile.TemporaryDirectory(prefix="pr-") as sure:
        pairs = {"plain": Pair(Path(plain), None), "reliable": Pair(Path(sure), Terms(("ear",), LIFESPAN_S, HOLD_S))}
        for number in range(1, WARM_UP + EVENTS + 1):
            for pair in pairs.values():
                pair.say(number)
                pause.wait(0.5 / HZ)
        for name, pair in pairs.items():  # processor time apart, for both share this process
            start_s = time.process_time()
            for number in range(WARM_UP + EVENTS + 1, WARM_UP + 2 * EVENTS + 1):
                pair.say(number)
                pause.wait(1.0 / HZ)
            cpu_s[name] = time.process_time() - start_s
        for pair in pairs.values():
            pair.close()
    for what in ("publish", "arrive"):
        times = {name: getattr(pair, f"{what}_ns")[WARM_UP : WARM_UP + EVENTS] for name, pair in pairs.items()}
        cells = []
        for name, values in times.items():
            p99 = statistics.quantiles(values, n=100)[98]
            cells.append(f"{name} p50 {statistics.median(values) / 1e3:.1f} p99 {p99 / 1e3:.1f} us")
        ratio = statistics.median(times["reliable"]) / statistics.median(times["plain"])
        print(f"{what:8} {'   '.join(cells)}   ratio of medians {ratio:.2f}")
    each = {name: value / EVENTS * 1e6 for name, value in cpu_s.items()}
    print(f"CPU      plain {each['plain']:.0f}, reliable {each['reliable']:.0f} us per event, publisher and listener")


if __name__ == "__main__":
    main()
