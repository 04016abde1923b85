"""Means and paired comparisons: bootstraps over clusters, permutations of signs, Hodges-Lehmann, Wilson, Holm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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


def _pseudomedian(values: NDArray[np.float64]) -> float:
    # Hodges and Lehmann, Annals of Mathematical Statistics 34 (1963): the median of all means of two.
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


MEAN_RESAMPLES = 2000
PERMUTATIONS = 10_000


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its 95 % interval, of so many clusters; the interval is None for a single one."""

    mean: float
    low: float | None
    high: float | None
    count: int


def mean_of(by_cluster: Mapping[str, Sequence[float]]) -> Mean | None:
    """The mean over all values and its percentile bootstrap over clusters (scenarios); None without values."""
    groups = [np.asarray(values, dtype=np.float64) for _, values in sorted(by_cluster.items()) if len(values)]
    if not groups:
        return None
    sums = np.array([group.sum() for group in groups])
    counts = np.array([group.size for group in groups])
    mean = float(sums.sum() / counts.sum())
    if len(groups) < 2:
        return Mean(mean, None, None, len(groups))
    generator = np.random.default_rng(0)
    draws = generator.integers(0, len(groups), size=(MEAN_RESAMPLES, len(groups)))
    means = sums[draws].sum(axis=1) / counts[draws].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Mean(mean, float(low), float(high), len(groups))


def permutation_p(differences: Sequence[float]) -> float | None:
    """Two-sided p of a mean paired difference of 0, by flipping signs; exact up to 13 pairs, else sampled."""
    values = np.asarray(differences, dtype=np.float64)
    if values.size == 0:
        return None
    is_exact = values.size <= 13
    if is_exact:
        flips = np.arange(2**values.size)[:, None] >> np.arange(values.size) & 1
    else:
        flips = np.random.default_rng(0).integers(0, 2, size=(PERMUTATIONS, values.size))
    means = np.abs((flips * 2.0 - 1.0) @ values) / values.size
    as_far = means >= abs(values.mean()) - 1e-12
    return float(as_far.mean()) if is_exact else float((as_far.sum() + 1) / (PERMUTATIONS + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values corrected for their number, after Holm."""
    order = np.argsort(p_values, kind="stable")
    raised = np.asarray(p_values, dtype=np.float64)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.maximum.accumulate(np.minimum(1.0, raised))
    return [float(one) for one in corrected]
