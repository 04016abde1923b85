"""Ticks are due at start + k / hz: without drift, late ones skipped and counted, the phase kept."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.clock import NS_PER_S
from runtime.hosted import TimerState
from runtime.node import Timer

START_NS = 123_456_789


def timer(hz: float) -> TimerState:
    state = TimerState(Timer("tick", "plain", hz), hz)
    state.start_ns = START_NS
    return state


def test_the_first_tick_is_due_at_the_start() -> None:
    state = timer(10)
    assert not state.take(START_NS - 1)
    assert state.take(START_NS)
    assert not state.take(START_NS)


@pytest.mark.parametrize("hz", [3, 7, 0.3, 29.97, 50, 1000 / 3])
def test_ticks_do_not_drift_under_odd_rates(hz: float) -> None:
    state = timer(hz)
    for tick in range(10_000):
        exact_ns = START_NS + Fraction(tick) * NS_PER_S / Fraction(hz)
        assert abs(state.due_ns - exact_ns) <= 1
        assert state.take(state.due_ns)
    assert (state.stats.ticks, state.stats.overruns, state.stats.lateness.highest_ns) == (10_000, 0, 0)


def test_late_ticks_are_skipped_and_counted_and_the_phase_is_kept() -> None:
    state = timer(10)
    assert state.take(START_NS)
    assert state.take(START_NS + 450_000_000)  # ticks 1, 2 and 3 never run, 4 runs late
    assert not state.take(START_NS + 450_000_000)
    assert (state.stats.ticks, state.stats.overruns) == (2, 3)
    assert state.stats.lateness.highest_ns == 50_000_000
    assert state.due_ns == START_NS + 500_000_000


@settings(deadline=None)
@given(
    hz=st.sampled_from([3, 7, 0.3, 29.97, 50, 1000 / 3]),
    gaps=st.lists(st.integers(0, 3 * NS_PER_S), max_size=30),
    on_time=st.booleans(),
)
def test_whatever_the_delays_each_tick_runs_once_or_is_counted(hz: float, gaps: list[int], on_time: bool) -> None:
    state = timer(hz)
    now_ns = START_NS
    for gap_ns in gaps:
        now_ns = max(now_ns + gap_ns, state.due_ns) if on_time else now_ns + gap_ns
        state.take(now_ns)
        assert not state.take(now_ns)  # never two ticks at once
        assert state.due_ns > now_ns
        assert state.stats.ticks + state.stats.overruns == state.next_tick
        assert state.stats.lateness.highest_ns <= NS_PER_S / hz + 1  # a tick is at most one period late
