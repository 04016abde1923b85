"""The statistics of reports: bootstrap intervals, paired permutation tests. Seeded.

Numbers of one scenario belong together, whatever the seed, so intervals resample scenarios, not scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2000
PERMUTATIONS = 10_000


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its 95 % interval, of so many clusters; the interval is None for a single one."""

    mean: float
    low: float | None
    high: float | None
    count: int


def mean_of(by_cluster: Mapping[str, Sequence[float]], seed: int = 0) -> Mean | None:
    """The mean over all values and its percentile bootstrap over clusters (scenarios); None without values."""
    groups = [np.asarray(values, dtype=np.float64) for _, values in sorted(by_cluster.items()) if len(values)]
    if not groups:
        return None
    sums = np.array([group.sum() for group in groups])
    counts = np.array([group.size for group in groups])
    mean = float(sums.sum() / counts.sum())
    if len(groups) < 2:
        return Mean(mean, None, None, len(groups))
    generator = np.random.default_rng(seed)
    draws = generator.integers(0, len(groups), size=(RESAMPLES, len(groups)))
    means = sums[draws].sum(axis=1) / counts[draws].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Mean(mean, float(low), float(high), len(groups))


def permutation_p(differences: Sequence[float], seed: int = 0) -> float | None:
    """Two-sided p of a mean paired difference of 0, by flipping signs; exact up to 13 pairs, else sampled."""
    values = np.asarray(differences, dtype=np.float64)
    if values.size == 0:
        return None
    observed = abs(values.mean())
    if values.size <= 13:
        bits = np.arange(2**values.size)[:, None] >> np.arange(values.size) & 1
        signs = bits * 2.0 - 1.0
        means = np.abs(signs @ values) / values.size
        return float((means >= observed - 1e-12).mean())
    generator = np.random.default_rng(seed)
    signs = generator.integers(0, 2, size=(PERMUTATIONS, values.size)) * 2.0 - 1.0
    means = np.abs(signs @ values) / values.size
    return float(((means >= observed - 1e-12).sum() + 1) / (PERMUTATIONS + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values corrected for their number, after Holm."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = highest
    return corrected


def hard_tasks(rewards: Mapping[str, Mapping[str, Sequence[float]]], target: str, low: float, high: float) -> list[str]:
    """Tasks by difficulty for a target model, hardest first.

    `rewards` is task -> model -> values. The difficulty is the highest estimated reward of all models (mean plus three
    standard deviations) less the lowest of the target (mean minus three), both bounded by the range.
    """
    gaps = []
    for task, models in rewards.items():
        if target not in models or not models[target]:
            continue
        highest = max(_bound(values, 3.0, low, high) for values in models.values() if len(values))
        lowest = _bound(models[target], -3.0, low, high)
        gaps.append((-(highest - lowest), float(np.mean(np.asarray(models[target]))), task))
    return [task for _, _, task in sorted(gaps)]


def _bound(values: Sequence[float], times: float, low: float, high: float) -> float:
    array = np.asarray(values, dtype=np.float64)
    return float(min(high, max(low, array.mean() + times * array.std())))
