"""`Distribution` and `MessageGaps`: how measured values and the gaps between messages are spread, from the newest
ten thousand."""

from __future__ import annotations

import math
import statistics
from collections import deque

_KEPT = 10_000


class Distribution:
    """Lowest, highest, mean, standard deviation and percentiles of values."""

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=_KEPT)
        self.count = 0

    def add(self, value: float) -> None:
        """One more."""
        self._values.append(value)
        self.count += 1

    @property
    def lowest(self) -> float:
        """The lowest value."""
        return min(self._values, default=0.0)

    @property
    def highest(self) -> float:
        """The highest value."""
        return max(self._values, default=0.0)

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return statistics.fmean(self._values) if self._values else 0.0

    @property
    def deviation(self) -> float:
        """Of the values around their mean; 0 where there are fewer than two."""
        return statistics.pstdev(self._values) if len(self._values) > 1 else 0.0

    def percentile(self, percent: float) -> float:
        """The value that this share of them does not exceed."""
        ordered = sorted(self._values)
        return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else 0.0


class MessageGaps:
    """The gaps between messages of a topic, source by source, and how many are missing by their sequence numbers."""

    def __init__(self) -> None:
        self.gaps_s = Distribution()
        self.count = 0
        self.lost = 0
        self._first_ns = 0
        self._last_ns = 0
        self._newest: dict[str, tuple[int, int]] = {}

    def add(self, source: str, seq: int, stamp_ns: int) -> None:
        """One message of that source."""
        self.count += 1
        before = self._newest.get(source)
        if before is not None:
            self.gaps_s.add((stamp_ns - before[1]) * 1e-9)
            self.lost += max(0, seq - before[0] - 1)
        self._newest[source] = (seq, stamp_ns)
        self._first_ns = self._first_ns or stamp_ns
        self._last_ns = max(self._last_ns, stamp_ns)

    @property
    def hz(self) -> float:
        """Messages per second between the first and the last one; 0 before the second."""
        span_ns = self._last_ns - self._first_ns
        return (self.count - 1) * 1e9 / span_ns if span_ns > 0 else 0.0
