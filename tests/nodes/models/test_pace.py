"""`RequestPacer`: how fast a server is asked after 429s, by its own times: no clock runs."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from nodes.models.pace_and_outages import RequestPacer


def asked(calls: int, is_refused: Callable[[float], bool]) -> tuple[float, int]:
    """Answers a second, and how many calls were refused, of a server that asks for a pause of 1 s each time."""
    pace, now_s, refused = RequestPacer(), 0.0, 0
    for _ in range(calls):
        now_s = pace.next_s(now_s)
        if is_refused(now_s):
            refused += 1
            pace.slower(now_s + 0.05, 1.0)
        else:
            pace.answered(now_s + 0.05)
    return (calls - refused) / now_s, refused


@pytest.mark.parametrize(("limit", "at_least", "refused_at_most"), [(50, 40, 40), (5, 4, 80), (1, 0.7, 250)])
def test_a_limit_of_calls_a_second_is_found_and_kept(limit: float, at_least: float, refused_at_most: int) -> None:
    tokens, last_s = float(limit), 0.0

    def bucket(now_s: float) -> bool:
        nonlocal tokens, last_s
        tokens, last_s = min(float(limit), tokens + (now_s - last_s) * limit), now_s
        if tokens < 1:
            return True
        tokens -= 1
        return False

    rate, refused = asked(800, bucket)
    assert at_least <= rate <= limit * 1.2
    assert refused <= refused_at_most


@pytest.mark.parametrize(("share", "at_least"), [(0.05, 3.0), (0.2, 1.2), (0.3, 0.6), (0.5, 0.1)])
def test_refusals_that_come_whatever_the_rate_is_do_not_end_in_a_halt(share: float, at_least: float) -> None:
    chance = random.Random(1)
    rate, _ = asked(600, lambda now_s: chance.random() < share)
    assert rate >= at_least


def test_a_minute_of_refusals_slows_nothing_after_it() -> None:
    """What was 50 calls a second is that again within seconds, and the server was asked now and then meanwhile."""
    pace, now_s, knocked, after = RequestPacer(), 0.0, 0, []
    while now_s < 100.0:
        now_s = pace.next_s(now_s)
        if 5.0 < now_s < 65.0:
            knocked += 1
            pace.slower(now_s + 0.02, 1.0)
        else:
            pace.answered(now_s + 0.02)
            after += [now_s] if now_s > 65.0 else []
        now_s += 0.02
    assert knocked <= 40
    assert after[0] < 65.0 + 5.0
    assert after[200] - after[0] < 10.0
