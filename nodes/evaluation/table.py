"""Figures as a table for people, and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from nodes.evaluation.figures import SuccessRate, VariantComparison, VariantFigures
from nodes.evaluation.trials import Result
from nodes.statistics.paired import Mean
from runtime.command_line.columns import columns, or_dash
from runtime.operating_system.whole_file import write_whole

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
        success += f", p = {or_dash(one.success_p)} ({only})"
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
        or_dash(one.duration_s, ".1f"),
        or_dash(one.slowest_s, ".1f"),
        stop,
        or_dash(one.image_age_p99_ms, ".0f"),
        "-" if one.wrong_deeds is None else f"{one.wrong_deeds.successes} ({_between(one.wrong_deeds)})",
    )


def _mean(one: Mean | None) -> str:
    if one is None:
        return "-"
    return f"{one.mean:.4g}" + (f" ({one.low:.4g} to {one.high:.4g})" if one.low is not None else "")


def _between(rate: SuccessRate) -> str:
    return f"{rate.low:.0%} to {rate.high:.0%}"


def _interval(low: float | None, high: float | None, times: float) -> str:
    return "" if low is None or high is None else f" ({low * times:+.1f} to {high * times:+.1f})"


ROW_INCHES = 0.5
LETTER_INCHES = 0.08
LONGEST_NAME = 40
MOST_PIXELS = 32_000  # in height; the library refuses twice that
COLOURS = ("#1f6f8b", "#c8553d", "#588157", "#7d5ba6", "#b08900", "#495057")


def draw(path: Path, figures: Sequence[VariantFigures], results: Sequence[Result]) -> None:
    """A row for each variant and task. Raises OSError."""
    from nodes.plotting.figure import Figure

    variants = list(dict.fromkeys(one.variant for one in figures))
    height = 1.4 + ROW_INCHES * len(figures)
    names = ["\n".join(shorten(name, LONGEST_NAME) for name in (one.variant, one.task) if name) for one in figures]
    width = 9.5 + LETTER_INCHES * max((len(line) for name in names for line in name.split("\n")), default=0)
    figure = Figure(figsize=(width, height))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1, 1.4))
    for row, one in enumerate(figures):
        colour = COLOURS[variants.index(one.variant) % len(COLOURS)]
        rate = one.success
        left.plot([100 * rate.low, 100 * rate.high], [row, row], color=colour, linewidth=6, alpha=0.3)
        left.plot(100 * rate.share, row, "o", color=colour, markersize=8, clip_on=False)
        left.annotate(
            f"{rate.successes} of {rate.runs}", (100 * rate.share, row), (0, 9), textcoords="offset points",
            ha="right" if rate.share > 0.8 else "left" if rate.share < 0.2 else "center", fontsize=8,
        )  # fmt: skip
        times = [
            result.duration_s
            for result in results
            if result.is_success and (result.trial.variant, result.trial.task) == (one.variant, one.task)
        ]
        right.plot(times, [row] * len(times), "o", color=colour, alpha=0.5, markersize=6, markeredgewidth=0)
        if one.duration_s is not None:
            right.plot([one.duration_s] * 2, [row - 0.25, row + 0.25], color=colour, linewidth=2.5)
    left.set_yticks(range(len(figures)), names, fontsize=9)
    if not any(one.success.successes for one in figures):
        right.set_xticks([])  # there is no time to show
    left.set_ylim(len(figures) - 0.4, -0.6)
    left.set_xlim(-3, 103)
    left.set_xlabel("runs that succeeded, %; bar: 95 % interval")
    right.set_xlabel("time of each run that succeeded, s; line: median")
    for axes in (left, right):
        axes.grid(axis="x", alpha=0.25)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
    figure.tight_layout()
    drawn = BytesIO()
    figure.savefig(drawn, dpi=min(130.0, MOST_PIXELS / height))
    write_whole(path, drawn.getvalue())


def shorten(name: str, most: int) -> str:
    """The name, or its two ends: variants of one kind often differ in their last letters."""
    return name if len(name) <= most else f"{name[: most // 2 - 1]}…{name[-(most - most // 2) :]}"
