"""What the experiment's results say: medians by arm, and the primary measures of A beside each baseline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import msgspec

from bench.interruptions.risk_difference import risk_difference
from nodes.evaluation.trials import Result
from nodes.statistics.paired import holm, paired_difference, permutation_p
from runtime.command_line.columns import or_dash

OURS, BASELINES = "A", ("B", "B+", "C")


class Primary(msgspec.Struct, frozen=True):
    """A measure that the claim stands on, and the scenarios whose runs count."""

    name: str
    measure: str
    unit: str
    is_counted: Callable[[str], bool]


PRIMARIES = (
    Primary("rest after stop", "rest_s", "s", lambda task: task.startswith("stop-")),
    Primary("act after retraction", "act_s", "s", lambda task: task.startswith("retraction-")),
    Primary("harm on retraction at carry", "is_harm", "", lambda task: task == "retraction-carry"),
    Primary("completion without interruption", "completion_s", "s", lambda task: task == "nothing"),
)


class ArmFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A primary measure of one arm: quantiles in s, or for harm how many runs of how many."""

    variant: str
    primary: str
    runs: int
    without: int  # runs in which it did not happen, or that were not measured
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    harmed: int | None = None


class PrimaryComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A less a baseline, on the pairs of scenario and seed in which both were measured."""

    primary: str
    baseline: str
    regime: str
    pairs: int
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    corrected_p: float | None  # after Holm, over all that were compared


def variant_name(arm: str, regime: str) -> str:
    """The name of an arm under latencies."""
    return f"{arm}-{regime}"


def figures_of(results: Sequence[Result]) -> list[ArmFigures]:
    """Each primary measure of each arm, in the order of the results."""
    found = []
    for variant in dict.fromkeys(result.trial.variant for result in results):
        for primary in PRIMARIES:
            mine = [one for one in results if one.trial.variant == variant and primary.is_counted(one.trial.task)]
            if not mine:
                continue
            values = [value for one in mine if (value := value_of(one, primary.measure)) is not None]
            about = {"variant": variant, "primary": primary.name, "runs": len(mine), "without": len(mine) - len(values)}
            if primary.measure == "is_harm":
                found.append(ArmFigures(**about, harmed=int(sum(values))))  # type: ignore[arg-type]  # plain data
                continue
            p50, p90, p99 = (quantile(values, share) for share in (0.5, 0.9, 0.99))
            found.append(ArmFigures(**about, p50=p50, p90=p90, p99=p99))  # type: ignore[arg-type]
    return found


def compare(results: Sequence[Result]) -> list[PrimaryComparison]:
    """A beside each baseline; p by sign flips, corrected after Holm."""
    by_variant: dict[str, dict[tuple[str, int], Result]] = defaultdict(dict)
    for result in results:
        by_variant[result.trial.variant][result.trial.task, result.trial.seed] = result
    regimes = dict.fromkeys(name.rpartition("-")[2] for name in by_variant)
    found = []
    for regime in regimes:
        ours = by_variant.get(variant_name(OURS, regime), {})
        for baseline in BASELINES:
            theirs = by_variant.get(variant_name(baseline, regime), {})
            for primary in PRIMARIES:
                pairs = [
                    (seed, mine, other)
                    for (task, seed), result in ours.items()
                    if primary.is_counted(task) and (task, seed) in theirs
                    if (mine := value_of(result, primary.measure)) is not None
                    if (other := value_of(theirs[task, seed], primary.measure)) is not None
                ]
                if pairs:
                    found.append(_comparison(primary, baseline, regime, pairs))
    told = [one for one in found if one.p is not None]
    corrected = holm([one.p for one in told if one.p is not None])
    by_place = {id(one): p for one, p in zip(told, corrected, strict=True)}
    return [msgspec.structs.replace(one, corrected_p=by_place.get(id(one))) for one in found]


def _comparison(
    primary: Primary, baseline: str, regime: str, pairs: Sequence[tuple[int, float, float]]
) -> PrimaryComparison:
    differences = [mine - other for _, mine, other in pairs]
    if primary.measure == "is_harm":
        counts = [0, 0, 0, 0]
        for _, mine, other in pairs:
            counts[(0 if other else 1) if mine else (2 if other else 3)] += 1
        interval = risk_difference(*counts)
    else:
        clusters: dict[int, list[float]] = defaultdict(list)
        for (seed, _, _), difference in zip(pairs, differences, strict=True):
            clusters[seed].append(difference)
        interval = paired_difference(clusters.values())
    return PrimaryComparison(
        primary=primary.name, baseline=baseline, regime=regime, pairs=len(pairs), difference=interval.estimate,
        low=interval.low, high=interval.high, p=permutation_p(differences), corrected_p=None,
    )  # fmt: skip


def value_of(result: Result, measure: str) -> float | None:
    """A measure of a run as a number; None where it was not taken."""
    value = result.measures.get(measure)
    return float(value) if isinstance(value, bool | int | float) else None


def quantile(values: Sequence[float], share: float) -> float | None:
    """By nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def table(figures: Sequence[ArmFigures], comparisons: Sequence[PrimaryComparison]) -> str:
    """Both as Markdown."""
    lines = ["| measure | arm | runs | without | p50 | p90 | p99 |", "|---|---|---|---|---|---|---|"]
    for one in sorted(figures, key=lambda one: [primary.name for primary in PRIMARIES].index(one.primary)):
        shown = [or_dash(value) for value in (one.p50, one.p90, one.p99)]
        if one.harmed is not None:
            shown = [f"{one.harmed} of {one.runs - one.without} harmed", "", ""]
        lines.append(f"| {one.primary} | {one.variant} | {one.runs} | {one.without} | {' | '.join(shown)} |")
    lines += [
        "",
        "| measure | A less | pairs | difference | 95 % | p | p after Holm |",
        "|---|---|---|---|---|---|---|",
    ]
    for pair in comparisons:
        interval = "-" if pair.low is None or pair.high is None else f"{pair.low:+.3f} to {pair.high:+.3f}"
        lines.append(
            f"| {pair.primary} | {pair.baseline} ({pair.regime}) | {pair.pairs} | {or_dash(pair.difference, '+.3f')} "
            f"| {interval} | {or_dash(pair.p)} | {or_dash(pair.corrected_p)} |"
        )
    return "\n".join(lines)


PARTNER_PAIRS = (("M", "A"), ("M", "Q"))
"""A partner in mind against the same robot without one, and against one that always asks."""


def partner_table(results: Sequence[Result]) -> str:
    """Of the runs with somebody who has a cup of their own: harm, questions and time by arm, and the differences."""
    mine = [one for one in results if one.trial.task.startswith("partner-") and one.measures.get("is_measured")]
    by_variant: dict[str, dict[tuple[str, int], Result]] = defaultdict(dict)
    for one in mine:
        by_variant[one.trial.variant][one.trial.task, one.trial.seed] = one
    lines = ["| arm | runs | harmed | questions a run | done after, median in s |", "|---|---|---|---|---|"]
    for variant, of in by_variant.items():
        harm, questions, done = (
            [value for one in of.values() if (value := value_of(one, measure)) is not None]
            for measure in ("is_harm", "questions", "completion_s")
        )
        lines.append(
            f"| {variant} | {len(of)} | {sum(harm):.0f} | {sum(questions) / len(questions):.2f} "
            f"| {or_dash(quantile(done, 0.5))} of {len(done)} |"
        )
    lines += ["", "| difference | pairs | harmed | questions | done, s |", "|---|---|---|---|---|"]
    for regime in dict.fromkeys(name.rpartition("-")[2] for name in by_variant):
        for first, second in PARTNER_PAIRS:
            ours, theirs = (by_variant.get(variant_name(arm, regime), {}) for arm in (first, second))
            both = [(ours[key], theirs[key], key[1]) for key in ours if key in theirs]
            if both:
                cells = [_mean_difference(both, measure) for measure in ("is_harm", "questions", "completion_s")]
                lines.append(f"| {first} less {second} ({regime}) | {len(both)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean_difference(pairs: Sequence[tuple[Result, Result, int]], measure: str) -> str:
    """The mean difference with its 95 % interval; seeds are drawn whole."""
    clusters: dict[int, list[float]] = defaultdict(list)
    for one, other, seed in pairs:
        first, second = value_of(one, measure), value_of(other, measure)
        if first is not None and second is not None:
            clusters[seed].append(first - second)
    if not clusters:
        return "-"
    found = paired_difference(clusters.values(), estimate=lambda all_: float(all_.mean()))
    bounds = "" if found.low is None or found.high is None else f" [{found.low:+.2f}, {found.high:+.2f}]"
    return f"{found.estimate:+.2f}{bounds}"
