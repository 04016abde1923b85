"""Statistics of a dataset's columns, as LeRobot has them: over one episode, and joined over all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

ColumnStats = dict[str, Any]
"""`min`, `max`, `mean`, `std` and quantiles as lists over a column's elements; `count` of the rows behind them."""
_QUANTILES = (1, 10, 50, 90, 99)


def column_stats(values: NDArray[Any]) -> ColumnStats:
    """Statistics of one column, as lists over its elements."""
    rows = values.reshape(len(values), -1).astype(np.float64)
    found = {
        "min": rows.min(0), "max": rows.max(0), "mean": rows.mean(0), "std": rows.std(0),
        **{f"q{percent:02d}": np.percentile(rows, percent, axis=0) for percent in _QUANTILES},
    }  # fmt: skip
    return {**{kind: value.tolist() for kind, value in found.items()}, "count": [len(rows)]}


def image_stats(frames: Sequence[NDArray[np.uint8]]) -> ColumnStats:
    """The same over the pixels of each colour, 0 to 1, in the shape (3, 1, 1)."""
    flat = column_stats(np.concatenate([frame.reshape(-1, 3) for frame in frames]) / 255.0)
    shaped = {kind: [[[value]] for value in values] for kind, values in flat.items() if kind != "count"}
    return {**shaped, "count": [len(frames)]}


def joined(stats: Sequence[dict[str, ColumnStats]]) -> dict[str, ColumnStats]:
    """Statistics over all episodes; quantiles as means weighted by length, as good as single passes give."""
    found: dict[str, ColumnStats] = {}
    for name in set.intersection(*(set(one) for one in stats)):
        parts = [one[name] for one in stats]
        weights = np.asarray([np.ravel(part["count"])[0] for part in parts], float)
        kinds = set.intersection(*(set(part) for part in parts)) - {"count"}
        arrays = {kind: np.asarray([part[kind] for part in parts], float) for kind in sorted(kinds)}
        mean = np.average(arrays["mean"], axis=0, weights=weights)
        variance = np.average(arrays["std"] ** 2 + (arrays["mean"] - mean) ** 2, axis=0, weights=weights)
        quantiles = {
            kind: np.average(value, axis=0, weights=weights) for kind, value in arrays.items() if kind[0] == "q"
        }
        whole = {"min": arrays["min"].min(0), "max": arrays["max"].max(0), "mean": mean, "std": np.sqrt(variance)}
        found[name] = {kind: value.tolist() for kind, value in (whole | quantiles).items()}
        found[name]["count"] = [int(weights.sum())]
    return {name: found[name] for name in stats[0] if name in found}
