"""Scores of several judges as one: the mean per participant and dimension, over judges that did not fail."""

from __future__ import annotations

from collections.abc import Iterable

from nodes.episodes.evaluation.dimensions import NAMES
from runtime.msgs.episode import Scores


def mean_scores(scores: Iterable[Scores], judge: str = "") -> dict[str, dict[str, float]]:
    """name -> dimension -> mean; a failed evaluation adds nothing, and nobody gets a zero for it."""
    values: dict[str, dict[str, list[float]]] = {}
    for one in scores:
        if one.state != "done" or (judge and one.judge != judge):
            continue
        for score in one.scores:
            if score.score is not None:
                values.setdefault(score.name, {}).setdefault(score.dimension, []).append(score.score)
    return {
        name: {dimension: sum(found) / len(found) for dimension, found in sorted(dimensions.items())}
        for name, dimensions in sorted(values.items())
    }


def overall(dimensions: dict[str, float]) -> float | None:
    """The unweighted mean of the seven dimensions; None where one of them has no score."""
    return sum(dimensions[name] for name in NAMES) / len(NAMES) if set(NAMES) <= set(dimensions) else None
