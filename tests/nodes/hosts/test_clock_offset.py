"""The offset between two clocks: the bounds hold whatever the network does, and no age is much too small."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodes.hosts.clock_offset import DRIFT, TRUST_NS, ClockOffset
from runtime.clock import to_ns

delays = st.floats(0.0, 0.5)
steps = st.lists(st.tuples(st.floats(0.01, 5.0), delays, delays), min_size=1, max_size=40)


def there(own_ns: float, offset_s: float, drift: float) -> int:
    """What the other clock says at that moment."""
    return round(own_ns * (1 + drift) + offset_s * 1e9)


@given(st.floats(-1e5, 1e5), st.floats(-DRIFT * 0.99, DRIFT * 0.99), steps)
def test_a_stamp_is_wrong_by_the_error_at_most_and_never_made_much_younger(
    offset_s: float, drift: float, questions: list[tuple[float, float, float]]
) -> None:
    clock, now_ns = ClockOffset(), to_ns(1.0)
    for pause_s, out_s, back_s in questions:
        sent_ns = now_ns + to_ns(pause_s)
        stamp_ns = there(sent_ns + to_ns(out_s), offset_s, drift)
        now_ns = sent_ns + to_ns(out_s) + to_ns(back_s)
        clock.answered(sent_ns, stamp_ns, now_ns)
        true_ns = now_ns
        assert clock.there_ns(true_ns) <= there(true_ns, offset_s, drift) + 1000  # of rounding
        moved_ns = there(true_ns, offset_s, drift) + clock.shift_ns(now_ns)
        slack_ns = 1000  # of rounding
        error_ns = clock.error_ns(now_ns)
        assert moved_ns <= true_ns + min(error_ns, TRUST_NS) + slack_ns
        assert moved_ns >= true_ns - max(error_ns, 2 * error_ns - TRUST_NS) - slack_ns
    assert clock.jumps == 0


def test_the_error_shrinks_to_the_quickest_answer_and_grows_with_silence() -> None:
    clock = ClockOffset()
    clock.answered(0, to_ns(100.05), to_ns(0.1))
    assert to_ns(0.05) <= clock.error_ns(to_ns(0.1)) < to_ns(0.051)
    clock.answered(to_ns(1.0), to_ns(101.001), to_ns(1.002))
    assert clock.error_ns(to_ns(1.002)) < to_ns(0.00125)
    assert clock.error_ns(to_ns(100)) > to_ns(0.01)


def test_a_clock_that_was_set_anew_is_noticed_and_followed() -> None:
    clock = ClockOffset()
    clock.answered(0, to_ns(3600.0), to_ns(0.01))
    clock.answered(to_ns(1.0), to_ns(5.0), to_ns(1.01))
    assert clock.jumps == 1
    assert abs(clock.shift_ns(to_ns(1.01)) + to_ns(4.0)) < to_ns(0.02)
