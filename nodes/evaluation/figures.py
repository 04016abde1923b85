"""What can be said of many runs: rates and times with their intervals, and two variants on the same seeds compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from statistics import NormalDist, median
from types import MappingProxyType

import msgspec

from nodes.evaluation.trials import WRONG_DEED, Result
from nodes.statistics.paired import Mean, mean_of, permutation_p

LEVEL = 0.95
ALL = "all"


class SuccessRate(msgspec.Struct, frozen=True):
    """A share of runs with its 95 % interval."""

    successes: int
    runs: int
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.successes / self.runs if self.runs else 0.0


class VariantFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One variant on one task."""

    variant: str
    task: str
    success: SuccessRate
    unjudged: int  # runs of which nobody said how they went; they are no successes
    broken: int  # of these: without a summary
    duration_s: float | None  # median of the successful ones
    slowest_s: float | None
    stops: int
    stop_to_held_p50_ms: float | None
    stop_to_held_max_ms: float | None
    image_age_p99_ms: float | None  # the worst of all runs
    reasons: dict[str, int]  # of those without success, the most frequent first
    measures: dict[str, Mean] = {}  # of the user's own, over the runs that have them
    wrong_deeds: SuccessRate | None = None  # of runs that a scenario's person has judged


class VariantComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A variant beside the first one, on the seeds and tasks that both have."""

    variant: str
    beside: str
    pairs: int
    only_this: int  # succeeded where the other did not
    only_that: int
    success_difference: float
    success_low: float | None
    success_high: float | None
    success_p: float | None  # two-sided, exact up to 13 pairs
    duration_difference_s: float | None  # mean, where both succeeded
    duration_low_s: float | None
    duration_high_s: float | None


def rate_of(successes: int, runs: int) -> SuccessRate:
    """Wilson's interval (1927), which also holds for few runs and for none that failed."""
    if not runs:
        return SuccessRate(0, 0, 0.0, 1.0)
    z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
    share, weight = successes / runs, z * z / runs
    centre = (share + weight / 2) / (1 + weight)
    half = z * sqrt(share * (1 - share) / runs + weight / (4 * runs)) / (1 + weight)
    return SuccessRate(
        successes,
        runs,
        0.0 if successes == 0 else max(0.0, centre - half),
        1.0 if successes == runs else min(1.0, centre + half),
    )


def figures_of(
    results: Iterable[Result], own: Sequence[str] = (), named: Mapping[str, str] = MappingProxyType({})
) -> list[VariantFigures]:
    """By variant and task, in the order in which they come. `own`: measures of the user's.

    `named`: what several tasks have in common; they are counted together, and all of a variant once more.
    """
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in sorted(results, key=lambda one: named.get(one.trial.task, "")):
        variant, task = result.trial.variant, result.trial.task
        groups.setdefault((variant, named.get(task, task)), []).append(result)
    for variant in {one: None for one, _ in groups} if named else ():
        groups[variant, ALL] = [one for (mine, _), some in groups.items() if mine == variant for one in some]
    return [_figures(variant, task, group, own) for (variant, task), group in groups.items()]


def _figures(variant: str, task: str, group: Sequence[Result], own: Sequence[str]) -> VariantFigures:
    durations = [one.duration_s for one in group if one.is_success]
    stops = [held_ms for one in group for held_ms in one.stops_to_held_ms]
    ages = [one.image_age_p99_ms for one in group if one.image_age_p99_ms is not None]
    deeds = [one.measures[WRONG_DEED] for one in group if WRONG_DEED in one.measures]
    reasons = Counter(one.reason for one in group if not one.is_success)
    return VariantFigures(
        variant=variant,
        task=task,
        success=rate_of(sum(one.is_success is True for one in group), len(group)),
        unjudged=sum(one.is_success is None for one in group),
        broken=sum(one.has_broken for one in group),
        duration_s=median(durations) if durations else None,
        slowest_s=max(durations, default=None),
        stops=len(stops),
        stop_to_held_p50_ms=median(stops) if stops else None,
        stop_to_held_max_ms=max(stops, default=None),
        image_age_p99_ms=max(ages, default=None),
        reasons=dict(reasons.most_common()),
        measures=_measures(group, own),
        wrong_deeds=rate_of(sum(map(bool, deeds)), len(deeds)) if deeds else None,
    )


def _measures(group: Sequence[Result], own: Sequence[str]) -> dict[str, Mean]:
    """The mean of each measure over the runs, with its interval."""
    found = {}
    for name in own:
        values = {one.trial.name: [float(value)] for one in group if (value := one.measures.get(name)) is not None}
        if mean := mean_of(values):
            found[name] = mean
    return found


def compare(results: Iterable[Result]) -> list[VariantComparison]:
    """Every variant but the first beside the first one: pairs of runs differ in the variant alone."""
    by_variant: dict[str, dict[tuple[str, int], Result]] = {}
    for result in results:
        trial = result.trial
        by_variant.setdefault(trial.variant, {})[trial.task, trial.seed] = result
    if len(by_variant) < 2:
        return []
    (first, these), *others = by_variant.items()
    return [_comparison(name, first, those, these) for name, those in others]


def _comparison(
    name: str, first: str, those: dict[tuple[str, int], Result], these: dict[tuple[str, int], Result]
) -> VariantComparison:
    pairs = {key: (those[key], these[key]) for key in those if key in these}
    wins = {key: float(one.is_success is True) - float(other.is_success is True) for key, (one, other) in pairs.items()}
    times = {
        key: one.duration_s - other.duration_s
        for key, (one, other) in pairs.items()
        if one.is_success and other.is_success
    }
    success = mean_of({str(key): [value] for key, value in wins.items()})
    duration = mean_of({str(key): [value] for key, value in times.items()})
    return VariantComparison(
        variant=name,
        beside=first,
        pairs=len(pairs),
        only_this=sum(value > 0 for value in wins.values()),
        only_that=sum(value < 0 for value in wins.values()),
        success_difference=success.mean if success else 0.0,
        success_low=success.low if success else None,
        success_high=success.high if success else None,
        success_p=permutation_p(list(wins.values())),
        duration_difference_s=duration.mean if duration else None,
        duration_low_s=duration.low if duration else None,
        duration_high_s=duration.high if duration else None,
    )
