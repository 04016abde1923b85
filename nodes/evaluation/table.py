"""Figures as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.evaluation.figures import SuccessRate, VariantComparison, VariantFigures
from nodes.statistics.paired import Mean
from runtime.command_line.columns import columns

MOST_REASONS = 3
_HEAD = (
    "variant",
    "task",
    "runs",
    "success",
    "95 %",
    "time s",
    "slowest s",
    "stop to held ms",
    "image age ms",
    "wrong deeds",
)


def table(figures: Sequence[VariantFigures], own: Sequence[str] = ()) -> str:
    """A row for each variant and task; under it why runs did not succeed. `own`: measures of the user's."""
    has_tasks, has_deeds = any(one.task for one in figures), any(one.wrong_deeds for one in figures)
    hidden = {"task"} if not has_tasks else set()
    hidden |= {"wrong deeds"} if not has_deeds else set()
    head = (*_HEAD, *own)
    rows = [head, *((*_row(one), *(_mean(one.measures.get(name)) for name in own)) for one in figures)]
    kept = [place for place, name in enumerate(head) if name not in hidden]
    lines = []
    shown = columns([[row[place] for place in kept] for row in rows], head[:2])
    for line, one in zip(shown, (None, *figures), strict=True):
        lines.append(line)
        if one is not None:
            lines += [f"    {number} x {reason}" for reason, number in list(one.reasons.items())[:MOST_REASONS]]
            if (more := len(one.reasons) - MOST_REASONS) > 0:
                lines.append(f"    and {more} other reasons")
    return "\n".join(lines)


def sentences(comparisons: Sequence[VariantComparison]) -> list[str]:
    """Each comparison in words."""
    found = []
    for one in comparisons:
        points = f"{100 * one.success_difference:+.0f} points{_interval(one.success_low, one.success_high, 100)}"
        only = f"{one.only_this} only by {one.variant}, {one.only_that} only by {one.beside}"
        success = f"{one.variant} beside {one.beside}, {one.pairs} pairs of runs: success {points}"
        success += f", p = {_p(one.success_p)} ({only})"
        if one.duration_difference_s is not None:
            low, high = one.duration_low_s, one.duration_high_s
            success += f"; where both succeeded {one.duration_difference_s:+.1f} s{_interval(low, high, 1)}"
        found.append(success)
    return found


def _row(one: VariantFigures) -> tuple[str, ...]:
    success, is_judged = one.success, one.unjudged < one.success.runs
    stop = "-"
    if one.stop_to_held_p50_ms is not None and one.stop_to_held_max_ms is not None:
        stop = f"{one.stop_to_held_p50_ms:.1f}, max {one.stop_to_held_max_ms:.1f}"
    return (
        one.variant,
        one.task or "-",
        str(success.runs),
        f"{success.share:.0%}" if is_judged else "-",
        _between(success) if is_judged else "-",
        _number(one.duration_s),
        _number(one.slowest_s),
        stop,
        _number(one.image_age_p99_ms, 0),
        "-" if one.wrong_deeds is None else f"{one.wrong_deeds.successes} ({_between(one.wrong_deeds)})",
    )


def _mean(one: Mean | None) -> str:
    if one is None:
        return "-"
    return f"{one.mean:.4g}" + (f" ({one.low:.4g} to {one.high:.4g})" if one.low is not None else "")


def _between(rate: SuccessRate) -> str:
    return f"{rate.low:.0%} to {rate.high:.0%}"


def _number(value: float | None, places: int = 1) -> str:
    return "-" if value is None else f"{value:.{places}f}"


def _interval(low: float | None, high: float | None, times: float) -> str:
    return "" if low is None or high is None else f" ({low * times:+.1f} to {high * times:+.1f})"


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
