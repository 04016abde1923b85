"""The figures of a report, from a run's file: means and pairs with their statistics, hard tasks, agreement with people.

Numbers of one scenario belong together, whatever the seed, so intervals resample scenarios, not scores.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import msgspec
import numpy as np

from nodes.episodes.evaluation.dimensions import NAMES, RULES_JUDGE, SEVEN, mean_scores, overall
from nodes.episodes.results.store import FOLLOWS, Store
from nodes.statistics.agreement import merged, pearson, randolph_kappa
from nodes.statistics.paired import Mean, holm, mean_of, permutation_p, wilson


def interval_text(found: Mapping[str, Any] | None, of: str) -> str:
    """A difference with its bounds, as tables show it."""
    if found is None:
        return "-"
    bounds = "" if found["low"] is None else f" [{found['low']:+.2f}, {found['high']:+.2f}]"
    return f"{found[of]:+.2f}{bounds}"


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
    return float(np.clip(array.mean() + times * array.std(), low, high))


OVERALL = "overall"
HARD_SHARE = 0.2


class Value(msgspec.Struct, frozen=True):
    """One participant of one done and judged episode."""

    episode: str
    task: str
    scenario: str
    seed: int
    seat: int
    model: str
    partner: str
    scores: dict[str, float]  # dimension -> mean over judges, see `mean_scores`; "overall" with them


class ModelComparison(msgspec.Struct, frozen=True):
    """Two models on the same tasks, seeds and seats."""

    first: str
    second: str
    dimension: str
    difference: float
    pairs: int
    p: float
    p_holm: float


class Agreement(msgspec.Struct, frozen=True):
    """People against each other, and the judge against people, on one dimension."""

    dimension: str
    items: int
    kappa: dict[int, float | None]  # Randolph's, with the scale merged into 3, 4 and 5 classes
    agreeing: float | None  # share of pairs of raters in the same of five classes
    pearson: float | None
    matched: int
    pearson_by_player: dict[str, float | None]  # the same, of the seats that "models" and "people" played


class NaturalnessComparison(msgspec.Struct, frozen=True):
    """How often people found the first line-up's episode of a task the more natural of two."""

    first: str
    second: str
    better: int
    worse: int
    neither: int
    share: float | None  # of those with a choice
    low: float  # of the share: Wilson's 95 % interval, as if each comparison stood by itself
    high: float
    tasks: int
    p: float | None  # two-sided, by flipping signs of whole tasks
    first_words: float | None  # a turn
    second_words: float | None


class ReportFigures(msgspec.Struct, frozen=True):
    """All that a report shows."""

    episodes: int
    done: int
    failed: int
    failed_evaluations: int
    judges: tuple[str, ...]  # whose scores the means are of; a scale stands in the name
    models: tuple[str, ...]
    dimensions: tuple[str, ...]
    table: dict[str, dict[str, Mean | None]]  # model -> dimension
    by_kind: dict[str, dict[str, Mean | None]]  # kind of scenario -> dimension
    pairs: dict[str, dict[str, float | None]]  # model -> partner -> mean of what `pairs_of` names
    pairs_of: str
    comparisons: tuple[ModelComparison, ...]
    hard: dict[str, tuple[str, ...]]  # model -> its hardest tasks
    hard_table: dict[str, dict[str, Mean | None]]
    ends: dict[str, int]
    checks: dict[str, dict[str, float | None]]  # model -> rate or mean
    is_by_rules: bool  # nobody but the offline judge scored: no interval and no p is shown for that
    agreement: tuple[Agreement, ...]
    naturalness: tuple[NaturalnessComparison, ...]
    left_out: tuple[str, ...] = ()  # what models were asked without, in sentences


def values_of(store: Store, judge: str = "") -> list[Value]:
    """One value per participant. Where a run has several modes, a model is told apart by who knew what."""
    found = []
    has_modes = len({row.transparency for row in store.episodes()}) > 1
    for row in store.episodes():
        if row.state != "done":
            continue
        means = mean_scores(store.scores(row.id), judge)
        for seat, name in enumerate(row.names):
            if name not in means:
                continue
            whole = overall(means[name])
            scores = means[name] | ({} if whole is None else {OVERALL: whole})
            others = sorted({agent for other, agent in enumerate(row.agents) if other != seat})
            model = f"{row.transparency}: {row.agents[seat]}" if has_modes else row.agents[seat]
            found.append(Value(row.id, row.task, row.scenario, row.seed, seat, model, " + ".join(others), scores))
    return found


def figures_of(store: Store, judge: str = "") -> ReportFigures:
    """The figures of a run."""
    rows = store.episodes()
    values = values_of(store, judge)
    models = tuple(sorted({value.model for value in values}))
    named = {name for value in values for name in value.scores}
    dimensions = tuple([n for n in NAMES if n in named] + sorted(named - set(NAMES) - {OVERALL}))
    dimensions += (OVERALL,) if OVERALL in named else ()
    kinds = {row.task: row.id for row in rows}  # one episode of each task: its plan is like those of the others
    kinds = {task: store.plan(episode).kind or "other" for task, episode in kinds.items()}
    hard = {model: _hard(values, model) for model in models} if len(models) > 1 else {}  # hard beside others
    hard_values = [value for value in values if value.task in hard.get(value.model, ())]
    judges = [one for one in store.judges() if not one.startswith(FOLLOWS) and judge in ("", one)]
    is_by_rules = set(judges) <= {RULES_JUDGE}
    ends = Counter(row.reason.partition(":")[0] or row.state for row in rows)
    return ReportFigures(
        episodes=len(rows),
        done=sum(row.state == "done" for row in rows),
        failed=sum(row.state == "failed" for row in rows),
        failed_evaluations=store.failed_evaluations(),
        judges=tuple(sorted(judges if is_by_rules else set(judges) - {RULES_JUDGE})),
        models=models,
        dimensions=dimensions,
        table=means_by(values, dimensions, lambda value: value.model, is_by_rules=is_by_rules),
        by_kind=means_by(values, dimensions, lambda value: kinds[value.task], is_by_rules=is_by_rules),
        pairs=_pairs(values, models),
        pairs_of=pairs_dimension(values),
        comparisons=() if is_by_rules else _comparisons(values, models, dimensions),
        hard=hard,
        hard_table=means_by(hard_values, dimensions, lambda value: value.model, is_by_rules=is_by_rules),
        ends=dict(sorted(ends.items())),
        checks=_checks(store, values, models),
        agreement=_agreement(store, judge),
        naturalness=_naturalness(store),
        is_by_rules=is_by_rules,
        left_out=store.left_out(),
    )


def means_by(
    values: Iterable[Value], dimensions: Sequence[str], key: Callable[[Value], str], *, is_by_rules: bool = False
) -> dict[str, dict[str, Mean | None]]:
    """Means with their intervals over scenarios, by what the key tells and dimension; rules have no interval."""
    groups: dict[str, list[Value]] = defaultdict(list)
    for value in values:
        groups[key(value)].append(value)
    table: dict[str, dict[str, Mean | None]] = {}
    for name, group in sorted(groups.items()):
        table[name] = {}
        for dimension in dimensions:
            by_scenario: dict[str, list[float]] = defaultdict(list)
            for value in group:
                by_scenario[value.scenario] += [value.scores[dimension]] if dimension in value.scores else []
            mean = mean_of(by_scenario)
            table[name][dimension] = Mean(mean.mean, None, None, mean.count) if mean and is_by_rules else mean
    return table


def _pairs(values: list[Value], models: tuple[str, ...]) -> dict[str, dict[str, float | None]]:
    of, found = pairs_dimension(values), defaultdict[tuple[str, str], list[float]](list)
    for value in values:
        found[value.model, value.partner] += [value.scores[of]] if of in value.scores else []
    partners = sorted({value.partner for value in values})
    return {model: {partner: _mean(found.get((model, partner), ())) for partner in partners} for model in models}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def pairs_dimension(values: list[Value]) -> str:
    """What model and partner are compared by: the overall score, or GOAL where nobody has scores on all seven."""
    return OVERALL if any(OVERALL in value.scores for value in values) else "GOAL"


def _comparisons(
    values: list[Value], models: tuple[str, ...], dimensions: tuple[str, ...]
) -> tuple[ModelComparison, ...]:
    found: list[tuple[str, str, str, float, int, float]] = []
    of = {model: [value for value in values if value.model == model] for model in models}
    for first, second in combinations(models, 2):
        for dimension in dimensions:
            clusters = paired(of[first], of[second], dimension)
            differences = [sum(each) / len(each) for _, each in sorted(clusters.items())]
            if (p := permutation_p(differences)) is not None:
                mean = sum(differences) / len(differences)
                found.append((first, second, dimension, mean, len(differences), p))
    corrected = holm([row[5] for row in found])
    return tuple(ModelComparison(*row, p_holm) for row, p_holm in zip(found, corrected, strict=True))


def paired(first: Iterable[Value], second: Iterable[Value], dimension: str) -> dict[str, list[float]]:
    """By scenario the first's scores less the second's on the same task, seed and seat, each the mean over partners."""
    sides: list[dict[tuple[str, str, int, int], list[float]]] = []
    for values in (first, second):
        sides.append(defaultdict(list))
        for value in values:
            if dimension in value.scores:
                sides[-1][value.scenario, value.task, value.seed, value.seat].append(value.scores[dimension])
    found: dict[str, list[float]] = defaultdict(list)
    for key in sorted(sides[0].keys() & sides[1].keys()):
        one, other = (sum(side[key]) / len(side[key]) for side in sides)
        found[key[0]].append(one - other)
    return found


def _hard(values: list[Value], model: str) -> tuple[str, ...]:
    rewards: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for value in values:
        if "GOAL" in value.scores:
            rewards[value.task][value.model].append(value.scores["GOAL"])
    ranked = hard_tasks(rewards, model, 0.0, 10.0)
    return tuple(ranked[: max(1, round(len(ranked) * HARD_SHARE))])


CHECKS = ("deals", "surplus", "learned", "first mention", "leaks", "words per turn", "repeated turns", "unusable turns")


def _checks(store: Store, values: list[Value], models: tuple[str, ...]) -> dict[str, dict[str, float | None]]:
    names = {row.id: row.names for row in store.episodes()}
    has_deal: dict[str, bool] = {}  # by task
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for value in values:
        if (checks := store.checks(value.episode)) is None:
            continue
        seat = next(one for one in checks["seats"] if one["name"] == names[value.episode][value.seat])
        if value.task not in has_deal:
            has_deal[value.task] = store.plan(value.episode).deal is not None
        told = {
            "leaks": bool(seat["leak"]),
            "words per turn": seat["words_per_turn"],
            "repeated turns": seat["repeated_turns"],
            "unusable turns": seat.get("faults", 0),
            "deals": checks["has_deal"] if has_deal[value.task] else None,
            "surplus": seat["surplus"],
            "learned": len(seat["learned"]) / seat["sought"] if seat["sought"] else None,
            "first mention": checks["first_mention"],
        }
        for column, figure in told.items():
            found[value.model][column] += [] if figure is None else [float(figure)]
    return {model: {column: _mean(found[model][column]) for column in CHECKS} for model in models}


CLASSES = (3, 4, 5)


def _agreement(store: Store, judge: str) -> tuple[Agreement, ...]:
    ratings = store.ratings()
    if not ratings:
        return ()
    known = {dimension.name: dimension for dimension in SEVEN}
    episodes = {row[0] for row in ratings}
    means = {episode: mean_scores(store.scores(episode), judge) for episode in episodes}
    players = {
        (row.id, name): "people" if agent == "human" else "models"
        for row in store.episodes()
        for name, agent in zip(row.names, row.agents, strict=True)
    }
    found = []
    for name in dict.fromkeys([*known, *(row[3] for row in ratings)]):
        items: dict[tuple[str, str], list[float]] = defaultdict(list)
        for episode, _, person, dimension, score in ratings:
            if dimension == name:
                items[episode, person].append(score)
        if not items:
            continue
        given = [score for item in items.values() for score in item]
        low, high = int(min(given)), max(int(max(given)), int(min(given)) + 1)  # where nobody says how far a scale goes
        low, high = (known[name].low, known[name].high) if name in known else (low, high)
        classes = {
            count: [[merged(score, low, high, count) for score in scores] for scores in items.values()]
            for count in CLASSES
        }
        pairs = [one == other for item in classes[5] for one, other in combinations(item, 2)]
        matched = {
            item: (sum(scores) / len(scores), means[item[0]][item[1]][name])
            for item, scores in items.items()
            if name in means[item[0]].get(item[1], {})
        }
        kappa = {count: randolph_kappa(scores, count) for count, scores in classes.items()}
        agreeing = sum(pairs) / len(pairs) if pairs else None
        by_player = {
            player: _correlation([both for item, both in matched.items() if players[item] == player])
            for player in ("models", "people")
        }
        every = _correlation(list(matched.values()))
        found.append(Agreement(name, len(items), kappa, agreeing, every, len(matched), by_player))
    return tuple(found)


def _correlation(pairs: list[tuple[float, float]]) -> float | None:
    return pearson([human for human, _ in pairs], [machine for _, machine in pairs])


def _naturalness(store: Store) -> tuple[NaturalnessComparison, ...]:
    """Every two line-ups that people compared: who won, tested by task, for those who share a task are no two samples.

    SCRIPT against AGENTS is the comparison of "Is this the real life?", section 3.4, with its verbosity beside it.
    """
    preferences = store.preferences()
    rows = {row.id: row for row in store.episodes()} if preferences else {}
    found: dict[tuple[str, str], list[tuple[str, float]]] = defaultdict(list)
    compared: dict[str, set[str]] = defaultdict(set)
    for first, second, _, choice, _ in preferences:
        ones = {rows[first].line_up: first, rows[second].line_up: second}
        if len(ones) < 2:
            continue  # one line-up beside itself tells nothing
        one, other = sorted(ones)
        won = 0.0 if choice == "neither" else 1.0 if ones[one] == (first if choice == "first" else second) else -1.0
        found[one, other].append((rows[first].task, won))
        for line_up, episode in ones.items():
            compared[line_up].add(episode)
    words = {line_up: _verbosity(store, episodes) for line_up, episodes in compared.items()}
    comparisons = []
    for (one, other), votes in sorted(found.items()):
        by_task: dict[str, list[float]] = defaultdict(list)
        for task, won in votes:
            by_task[task].append(won)
        better, worse = (sum(won == sign for _, won in votes) for sign in (1.0, -1.0))
        low, high = wilson(better, better + worse)
        p = permutation_p([sum(each) / len(each) for _, each in sorted(by_task.items())])
        share = better / (better + worse) if better + worse else None
        neither = len(votes) - better - worse
        comparisons.append(
            NaturalnessComparison(
                one, other, better, worse, neither, share, low, high, len(by_task), p, words[one], words[other]
            )
        )
    return tuple(comparisons)


def _verbosity(store: Store, episodes: Iterable[str]) -> float | None:
    """Words in a turn of speech, on average."""
    lengths = [
        len(turn.argument.split()) for one in sorted(episodes) for turn in store.turns(one) if turn.kind == "speak"
    ]
    return sum(lengths) / len(lengths) if lengths else None
