"""Counters of every timer and port: how often, how late, how many lost and why; in constant memory."""

from __future__ import annotations

import math
from collections.abc import Iterable

_LOWEST_NS = 1_000  # one microsecond; below that nothing here can be measured
_PER_DECADE = 40  # buckets 6 % apart
_DECADES = 8  # up to 100 s
_BUCKETS = _PER_DECADE * _DECADES  # and one for what is longer
_LOG_STEP = _PER_DECADE / math.log(10)


def nearest_rank(values: Iterable[float], percent: float) -> float:
    """The value that this share of them does not exceed; there is one at least."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


class Histogram:
    """Durations in buckets 6 % apart from 1 us to 100 s; percentiles are a bucket's upper edge."""

    __slots__ = ("buckets", "count", "highest_ns")

    def __init__(self) -> None:
        self.buckets = [0] * (_BUCKETS + 1)
        self.count = 0
        self.highest_ns = 0

    def add(self, duration_ns: int) -> None:
        """Count one duration; negative ones count as zero."""
        self.count += 1
        if duration_ns > self.highest_ns:
            self.highest_ns = duration_ns
        bucket = 0 if duration_ns < _LOWEST_NS else int(math.log(duration_ns / _LOWEST_NS) * _LOG_STEP) + 1
        self.buckets[bucket if bucket < _BUCKETS else _BUCKETS] += 1

    def percentile_ns(self, percent: float) -> int:
        """The duration that this share of the counted ones does not exceed; 0 where none was counted."""
        if not self.count:
            return 0
        wanted = math.ceil(self.count * percent / 100)
        seen = 0
        for bucket, number in enumerate(self.buckets[:-1]):
            seen += number
            if seen >= wanted:
                return min(self.highest_ns, round(_LOWEST_NS * math.exp(bucket / _LOG_STEP))) if bucket else 0
        return self.highest_ns  # of all that is longer than the last edge, only the longest is known


class TimerStats:
    """What became of one timer's ticks."""

    __slots__ = ("first_ns", "last_ns", "lateness", "overruns", "ticks")

    def __init__(self) -> None:
        self.ticks = 0
        self.overruns = 0
        self.first_ns = 0
        self.last_ns = 0
        self.lateness = Histogram()

    def tick(self, now_ns: int, late_ns: int, skipped: int) -> None:
        """Count one tick that ran `late_ns` after its time, in place of `skipped` others that never did."""
        if not self.ticks:
            self.first_ns = now_ns
        self.ticks += 1
        self.last_ns = now_ns
        self.overruns += skipped
        lateness = self.lateness
        lateness.count += 1  # as `Histogram.add`, without a call
        if late_ns > lateness.highest_ns:
            lateness.highest_ns = late_ns
        bucket = 0 if late_ns < _LOWEST_NS else int(math.log(late_ns / _LOWEST_NS) * _LOG_STEP) + 1
        lateness.buckets[bucket if bucket < _BUCKETS else _BUCKETS] += 1

    @property
    def hz(self) -> float:
        """Ticks per second from the first to the last one; 0 before the second."""
        if self.last_ns == self.first_ns:
            return 0.0
        return (self.ticks - 1) * 1e9 / (self.last_ns - self.first_ns)
