"""Statistics of paired runs, against second implementations and by their coverage."""

from __future__ import annotations

from itertools import combinations_with_replacement
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.statistics.paired import paired_difference, permutation_p, wilson
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
