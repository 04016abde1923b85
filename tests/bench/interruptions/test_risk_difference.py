"""The difference of two risks on the same cases: the published one, by other ways, and by its coverage."""

from __future__ import annotations

import numpy as np
import pytest

from bench.interruptions.risk_difference import risk_difference
from nodes.statistics.paired import wilson
from tests.support.sentences import pattern


def test_a_risk_difference_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=pattern("statistics.at_least_one_pair")):
        risk_difference(0, 0, 0, 0)


def test_a_risk_difference_is_the_published_one() -> None:
    """The pairs 36, 12, 2 and 0 of Newcombe's table II: 0.2, from 0.0569 to 0.3404."""
    found = risk_difference(36, 12, 2, 0)
    assert (found.estimate, found.low, found.high) == pytest.approx((0.2, 0.0569, 0.3404), abs=5e-5)


def test_a_risk_difference_turns_its_sign_with_the_sides() -> None:
    one, other = risk_difference(5, 9, 2, 24), risk_difference(5, 2, 9, 24)
    assert one.low is not None
    assert one.high is not None
    assert (one.estimate, one.low, one.high) == pytest.approx((-other.estimate, -(other.high or 0), -(other.low or 0)))
    assert one.estimate == pytest.approx(7 / 40)
    assert one.low < one.estimate < one.high


def test_without_correlation_the_interval_is_newcombes_for_independent_shares() -> None:
    """a d = b c: each side's Wilson interval, joined as squares (Newcombe 1998, method 10 of independent shares)."""
    found = risk_difference(4, 4, 6, 6)
    (low, high), (other_low, other_high) = wilson(8, 20), wilson(10, 20)
    first, second = 8 / 20, 10 / 20
    assert found.low == pytest.approx(first - second - ((first - low) ** 2 + (other_high - second) ** 2) ** 0.5)
    assert found.high == pytest.approx(first - second + ((high - first) ** 2 + (second - other_low) ** 2) ** 0.5)


def test_no_discordant_pair_has_no_difference_and_a_narrow_interval() -> None:
    found = risk_difference(10, 0, 0, 10)
    assert found.estimate == 0.0
    assert found.low is not None
    assert found.high is not None
    independent = ((0.5 - wilson(10, 20)[0]) ** 2 * 2) ** 0.5
    assert found.high == pytest.approx(-found.low)
    assert 0 < found.high < independent


def test_the_risk_interval_covers_the_true_difference_in_about_95_of_100_samples() -> None:
    generator = np.random.default_rng(3)
    shares = (0.15, 0.25, 0.05, 0.55)  # both, only the first, only the second, neither: a difference of 0.2
    covered = 0
    for both, first, second, neither in generator.multinomial(40, shares, size=2000):
        found = risk_difference(int(both), int(first), int(second), int(neither))
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0.2 <= found.high
    assert 0.93 <= covered / 2000 <= 0.98
