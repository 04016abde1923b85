"""How far raters agree with each other, and two series with each other: Randolph's kappa, Pearson."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def pearson(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The correlation of two series; None for fewer than two points or where one does not vary."""
    if len(first) < 2 or len(first) != len(second):
        return None
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    one, other = one - one.mean(), other - other.mean()
    norm = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return float((one * other).sum() / norm) if norm > 0 else None


def randolph_kappa(ratings: Sequence[Sequence[int]], categories: int) -> float | None:
    """Free-marginal multi-rater agreement: items x raters, categories 0..k-1; None where no item has two raters."""
    shares = []
    for item in ratings:
        count = len(item)
        if count < 2:
            continue
        totals = np.bincount(np.asarray(item), minlength=categories)
        shares.append(float((totals * (totals - 1)).sum()) / (count * (count - 1)))
    if not shares or categories < 2:
        return None
    chance = 1.0 / categories
    return (sum(shares) / len(shares) - chance) / (1.0 - chance)


def five_point(score: float, low: int, high: int) -> int:
    """A score on a scale of eleven points as one of five classes, as the paper merges them."""
    return min(4, int((score - low) / (high - low) * 5))
