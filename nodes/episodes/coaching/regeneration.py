"""Step ratings and what follows from them: which strategy comes next, and which dialogues are kept or played again.

Paper: SOTOPIA-Omega, equations 1, 3 and 4, appendix C.2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.results.store import EpisodeRow, Store
from nodes.models.json_reading import UnreadableError
from nodes.msgs.episode import Strategy

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


_ATTEMPT = re.compile(r"-try(\d+)$")


class Attempt(msgspec.Struct, frozen=True):
    """One finished dialogue of a task: what its coach thought of it in the end."""

    episode: str
    goal_c: float | None  # None: it could not be rated
    is_good: bool


def attempts_of(store: Store) -> dict[str, list[Attempt]]:
    """The finished attempts of every coached episode, in order, by the first one's name."""
    found: dict[str, list[Attempt]] = {}
    for row in store.episodes():
        scores = {one.dimension: one.score for one in store.turn_scores(row.id) if one.dimension.startswith("final_")}
        if row.state != "done" or not store.plan(row.id).coach:
            continue
        goal = scores.get("final_goal_c")
        good = goal is not None and is_kept(goal, negotiated=bool(scores.get("final_negotiated")))
        found.setdefault(_ATTEMPT.sub("", row.id), []).append(Attempt(row.id, goal, good))
    return found


def best_of(attempts: list[Attempt]) -> tuple[Attempt, str]:
    """The attempt that is learned from, and why: the first good one, else the highest rated."""
    for number, one in enumerate(attempts, start=1):
        if one.is_good:
            return one, f"attempt {number} of {len(attempts)}: final rating {one.goal_c:g} is high enough"
    best = max(attempts, key=lambda one: -1.0 if one.goal_c is None else one.goal_c)
    return best, f"the best of {len(attempts)} attempts, none of which was rated high enough"


def regenerations(store: Store, most: int) -> list[EpisodePlan]:
    """Plans of what is to be played again; they are in the file when this returns."""
    rows: dict[str, list[EpisodeRow]] = {}
    for row in store.episodes():
        rows.setdefault(_ATTEMPT.sub("", row.id), []).append(row)
    plans = []
    for first, attempts in attempts_of(store).items():
        if len(attempts) == len(rows[first]) < most and not any(one.is_good for one in attempts):
            plan, number = store.plan(first), len(attempts) + 1
            plans.append(msgspec.structs.replace(plan, id=f"{first}-try{number}", seed=plan.seed + 100_000 * number))
    store.add(plans, first=len(store.episodes()))
    return plans
