"""What the results say beyond the primary measures: every measure by arm, and whether the claim was falsified."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import msgspec

from bench.interruptions.comparisons import OURS, PrimaryComparison, value_of
from bench.interruptions.measures import SECONDARIES, Secondary, of_kind
from nodes.evaluation.trials import Result

FAIR = "B+"
LATENCIES = (
    ("held after stop", "held_s", "stop"), ("rest after stop", "rest_s", "stop"),
    ("act after retraction", "act_s", "retraction"), ("plan after retraction", "plan_s", "retraction"),
)  # fmt: skip
APART_S = 0.05
"""So far the medians of a latency in virtual time and in real time may be apart."""
NEEDED_S = -0.5
"""So much sooner A must act after a retraction than B+."""


class SecondaryFigures(msgspec.Struct, frozen=True):
    """Of one measure: by variant the mean of what is yes or no, else the median; and of how many runs.

    None for a variant: in none of its runs was it measured.
    """

    name: str
    unit: str
    by_variant: dict[str, tuple[float | None, int] | None]


class Falsifier(msgspec.Struct, frozen=True):
    """Something that would falsify the claim. `has_happened` is None where the runs cannot tell."""

    name: str
    has_happened: bool | None
    evidence: str


def secondaries(results: Sequence[Result]) -> list[SecondaryFigures]:
    """Every measure of the runs that count for it, by variant; and what an interruption cost beside a run without."""
    found = []
    variants = list(dict.fromkeys(result.trial.variant for result in results))
    for one in (*SECONDARIES, _resuming(results)):
        counted = [result for result in results if one.is_counted(result.trial.task)]
        by_variant: dict[str, tuple[float | None, int] | None] = {}
        for variant in variants:
            mine = [result for result in counted if result.trial.variant == variant]
            values = [value for result in mine if (value := one.value(result)) is not None]
            middle = None if not values else sum(values) / len(values) if one.unit == "share" else median(values)
            is_taken = any(one.is_taken(result) for result in mine)
            by_variant[variant] = (middle, len(values)) if is_taken else None
        if counted:
            found.append(SecondaryFigures(one.name, one.unit, by_variant))
    return found


def _resuming(results: Sequence[Result]) -> Secondary:
    alone = {
        (result.trial.variant, result.trial.seed): result.duration_s
        for result in results
        if result.trial.task == "nothing" and result.is_success
    }

    def cost_s(result: Result) -> float | None:
        before_s = alone.get((result.trial.variant, result.trial.seed))
        return None if before_s is None or not result.is_success else result.duration_s - before_s

    return Secondary("cost of a stop: time beside the same run without", "s", cost_s, of_kind("stop"))


def falsifiers(
    results: Sequence[Result], comparisons: Sequence[PrimaryComparison], regime: str = "cloud"
) -> list[Falsifier]:
    """Each of the specification's, in its order, but for the comparison with real time."""
    by_name = {(one.primary, one.baseline): one for one in comparisons if one.regime == regime}
    ours = {(one.trial.task, one.trial.seed): one for one in results if one.trial.variant == f"{OURS}-{regime}"}
    fair = {(one.trial.task, one.trial.seed): one for one in results if one.trial.variant == f"{FAIR}-{regime}"}

    act = by_name.get(("act after retraction", FAIR))
    harm = by_name.get(("harm on retraction at carry", FAIR))
    time = by_name.get(("completion without interruption", FAIR))
    found = [
        Falsifier(
            f"after a retraction A does not act {-NEEDED_S} s sooner than B+",
            None if act is None or act.high is None else act.high > NEEDED_S, _told(act, "s"),
        ),
        Falsifier(
            "A does no less harm than B+ on a retraction at the carry",
            None if harm is None or harm.high is None else harm.high >= 0, _told(harm, ""),
        ),
        Falsifier(
            "A is slower without interruptions",
            None if time is None or time.low is None else time.low > 0, _told(time, "s"),
        ),
    ]  # fmt: skip
    quiet = [one for (task, _), one in ours.items() if task == "backchannel" and one.measures.get("is_measured")]
    moved = [one for one in quiet if one.measures.get("is_false_reaction")]
    words = sorted({str(one.measures.get("text")) for one in moved})
    found.append(
        Falsifier(
            "A reacts to words that ask for nothing", bool(moved) if quiet else None,
            f"{len(moved)} of {len(quiet)} runs{': ' + ', '.join(words) if words else ''}",
        )
    )  # fmt: skip
    pairs = [
        (mine, other)
        for key, one in ours.items()
        if key[0] == "burst" and key in fair
        if (mine := value_of(one, "wasted_m")) is not None and (other := value_of(fair[key], "wasted_m")) is not None
    ]
    more = sum(mine > other for mine, other in pairs)
    middle = median(mine - other for mine, other in pairs) if pairs else None
    found.append(
        Falsifier(
            "under bursts A moves further in vain than B+", None if middle is None else middle > 0,
            "not measured" if middle is None else f"{more} of {len(pairs)} pairs, median {1000 * middle:+.1f} mm",
        )
    )  # fmt: skip
    return found


def _told(one: PrimaryComparison | None, unit: str) -> str:
    if one is None or one.difference is None:
        return "not measured"
    interval = "" if one.low is None else f" ({one.low:+.3f} to {one.high:+.3f})"
    return f"{one.difference:+.3f}{' ' + unit if unit else ''}{interval}, {one.pairs} pairs"


def secondary_table(figures: Sequence[SecondaryFigures]) -> str:
    """As Markdown, a column for each variant."""
    variants = list(dict.fromkeys(name for one in figures for name in one.by_variant))
    lines = [f"| secondary measure | {' | '.join(variants)} |", "|---" * (len(variants) + 1) + "|"]
    for one in figures:
        cells = []
        for variant in variants:
            told = one.by_variant.get(variant)
            if told is None:
                cells.append("not measured")
                continue
            value, number = told
            shown = "-" if value is None else f"{value:.0%}" if one.unit == "share" else f"{value:.3f}"
            cells.append(f"{shown} ({number})")
        unit = f", {one.unit}" if one.unit and one.unit != "share" else ""
        lines.append(f"| {one.name}{unit} | {' | '.join(cells)} |")
    return "\n".join(lines)


def falsifier_table(found: Sequence[Falsifier]) -> str:
    """As Markdown."""
    words = {True: "**yes**", False: "no", None: "not known"}
    rows = [f"| {one.name} | {words[one.has_happened]} | {one.evidence} |" for one in found]
    return "\n".join(["| would falsify the claim | happened | A less B+ (95 %) |", "|---|---|---|", *rows])


def real_time_table(virtual: Sequence[Result], real: Sequence[Result]) -> str:
    """Each latency's medians on the runs that were done in both, as Markdown; the specification's last falsifier."""
    by_trial = {one.trial: one for one in virtual}
    lines = [
        f"| latency | arm | runs | virtual, s | real, s | apart by more than {APART_S:g} s |",
        "|---|---|---|---|---|---|",
    ]
    for name, measure, kind in LATENCIES:
        for variant in dict.fromkeys(one.trial.variant for one in real):
            pairs = [
                (one_s, other_s)
                for other in real
                if other.trial.variant == variant and of_kind(kind)(other.trial.task) and other.trial in by_trial
                if (one_s := value_of(by_trial[other.trial], measure)) is not None
                if (other_s := value_of(other, measure)) is not None
            ]
            if pairs:
                one_s, other_s = (median(values) for values in zip(*pairs, strict=True))
                is_apart = "**yes**" if abs(one_s - other_s) > APART_S else "no"
                lines.append(f"| {name} | {variant} | {len(pairs)} | {one_s:.3f} | {other_s:.3f} | {is_apart} |")
    return "\n".join(lines)
