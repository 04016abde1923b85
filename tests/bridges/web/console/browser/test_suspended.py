"""A console that was stopped for a while does not take keys that waited meanwhile for keys that are held now."""

from __future__ import annotations

from bridges.web.console.driving.may_drive import DISTRUST_NS, GAP_NS, STILL_NS, HeldKeys, SuspendDetector
from runtime.clock import to_ns

BEAT_NS = to_ns(0.1)


def beating(until_ns: int) -> SuspendDetector:
    standstill = SuspendDetector()
    for now_ns in range(BEAT_NS, until_ns + 1, BEAT_NS):
        standstill.beat(now_ns)
    return standstill


def test_keys_are_believed_while_the_process_runs() -> None:
    assert not SuspendDetector().distrusts(to_ns(5.0))
    standstill = beating(to_ns(1.0))
    assert not standstill.distrusts(to_ns(1.05))
    assert not standstill.distrusts(to_ns(1.0) + STILL_NS)


def test_what_comes_first_after_a_standstill_is_not_believed_for_a_moment() -> None:
    standstill = beating(to_ns(1.0))
    woke_ns = to_ns(4.0)
    assert standstill.distrusts(woke_ns)  # before the first beat
    standstill.beat(woke_ns + 1)
    assert standstill.distrusts(woke_ns + DISTRUST_NS)
    assert not standstill.distrusts(woke_ns + DISTRUST_NS + 2)


def test_a_beat_that_comes_first_notices_it_too() -> None:
    standstill = beating(to_ns(1.0))
    standstill.beat(to_ns(4.0))
    assert standstill.distrusts(to_ns(4.0) + 1)


PERIOD_NS = to_ns(0.05)


def test_a_key_that_is_held_through_a_standstill_counts_only_once_it_was_let_go() -> None:
    keys = HeldKeys()
    assert keys.hears("ann", 0, is_held=True, is_doubtful=False)
    assert not keys.hears("ann", PERIOD_NS, is_held=True, is_doubtful=True)
    for number in range(2, 100):
        assert not keys.hears("ann", number * PERIOD_NS, is_held=True, is_doubtful=False)
    assert keys.hears("ben", 100 * PERIOD_NS, is_held=True, is_doubtful=False), "another page's key does"
    assert keys.hears("ann", 100 * PERIOD_NS, is_held=False, is_doubtful=True), "to let go is always heard"
    assert keys.hears("ann", 101 * PERIOD_NS, is_held=True, is_doubtful=False)


def test_a_key_that_is_pressed_while_a_console_wakes_up_counts_only_once_it_was_let_go() -> None:
    keys = HeldKeys()
    assert not keys.hears("ann", 0, is_held=True, is_doubtful=True)
    assert not keys.hears("ann", PERIOD_NS, is_held=True, is_doubtful=False)


def test_a_page_or_a_link_that_was_silent_for_longer_than_a_second_has_to_let_go() -> None:
    for gap_ns, is_heard in ((GAP_NS, True), (GAP_NS + 1, False)):
        keys = HeldKeys()
        assert keys.hears("ann", 0, is_held=True, is_doubtful=False)
        assert keys.hears("ann", gap_ns, is_held=True, is_doubtful=False) is is_heard
        assert keys.hears("ann", gap_ns + PERIOD_NS, is_held=True, is_doubtful=False) is is_heard
