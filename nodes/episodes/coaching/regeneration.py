"""Filter and regeneration: a dialogue that is rated too low in the end is played again; the best one stays."""

from __future__ import annotations

import re

import msgspec

from nodes.episodes.coaching.step_rating import is_kept
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.results.store import EpisodeRow, Store

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
