"""Ticks are due at start + k / hz: without drift, late ones skipped and counted, the phase kept."""

from __future__ import annotations

import re
import threading
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.hello import Beat
from runtime import GraphError, Node, NodeSpec, Publisher, Simulation, Stamped, Subscription, every, run
from runtime.clock import NS_PER_S
from runtime.errors import MissedTickError, PolyrhythmError, UserError
from runtime.execution.timers import FollowingTimer, TimerState
from runtime.launch.tables.handler_latency import Latency
from runtime.message import Envelope
from runtime.node import MOST_TO_CATCH_UP, Timer, handlers_of
from tests.support.sentences import pattern, sentence

START_NS = 123_456_789


def timer(hz: float) -> TimerState:
    state = TimerState(Timer("tick", "plain", hz), hz)
    state.start(START_NS)
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


def test_a_timer_that_catches_up_runs_each_missed_tick_and_then_keeps_its_phase() -> None:
    state = TimerState(Timer("tick", "plain", 10, "catch-up"), 10)
    state.start(START_NS)
    assert state.take(START_NS)
    late_ns = START_NS + 450_000_000
    taken = [state.take(late_ns) for _ in range(5)]
    assert taken == [True, True, True, True, False]  # ticks 1 to 4
    assert (state.stats.ticks, state.stats.overruns) == (5, 0)
    assert state.due_ns == START_NS + 500_000_000


def test_catching_up_has_a_bound_and_what_lies_before_it_is_counted() -> None:
    state = TimerState(Timer("tick", "plain", 10, "catch-up"), 10)
    state.start(START_NS)
    late_ns = START_NS + 60 * NS_PER_S
    number = 0
    while state.take(late_ns):
        number += 1
    assert (number, state.stats.overruns) == (MOST_TO_CATCH_UP, 601 - MOST_TO_CATCH_UP)
    assert state.due_ns == late_ns + NS_PER_S // 10


class Metronome(Node):
    """Ticks, and is kept from it for a while by its own handler."""

    beat = Publisher(Beat, "beat")

    def __init__(self) -> None:
        self.count = 0

    @every(hz=10, overrun="catch-up")
    def tick(self) -> None:
        self.count += 1
        self.beat.publish(Beat(count=self.count))


def test_the_overrun_policy_of_a_mark_reaches_its_timer() -> None:
    (timer_,) = handlers_of(Metronome)
    assert isinstance(timer_, Timer)
    assert timer_.overrun == "catch-up"
    sim = Simulation(Metronome())
    beats = sim.record(Metronome.beat)
    sim.run(seconds=1.0)
    assert [beat.count for beat in beats] == list(range(1, 11))


def test_an_unknown_overrun_policy_is_refused() -> None:
    with pytest.raises(UserError, match=pattern("runtime.unknown_overrun", value="repeat")):
        every(hz=1, overrun="repeat")  # type: ignore[arg-type]  # the mistake


class Strict(Node):
    """Ticks, and takes it as a failure where it could not; the second call takes long in real time."""

    def __init__(self, long_s: float = 0.0) -> None:
        self.calls = 0
        self.long_s = long_s

    @every(hz=10, overrun="error")
    def tick(self) -> None:
        self.calls += 1
        if self.calls == 2 and self.long_s:
            threading.Event().wait(self.long_s)
        if self.calls == 4 and self.long_s:
            self.finish(ok=True, reason="four calls")


@pytest.mark.parametrize(("takes_s", "ticks", "late_s"), [(0.15, "1 tick", "0.100"), (0.45, "3 ticks", "0.350")])
def test_a_missed_tick_ends_a_virtual_run_and_says_how_late_it_was(takes_s: float, ticks: str, late_s: str) -> None:
    strict = Strict()
    latency = {"tick": Latency(takes_s, takes_s)}
    sim = Simulation(NodeSpec("strict", Strict, instance=strict, latency=latency))
    with pytest.raises(MissedTickError, match=pattern("runtime.missed_ticks", ticks=ticks, late_s=late_s)) as raised:
        sim.run(seconds=2.0)
    assert any("in strict.tick at" in note for note in raised.value.__notes__)


def test_a_timer_that_takes_as_long_as_its_period_misses_no_tick() -> None:
    strict = Strict()
    Simulation(NodeSpec("strict", Strict, instance=strict, latency={"tick": Latency(0.1, 0.1)})).run(seconds=1.0)
    assert strict.calls == 10


def test_a_missed_tick_is_a_failure_of_its_handler_in_real_time(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(
        PolyrhythmError, match=r"strict \d times?, the last time in tick: missed \d+ ticks? at 10 Hz: late"
    ):
        run(Strict(long_s=0.35))
    assert any("handler tick failed: missed" in line.message and line.exc_info is None for line in caplog.records)


def test_a_timer_in_step_with_a_topic_has_no_overrun_that_could_be_an_error() -> None:
    class InStep(Node):
        beat = Subscription(Beat, "beat")

        @every(hz=10, overrun="error")
        def tick(self) -> None:
            self.beat.latest()

    with pytest.raises(GraphError, match="leave out one"):
        Simulation(NodeSpec("step", InStep, after={"tick": "beat"}))


class Offbeat(Node):
    """Ticks half a period after those that tick at the start."""

    def __init__(self) -> None:
        self.ticks_ns: list[int] = []

    @every(hz=10, phase=0.5)
    def tick(self) -> None:
        self.ticks_ns.append(self.clock.now_ns())


def test_a_phase_is_kept_from_the_first_tick_on() -> None:
    node = Offbeat()
    sim = Simulation(node)
    start_ns = sim.scheduler.now_ns
    sim.run(seconds=0.4)
    assert [at_ns - start_ns for at_ns in node.ticks_ns] == [50_000_000, 150_000_000, 250_000_000, 350_000_000]


@pytest.mark.parametrize("phase", [-0.1, 1.0, float("nan")])
def test_a_phase_is_a_part_of_a_period(phase: float) -> None:
    with pytest.raises(UserError, match=r"every\(phase=.*from 0 to below 1"):
        every(hz=1, phase=phase)


PERIOD_MS = 40
MS = 1_000_000


def ticks_after(messages_ms: list[int], *, until_ms: int, hz: float = 1000 / PERIOD_MS) -> list[int]:
    """When a timer ticks that is in step with messages which come then, ms."""
    port = Subscription(Beat, "beat")
    state = FollowingTimer(Timer("tick", "plain", hz), hz, port)
    state.start(0)
    found = []
    for now_ms in range(until_ms):
        if now_ms in messages_ms:
            envelope = Envelope(topic="beat", source="talker", seq=now_ms + 1, published_ns=now_ms * MS + 1)
            port.push(Stamped(Beat(count=now_ms), envelope))
        state.listen(now_ms * MS)
        if state.take(now_ms * MS):
            found.append(now_ms)
    return found


def test_a_timer_in_step_ticks_when_a_message_comes() -> None:
    late = [0, 45, 83, 121, 166]
    assert ticks_after(late, until_ms=200) == late


def test_messages_that_come_faster_are_passed_over_and_the_rate_is_kept() -> None:
    assert ticks_after(list(range(0, 400, 20)), until_ms=400) == list(range(0, 400, 40))
    assert len(ticks_after(list(range(0, 6000, 20)), until_ms=6000, hz=15)) == 90


def test_where_messages_come_more_slowly_the_ticks_between_them_divide_the_time() -> None:
    found = ticks_after(list(range(0, 700, 100)), until_ms=700)
    assert found[-8:] == [300, 350, 400, 450, 500, 550, 600, 650]


def test_without_messages_it_ticks_by_itself() -> None:
    assert ticks_after([0, 40, 80], until_ms=260) == [0, 40, 80, 140, 180, 220]
    assert ticks_after([], until_ms=100) == [0, 40, 80]


class Eye(Node):
    seen = Publisher(Beat, "seen")

    @every(hz=25)
    def look(self) -> None:
        self.seen.publish(Beat(count=0))


class Hand(Node):
    seen = Subscription(Beat, "seen")
    moved = Publisher(Beat, "moved")

    @every(hz=25)
    def tick(self) -> None:
        self.moved.publish(Beat(count=self.clock.now_ns() // MS - self.seen.newest_ns // MS))


def test_what_a_timer_in_step_says_is_as_new_as_what_it_follows() -> None:
    specs = [NodeSpec("eye", Eye, hz={"look": 23.0}), NodeSpec("hand", Hand, after={"tick": "seen"})]
    simulation = Simulation(*specs)
    ages_ms = simulation.record(Hand.moved)
    simulation.run(2.0)
    simulation.close()
    assert len(ages_ms) > 40
    assert {beat.count for beat in ages_ms[2:]} == {0}


@pytest.mark.parametrize(
    ("after", "problem"),
    [
        ({"tick": "other"}, sentence("runtime.after_a_topic", topic="other", node="Hand", read="seen")),
        ({"tock": "seen"}, f"after {sentence('runtime.no_timer', name='tock', node='Hand', known='tick')}"),
    ],
)
def test_what_a_timer_cannot_be_in_step_with_is_told(after: dict[str, str], problem: str) -> None:
    with pytest.raises(GraphError, match=re.escape(problem)):
        Simulation(NodeSpec("eye", Eye), NodeSpec("hand", Hand, after=after))
