"""A console that was stopped for a while does not take keys that waited meanwhile for keys that are held now."""

from __future__ import annotations

from bridges.web.console.actions import DISTRUST_NS, STILL_NS, SuspendDetector
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
