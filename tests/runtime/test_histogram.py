"""Percentiles of a histogram are those of the values, to a bucket; timers tell their rate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.histogram import Histogram, TimerStats

BUCKET = 10 ** (1 / 40)  # ratio of a bucket's edges


def filled(durations_ns: list[int]) -> Histogram:
    histogram = Histogram()
    for duration_ns in durations_ns:
        histogram.add(duration_ns)
    return histogram


@settings(deadline=None)
@given(
    durations_ns=st.lists(st.integers(1_000, 10**11 - 1), min_size=1, max_size=200),
    percent=st.sampled_from([1, 10, 50, 90, 99, 99.9, 100]),
)
def test_a_percentile_is_that_of_the_values_or_up_to_a_bucket_more(durations_ns: list[int], percent: float) -> None:
    exact = float(np.percentile(durations_ns, percent, method="inverted_cdf"))
    found = filled(durations_ns).percentile_ns(percent)
    assert exact * (1 - 1e-9) - 1 <= found <= min(exact * BUCKET * (1 + 1e-9) + 1, max(durations_ns))


def test_an_empty_histogram_has_no_percentiles() -> None:
    assert Histogram().percentile_ns(99) == 0


def test_what_is_below_a_microsecond_counts_as_zero() -> None:
    histogram = filled([-500, 0, 999])
    assert (histogram.count, histogram.percentile_ns(50), histogram.highest_ns) == (3, 0, 999)


def test_of_what_is_longer_than_the_last_bucket_the_longest_is_told() -> None:
    assert filled([10**12, 10**13]).percentile_ns(99) == 10**13


def test_a_histogram_stays_as_small_as_it_was() -> None:
    histogram = filled(list(range(0, 10**7, 1_000)))
    assert len(histogram.buckets) == len(Histogram().buckets) == 321


def test_a_timers_rate_is_that_from_the_first_to_the_last_tick() -> None:
    stats = TimerStats()
    assert stats.hz == 0
    for tick in range(11):
        stats.tick(tick * 50_000_000, 0, 0)
    assert stats.hz == pytest.approx(20)


def test_a_rate_needs_two_moments() -> None:
    stats = TimerStats()
    stats.tick(5, 0, 0)
    stats.tick(5, 0, 0)
    assert stats.hz == 0


def test_a_timer_counts_ticks_skipped_ones_and_lateness() -> None:
    stats = TimerStats()
    stats.tick(0, 2_000, 0)
    stats.tick(10, 4_000, 3)
    assert (stats.ticks, stats.overruns, stats.lateness.count, stats.lateness.highest_ns) == (2, 3, 2, 4_000)
