"""Step ratings and what follows from them: how far the goals are reached and will be, and which strategy comes next.

Paper: SOTOPIA-Omega, equations 1, 3 and 4, appendix C.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nodes.models.json_reading import UnreadableError
from runtime.msgs.episode import Strategy

FIRST_RATED = 6
"""The sixth action is the first that is rated, and the seventh the first that is guided."""

SAMPLES = 5
LOW, HIGH = 7.5, 8.5
KEEP_WITH_NEGOTIATION, KEEP_WITHOUT = 8.0, 8.5
MOST_ATTEMPTS = 4


class StepRating(msgspec.Struct, frozen=True):
    """What the coach thinks of the talk so far: means over both seats and all samples."""

    goal_c: float  # how far the goals are reached, 0 to 10
    goal_p: float  # how far they will be
    goes_on: bool  # False: it drifts, repeats itself, or is over
    samples: int


def read_step(found: dict[str, object], seats: int = 2) -> tuple[float, float, bool]:
    """(current, predicted, goes on): of one answer in two parts a seat and one more, means over the seats.

    Raises UnreadableError naming part and range.
    """
    scores, last = [], 2 * seats + 1
    for number in range(1, last + 1):
        part = found.get(f"step{number}")
        value = part.get("score") if isinstance(part, dict) else part
        high = 1 if number == last else 10
        try:
            score = float(value)  # type: ignore[arg-type]  # texts are usual: "7"
        except (TypeError, ValueError):
            raise UnreadableError(f"step{number}: score is {value!r}; expected a whole number") from None
        if not 0 <= score <= high or score != int(score):
            raise UnreadableError(f"step{number}: score is {score:g}; expected a whole number, 0 to {high}")
        scores.append(score)
    return sum(scores[:seats]) / seats, sum(scores[seats:-1]) / seats, scores[-1] == 1


def mean_rating(samples: Sequence[tuple[float, float, bool]]) -> StepRating:
    """The mean of the samples; one that says stop is enough. Raises ValueError of nothing."""
    count = len(samples)
    if not count:
        raise ValueError("no samples: a rating needs at least one")
    return StepRating(
        goal_c=sum(one[0] for one in samples) / count,
        goal_p=sum(one[1] for one in samples) / count,
        goes_on=all(one[2] for one in samples),
        samples=count,
    )


def choose(goal_c: float, goal_p: float) -> Strategy:
    """The strategy for the next act."""
    if goal_c <= LOW:
        return "simple" if goal_p >= HIGH else "negotiation"
    return "simple" if goal_c < HIGH and goal_p < HIGH else "native"


def is_kept(goal_c: float, *, negotiated: bool) -> bool:
    """Whether a finished dialogue is good enough."""
    return goal_c >= (KEEP_WITH_NEGOTIATION if negotiated else KEEP_WITHOUT)


def utility(items: Sequence[tuple[float, float, float]]) -> float:
    """U = (1/n) sum of weight x ratio x utility; 0 of nothing."""
    return sum(weight * ratio * value for weight, ratio, value in items) / len(items) if items else 0.0
