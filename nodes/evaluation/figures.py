"""What can be said of many runs: rates and times with their intervals, and two variants on the same seeds compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from nodes.evaluation.trials import Result
from nodes.statistics.paired import Mean, mean_of, permutation_p, wilson


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
    """With Wilson's interval, which also holds for few runs and for none that failed."""
    return SuccessRate(successes, runs, *wilson(successes, runs))


def share_of(part: int, whole: int) -> dict[str, float]:
    """The same as a document."""
    rate = rate_of(part, whole)
    return {"count": part, "share": rate.share, "low": rate.low, "high": rate.high}


def figures_of(results: Iterable[Result], own: Sequence[str] = ()) -> list[VariantFigures]:
    """By variant and task, in the order in which they come. `own`: measures of the user's."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.trial.variant, result.trial.task), []).append(result)
    return [_figures(variant, task, group, own) for (variant, task), group in groups.items()]


def _figures(variant: str, task: str, group: Sequence[Result], own: Sequence[str]) -> VariantFigures:
    durations = [one.duration_s for one in group if one.is_success]
    stops = [held_ms for one in group for held_ms in one.stops_to_held_ms]
    ages = [one.image_age_p99_ms for one in group if one.image_age_p99_ms is not None]
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
