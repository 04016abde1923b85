"""Which conversations to learn from: SOTOPIA-pi's filters BC and SR, SOTOPIA-Omega's best attempts; each explained.

The unit is one seat's part of one conversation. A task is a scenario: its conversations differ in characters and seed.
Paper: arXiv 2403.08715, appendix B.2.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from nodes.episodes.coaching.regeneration import attempts_of, best_of
from nodes.episodes.evaluation.dimensions import mean_scores, overall
from nodes.episodes.results.store import Store
from runtime.errors import UserError, choices

ALWAYS_KEPT = 2
"""BC takes so many per task and seat, however good they are."""

LAST_RANK = 10
SR_SHARE = 0.2


class SeatGoal(msgspec.Struct, frozen=True):
    """What one seat reached in one conversation."""

    episode: str
    task: str
    seat: int
    goal: float


class FilterDecision(msgspec.Struct, frozen=True):
    """Whether one seat's part of a conversation is learned from, and why."""

    episode: str
    task: str
    seat: int
    goal: float | None
    rank: int  # within task and seat, from 1; 0: not ranked
    is_kept: bool
    why: str
    run: str = ""  # the file's name, where decisions are written


def decide(
    store: Store, filter_name: str, *, judge: str = "", agent: str = "", by: str = "GOAL"
) -> list[FilterDecision]:
    """A decision for every seat of every finished episode; `agent` limits it to seats that this agent played.

    `by`: the dimension that is the measure of quality, or "overall", the mean of all seven.
    Raises UserError for an unknown filter, or an agent that played nowhere.
    """
    if filter_name not in (*FILTERS, "omega"):
        raise UserError(f"filter {filter_name!r}: there is none; known: {', '.join(FILTERS)}, omega")
    goals, unjudged = [], []
    players = set()
    for row in store.episodes():
        players |= set(row.agents)
        if row.state != "done":
            continue
        means = mean_scores(store.scores(row.id), judge)
        for seat, name in enumerate(row.names):
            if agent and row.agents[seat] != agent:
                continue
            scores = means.get(name, {})
            goal = overall(scores) if by == "overall" else scores.get(by)
            if goal is None:
                unjudged.append(FilterDecision(row.id, row.scenario, seat, None, 0, False, f"nobody judged its {by}"))
            else:
                goals.append(SeatGoal(row.id, row.scenario, seat, goal))
    if filter_name == "omega":
        return coached(store)
    if agent and agent not in players:
        raise UserError(f"{store.path}: agent {agent!r} played nowhere; there are {choices(players)}")
    return FILTERS[filter_name](goals) + unjudged


def behavior_cloning(goals: Sequence[SeatGoal]) -> list[FilterDecision]:
    """The top 2 per task and seat; at ranks 3 to 10 both seats' data, where both lie above their seat's threshold.

    A seat's threshold is the smaller of its mean in the task and its mean in all tasks.
    """
    ranked = _ranked(goals)
    everywhere = {seat: _mean([one.goal for one in goals if one.seat == seat]) for seat in {g.seat for g in goals}}
    found = []
    for task in sorted({task for task, _ in ranked}):
        seats = {seat: ranks for (of, seat), ranks in ranked.items() if of == task}
        bars = {seat: min(_mean([one.goal for one in ranks]), everywhere[seat]) for seat, ranks in seats.items()}
        for rank in range(1, max(len(ranks) for ranks in seats.values()) + 1):
            here = {seat: ranks[rank - 1] for seat, ranks in seats.items() if rank <= len(ranks)}
            is_whole = len(here) == len(seats)
            below = [seat for seat, one in here.items() if not one.goal > bars[seat]]
            for seat, one in sorted(here.items()):
                if rank <= ALWAYS_KEPT:
                    is_kept, why = True, f"among the top {ALWAYS_KEPT} of its task and seat"
                elif rank > LAST_RANK:
                    is_kept, why = False, f"ranks after {LAST_RANK} are not looked at"
                elif not is_whole:
                    is_kept, why = False, f"the other seat has no rank {rank}"
                elif below:
                    shown = ", ".join(f"{here[s].goal:g} of seat {s} is not above {bars[s]:.2f}" for s in below)
                    is_kept, why = False, f"at this rank {shown}"
                else:
                    shown = ", ".join(f"{here[s].goal:g} > {bars[s]:.2f}" for s in sorted(here))
                    is_kept, why = True, f"all seats at this rank are above min(local, global mean): {shown}"
                found.append(FilterDecision(one.episode, task, seat, one.goal, rank, is_kept, why))
    return found


def self_reinforcement(goals: Sequence[SeatGoal]) -> list[FilterDecision]:
    """The top 20 % per task and seat, rounded up: of ten conversations two."""
    found = []
    for (task, seat), ranks in sorted(_ranked(goals).items()):
        most = math.ceil(SR_SHARE * len(ranks) - 1e-9)
        for rank, one in enumerate(ranks, start=1):
            is_kept = rank <= most
            why = f"rank {rank} of {len(ranks)}; the top {SR_SHARE:.0%} are {most}"
            found.append(FilterDecision(one.episode, task, seat, one.goal, rank, is_kept, why))
    return found


def coached(store: Store) -> list[FilterDecision]:
    """SOTOPIA-Omega: of each coached episode's attempts the first that was rated high enough, else the best."""
    found = []
    for attempts in attempts_of(store).values():
        best, why = best_of(attempts)
        plan = store.plan(best.episode)
        for rank, one in enumerate(attempts, start=1):
            is_kept = one is best
            for seat in range(len(plan.names)):
                said = why if is_kept else f"attempt {best.episode} is kept"
                found.append(FilterDecision(one.episode, plan.scenario, seat, one.goal_c, rank, is_kept, said))
    return found


def best_of_runs(runs: Sequence[tuple[Store, list[FilterDecision]]]) -> list[list[FilterDecision]]:
    """Of several runs of the same tasks the one whose kept dialogues are rated highest, task by task; else the first.

    SOTOPIA-Omega's "Raw mix NSI".
    """
    ratings: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    tasks = [{row.id: row.task for row in store.episodes()} for store, _ in runs]
    for number, (_, decisions) in enumerate(runs):
        for one in decisions:
            if one.is_kept and one.goal is not None:
                ratings[tasks[number][one.episode]][number].append(one.goal)
    best = {task: max(sorted(of), key=lambda number: _mean(of[number])) for task, of in ratings.items()}
    found = []
    for number, (_, decisions) in enumerate(runs):
        kept = []
        for one in decisions:
            winner = best.get(tasks[number][one.episode], number)
            if one.is_kept and winner != number:
                why = f"run {winner + 1} of {len(runs)} is rated higher on this task"
                one = msgspec.structs.replace(one, is_kept=False, why=why)
            kept.append(one)
        found.append(kept)
    return found


FILTERS = {"bc": behavior_cloning, "sr": self_reinforcement}


def _ranked(goals: Sequence[SeatGoal]) -> dict[tuple[str, int], list[SeatGoal]]:
    """Per task and seat, the best first; equal ones in the order in which they were played."""
    ranked: dict[tuple[str, int], list[SeatGoal]] = defaultdict(list)
    for one in goals:
        ranked[one.task, one.seat].append(one)
    return {key: sorted(ones, key=lambda one: -one.goal) for key, ones in ranked.items()}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
