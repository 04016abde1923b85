"""What of the images crosses the link, when and how small: newest first, few on their way, within a budget. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Any

from runtime.clock import NS_PER_S, to_ns
from runtime.message import Stamped

IN_FLIGHT = 2
"""Images sent and not yet acknowledged: enough to keep a link busy, few enough that none waits in a queue for long."""

LOST_AFTER_NS = to_ns(1.0)
BEST, WORST, STEP = 80, 40, 5
"""JPEG quality, and by how much it moves."""

_BURST_S = 0.1


class Bulk:
    """One-slot mailboxes of the topics that wait, and what is on its way."""

    def __init__(self, budget_mbit: float = 0.0) -> None:
        self.quality = BEST
        self.dropped: Counter[str] = Counter()
        self._bytes_per_ns = budget_mbit * 1e6 / 8 / NS_PER_S
        self._waiting: dict[str, Stamped[Any]] = {}  # the topic that was sent longest ago stands first
        self._sent_ns: dict[int, int] = {}
        self._number = 0
        self._credit_bytes = 0.0
        self._credit_ns = 0

    def offer(self, stamped: Stamped[Any]) -> None:
        """A new message; an older one of its topic that still waits is dropped."""
        topic = stamped.envelope.topic
        if topic in self._waiting:
            self.dropped["overwritten"] += 1
            self.quality = max(WORST, self.quality - STEP)
            self._waiting[topic] = stamped  # keeps its place
        else:
            self._waiting[topic] = stamped

    def next(self, now_ns: int) -> Stamped[Any] | None:
        """What to send now, if anything may be sent."""
        for number, sent_ns in list(self._sent_ns.items()):
            if now_ns - sent_ns > LOST_AFTER_NS:
                del self._sent_ns[number]
                self.dropped["not acknowledged"] += 1
        if not self._waiting or len(self._sent_ns) >= IN_FLIGHT or not self._has_credit(now_ns):
            return None
        return self._waiting.pop(next(iter(self._waiting)))

    def sent(self, size_bytes: int, now_ns: int) -> int:
        """Note that it was sent; the number to acknowledge it by."""
        self._number += 1
        self._sent_ns[self._number] = now_ns
        self._credit_bytes -= size_bytes
        return self._number

    def acknowledged(self, number: int) -> None:
        """It has come over."""
        if self._sent_ns.pop(number, None) is not None and not self._waiting:
            self.quality = min(BEST, self.quality + 1)

    def forget(self) -> None:
        """The link was cut: nothing is on its way and nothing waits."""
        self.dropped["link down"] += len(self._sent_ns) + len(self._waiting)
        self._sent_ns.clear()
        self._waiting.clear()

    def _has_credit(self, now_ns: int) -> bool:
        if not self._bytes_per_ns:
            return True
        earned = (now_ns - self._credit_ns) * self._bytes_per_ns
        self._credit_bytes = min(self._credit_bytes + earned, self._bytes_per_ns * to_ns(_BURST_S))
        self._credit_ns = now_ns
        return self._credit_bytes > 0
