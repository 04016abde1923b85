"""Paired comparisons: the Hodges-Lehmann difference, a bootstrap over clusters, and Newcombe's risk difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
_Z_95 = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95 % interval; the bounds are None where there is a single cluster."""

    estimate: float
    low: float | None
    high: float | None


def hodges_lehmann(differences: Sequence[float]) -> float:
    """The median of all means of two differences, each with itself included. Raises ValueError of nothing.

    Hodges and Lehmann, Annals of Mathematical Statistics 34 (1963).
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.size == 0:
        raise ValueError("no differences: an estimate needs at least one pair")
    return _pseudomedian(values)


def _pseudomedian(values: NDArray[np.float64]) -> float:
    first, second = np.triu_indices(values.size)
    return float(np.median((values[first] + values[second]) / 2))


def paired_difference(
    clusters: Iterable[Sequence[float]],
    *,
    estimate: Callable[[NDArray[np.float64]], float] = _pseudomedian,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """The estimate over all differences, with the percentile bootstrap that draws whole clusters (seeds of a run).

    Raises ValueError where no cluster holds a difference.
    """
    groups = [np.asarray(values, dtype=np.float64) for values in clusters if len(values)]
    if not groups:
        raise ValueError("no differences: an estimate needs at least one pair")
    value = estimate(np.concatenate(groups))
    if len(groups) < 2:
        return Interval(value, None, None)
    generator = np.random.default_rng(seed)
    draws = generator.integers(0, len(groups), size=(resamples, len(groups)))
    estimates = [estimate(np.concatenate([groups[index] for index in draw])) for draw in draws]
    low, high = np.percentile(estimates, [2.5, 97.5])
    return Interval(value, float(low), float(high))


def wilson(successes: int, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval (1927) of a share; (0, 1) of nothing."""
    if count == 0:
        return 0.0, 1.0
    share, weight = successes / count, _Z_95 * _Z_95 / count
    centre = (share + weight / 2) / (1 + weight)
    half = _Z_95 * sqrt(share * (1 - share) / count + weight / (4 * count)) / (1 + weight)
    return (
        0.0 if successes == 0 else max(0.0, centre - half),
        1.0 if successes == count else min(1.0, centre + half),
    )


def risk_difference(both: int, only_first: int, only_second: int, neither: int) -> Interval:
    """The first's risk less the second's on the same cases, with Newcombe's interval for paired shares.

    Newcombe, Statistics in Medicine 17 (1998), 2635-2650, method 10: Wilson's intervals of both shares, joined by the
    correlation of the pairs. Raises ValueError without a case.
    """
    count = both + only_first + only_second + neither
    if count == 0:
        raise ValueError("no cases: a risk difference needs at least one pair")
    first, second = (both + only_first) / count, (both + only_second) / count
    (first_low, first_high), (second_low, second_high) = (
        wilson(both + only_first, count),
        wilson(both + only_second, count),
    )
    phi = _correlation(both, only_first, only_second, neither)
    difference = first - second

    def reach(one: float, other: float) -> float:
        return sqrt(max(0.0, one * one - 2 * phi * one * other + other * other))

    return Interval(
        difference,
        max(-1.0, difference - reach(first - first_low, second_high - second)),
        min(1.0, difference + reach(first_high - first, second - second_low)),
    )


def _correlation(both: int, only_first: int, only_second: int, neither: int) -> float:
    """The pairs' correlation, with Newcombe's continuity correction towards 0."""
    product = (both + only_first) * (only_second + neither) * (both + only_second) * (only_first + neither)
    if product == 0:
        return 0.0
    excess = float(both * neither - only_first * only_second)
    if excess > 0:
        excess = max(0.0, excess - (both + only_first + only_second + neither) / 2)
    return excess / sqrt(product)
