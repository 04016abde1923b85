"""A rate limit keeps the phase of what it thins, and never lets more through than it says."""

from __future__ import annotations

import random

import pytest

from runtime import Message, QoS, Subscription
from runtime.errors import UserError
from runtime.message import Envelope, Stamped
from runtime.transport.rate_limit import RateLimit
from tests.support.sentences import sentence

MS = 1_000_000


class Level(Message, kind="state"):
    count: int


@pytest.mark.parametrize(("hz", "most_hz", "each"), [(30, 15, 2), (30, 10, 3), (15, 5, 3), (30, 30, 1), (20, 40, 1)])
@pytest.mark.parametrize("jitter", [0.0, 0.09])
def test_every_second_or_third_one_is_let_through_also_where_they_jitter(
    hz: int, most_hz: float, each: int, jitter: float
) -> None:
    chance, limit = random.Random(1), RateLimit(most_hz)
    begin_ns = 10**15
    stamps_ns = [begin_ns + round((number + chance.uniform(-jitter, jitter)) / hz * 1e9) for number in range(1, 900)]
    let_through = [number for number, stamp_ns in enumerate(stamps_ns) if limit.allows(stamp_ns)]
    assert let_through == list(range(0, 899, each))


def test_what_comes_at_random_is_let_through_at_most_so_often() -> None:
    chance, limit = random.Random(2), RateLimit(10.0)
    now_ns, number = 10**15, 0
    for _ in range(5000):
        now_ns += round(chance.expovariate(1 / (20 * MS)))
        is_allowed = limit.allows(now_ns)
        assert limit.allows(now_ns) is is_allowed
        number += is_allowed
    seconds = (now_ns - 10**15) * 1e-9
    assert 0.8 * 10 * seconds < number < 1.02 * 10 * seconds


def test_a_subscription_that_wants_fewer_counts_those_that_it_leaves_out() -> None:
    port = Subscription(Level, "level", qos=QoS(max_hz=10.0))
    for number in range(1, 31):
        port.push(Stamped(Level(count=number), Envelope("level", "a", number, 10**15 + number * 33_333_333)))
    assert port.dropped["max_hz"] == 20
    assert port.received == 30
    assert port.latest() == Level(count=28)


def test_an_event_is_not_left_out_and_a_rate_is_a_positive_number() -> None:
    assert QoS(max_hz=5.0).problems("event") == [sentence("runtime.max_hz_of_events")]
    assert QoS(max_hz=5.0).problems("state") == []
    with pytest.raises(UserError, match="positive number of hertz"):
        QoS(max_hz=0.0)
