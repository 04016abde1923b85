"""Which images cross the link, when, how small and by which connection: newest first, few in flight, in a budget."""

from __future__ import annotations

from collections import Counter
from typing import Any

from runtime.clock import NS_PER_S, to_ns
from runtime.message import Stamped

IN_FLIGHT = 2
"""Images sent and not yet acknowledged: enough to keep a link busy, few enough that none waits long in a queue.

One that is late beyond the usual waits for a lost packet, and does not count: a newer one goes by another connection.
"""

LATE_TIMES, LATE_NS = 2, to_ns(0.1)
"""An image is late after this many times the usual wait for its acknowledgement, plus this."""

LOST_AFTER_NS = to_ns(1.0)
BEST, WORST, STEP = 80, 40, 5
"""JPEG quality: the best, the worst, and the step by which it changes."""

_BURST_S = 0.1


class Bulk:
    """One-slot mailboxes of the waiting topics, and the images in flight: one at a time on each connection."""

    def __init__(self, budget_mbit: float = 0.0, *, ways: int, number: int = 0) -> None:
        """`ways` is the number of connections; `number` counts images from here on."""
        self.quality = BEST
        self.dropped: Counter[str] = Counter()
        self._bytes_per_ns = budget_mbit * 1e6 / 8 / NS_PER_S
        self._waiting: dict[str, Stamped[Any]] = {}  # the topic that was sent longest ago stands first
        self._flying: dict[int, tuple[int, int]] = {}  # by number: when it was sent, and by which connection
        self._number = number
        self._usual_ns = 0.0  # from sending to acknowledgement
        self._answered_ns = [0] * ways  # the newest acknowledgement of each connection
        self._credit_bytes = 0.0
        self._credit_ns = 0

    def offer(self, stamped: Stamped[Any]) -> None:
        """Take in a new message; an older one of its topic that still waits is dropped."""
        topic = stamped.envelope.topic
        if topic in self._waiting:
            self.dropped["overwritten"] += 1
            self.quality = max(WORST, self.quality - STEP)
            self._waiting[topic] = stamped  # keeps its place
        else:
            self._waiting[topic] = stamped

    def next(self, now_ns: int) -> Stamped[Any] | None:
        """The message to send now; None where nothing may be sent."""
        for number, (sent_ns, _) in list(self._flying.items()):
            if now_ns - sent_ns > LOST_AFTER_NS:
                del self._flying[number]
                self.dropped["not acknowledged"] += 1
        late_ns = LATE_TIMES * self._usual_ns + LATE_NS
        in_time = sum(now_ns - sent_ns <= late_ns for sent_ns, _ in self._flying.values())
        if not self._waiting or in_time >= IN_FLIGHT or not self._free() or not self._has_credit(now_ns):
            return None
        return self._waiting.pop(next(iter(self._waiting)))

    def sent(self, size_bytes: int, now_ns: int) -> tuple[int, int]:
        """Note that it is sent; returns its number for the acknowledgement, and its connection.

        That is the free connection that answered last: one that waits for a lost packet is left alone while others
        work.
        """
        way = max(self._free(), key=self._answered_ns.__getitem__)
        self._number += 1
        self._flying[self._number] = now_ns, way
        self._credit_bytes -= size_bytes
        return self._number, way

    def refused(self, number: int) -> None:
        """The connection did not take it: try the others first."""
        if number in self._flying:
            _, way = self._flying.pop(number)
            self._answered_ns[way] = -1

    def acknowledged(self, number: int, now_ns: int) -> None:
        """The image of this number has arrived."""
        if number not in self._flying:
            return
        sent_ns, way = self._flying.pop(number)
        self._answered_ns[way] = now_ns
        self._usual_ns += (now_ns - sent_ns - self._usual_ns) / 8 if self._usual_ns else now_ns - sent_ns
        if not self._waiting:
            self.quality = min(BEST, self.quality + 1)

    def forget(self) -> None:
        """The link was cut: drop all that waits or is in flight."""
        self.dropped["link down"] += len(self._flying) + len(self._waiting)
        self._flying.clear()
        self._waiting.clear()

    def _free(self) -> list[int]:
        busy = {way for _, way in self._flying.values()}
        return [way for way in range(len(self._answered_ns)) if way not in busy]

    def _has_credit(self, now_ns: int) -> bool:
        if not self._bytes_per_ns:
            return True
        earned = (now_ns - self._credit_ns) * self._bytes_per_ns
        self._credit_bytes = min(self._credit_bytes + earned, self._bytes_per_ns * to_ns(_BURST_S))
        self._credit_ns = now_ns
        return self._credit_bytes > 0
