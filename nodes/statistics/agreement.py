"""How far raters agree: Randolph's and weighted kappa, Krippendorff's alpha, intraclass correlation; Pearson."""

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


def weighted_kappa(first: Sequence[int], second: Sequence[int], categories: int) -> float | None:
    """Two raters on ordered categories 0..k-1, near misses counted less, by the square of how far they are off.

    None where chance leaves nothing to explain. Cohen, Psychological Bulletin 70 (1968). Raises ValueError for series
    of different lengths.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} ratings; expected one of each rater for each item")
    if not first or categories < 2:
        return None
    places = np.arange(categories)
    far = ((places[:, None] - places[None, :]) / (categories - 1)) ** 2
    seen = np.zeros((categories, categories))
    np.add.at(seen, (np.asarray(first), np.asarray(second)), 1.0 / len(first))
    expected = float((np.outer(seen.sum(1), seen.sum(0)) * far).sum())
    return None if expected == 0.0 else 1.0 - float((seen * far).sum()) / expected


def krippendorff_alpha(ratings: Sequence[Sequence[float | None]]) -> float | None:
    """Any number of raters on an ordinal scale, with gaps: items x raters, None where one did not rate.

    Krippendorff, Content Analysis (2004), chapter 11. Items with fewer than two ratings count nothing; None
    where nothing varies.
    """
    items = [[float(value) for value in item if value is not None] for item in ratings]
    items = [item for item in items if len(item) > 1]
    values = sorted({value for item in items for value in item})
    if len(values) < 2:
        return None
    place = {value: number for number, value in enumerate(values)}
    together = np.zeros((len(values), len(values)))
    for item in items:
        counts = np.bincount([place[value] for value in item], minlength=len(values)).astype(np.float64)
        together += (np.outer(counts, counts) - np.diag(counts)) / (len(item) - 1)
    totals = together.sum(1)
    middle = np.cumsum(totals) - totals / 2
    far = (middle[:, None] - middle[None, :]) ** 2
    count = float(totals.sum())
    chance = (np.outer(totals, totals) - np.diag(totals)) / (count - 1)
    return 1.0 - float((together * far).sum()) / float((chance * far).sum())


def icc(ratings: Sequence[Sequence[float]]) -> float | None:
    """Intraclass correlation of one rater, of items x raters without gaps, by absolute agreement.

    Shrout and Fleiss, Psychological Bulletin 86 (1979), case 2. None for fewer than two items or raters, or where
    nothing varies. Raises ValueError where an item lacks a rating.
    """
    if len({len(item) for item in ratings}) > 1:
        raise ValueError("an item lacks a rating; expected one of each rater, or leave the item out")
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or min(table.shape) < 2:
        return None
    items, raters = table.shape
    mean = table.mean()
    between = raters * float(((table.mean(1) - mean) ** 2).sum()) / (items - 1)
    of_raters = items * float(((table.mean(0) - mean) ** 2).sum())
    within = float(((table - table.mean(1, keepdims=True)) ** 2).sum())
    rest = (within - of_raters) / ((items - 1) * (raters - 1))
    spread = of_raters / (raters - 1) - rest
    below = between + (raters - 1) * rest + raters * spread / items
    return (between - rest) / below if below else None


def merged(score: float, low: int, high: int, classes: int = 5) -> int:
    """A score on a scale of eleven points as one of a few classes, as the paper merges them."""
    return min(classes - 1, int((score - low) / (high - low) * classes))
