"""Statistics of paired runs, against second implementations and by their coverage."""

from __future__ import annotations

from itertools import combinations_with_replacement
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.statistics.paired import paired_difference, permutation_p, risk_difference, wilson
from tests.support.sentences import pattern

VALUES = st.lists(st.floats(-100, 100), min_size=1, max_size=12)


def estimate(values: list[float]) -> float:
    """Of one cluster: Hodges and Lehmann's."""
    return paired_difference([values]).estimate


@given(VALUES)
def test_the_hodges_lehmann_estimate_is_the_median_of_all_pairwise_means(values: list[float]) -> None:
    means = [(one + other) / 2 for one, other in combinations_with_replacement(values, 2)]
    assert estimate(values) == pytest.approx(median(means))


@given(VALUES, st.floats(-50, 50))
def test_the_estimate_moves_with_the_differences(values: list[float], shift: float) -> None:
    assert estimate([value + shift for value in values]) == pytest.approx(estimate(values) + shift, abs=1e-6)


def test_an_estimate_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=pattern("statistics.at_least_one_pair")):
        paired_difference([[]])
    with pytest.raises(ValueError, match=pattern("statistics.at_least_one_pair")):
        risk_difference(0, 0, 0, 0)


def test_one_cluster_has_no_interval() -> None:
    found = paired_difference([[1.0, 2.0, 3.0]])
    assert (found.estimate, found.low, found.high) == (2.0, None, None)


def test_the_bootstrap_draws_clusters_and_not_values() -> None:
    """Forty values in two clusters know as little as two values do."""
    clusters = [[0.0] * 20, [1.0] * 20]
    found = paired_difference(clusters, resamples=400)
    assert (found.low, found.high) == (0.0, 1.0)


def test_the_bootstrap_is_the_same_for_one_seed() -> None:
    clusters = [[float(seed), seed * 0.5] for seed in range(8)]
    assert paired_difference(clusters, resamples=200) == paired_difference(clusters, resamples=200)
    assert paired_difference(clusters, resamples=200) != paired_difference(clusters, resamples=200, seed=1)


def test_the_bootstrap_covers_the_true_difference_in_about_95_of_100_samples() -> None:
    generator = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        effects = generator.normal(1.0, 1.0, size=20)
        clusters = [list(generator.normal(effect, 0.5, size=3)) for effect in effects]
        found = paired_difference(clusters, resamples=200, estimate=lambda values: float(np.mean(values)))
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 1.0 <= found.high
    assert 176 <= covered <= 198


@pytest.mark.parametrize(("successes", "count"), [(0, 10), (3, 10), (10, 10), (81, 263)])
def test_wilsons_interval_is_scipys(successes: int, count: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    found = stats.binomtest(successes, count).proportion_ci(method="wilson")
    assert wilson(successes, count) == pytest.approx((found.low, found.high))


def test_the_bootstrap_of_single_differences_is_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(7).normal(1.0, 2.0, size=25)
    found = paired_difference([[value] for value in values], estimate=lambda drawn: float(np.median(drawn)))
    other = stats.bootstrap(
        (values,), np.median, n_resamples=10_000, method="percentile", rng=np.random.default_rng(8)
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((other.low, other.high), abs=0.1)


def test_sign_flips_give_scipys_p() -> None:
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(9).normal(0.4, 1.0, size=11)
    other = stats.permutation_test((values,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert permutation_p(list(values)) == pytest.approx(other.pvalue)


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
