"""Success rates with their intervals, and the times of every run that succeeded, as one picture."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from nodes.evaluation.figures import VariantFigures
from nodes.evaluation.trials import Result
from nodes.plotting.figure import Figure
from runtime.operating_system.whole_file import write_whole

ROW_INCHES = 0.5
LETTER_INCHES = 0.08
LONGEST_NAME = 40
MOST_PIXELS = 32_000  # in height; the library refuses twice that
COLOURS = ("#1f6f8b", "#c8553d", "#588157", "#7d5ba6", "#b08900", "#495057")


def draw(path: Path, figures: Sequence[VariantFigures], results: Sequence[Result]) -> None:
    """A row for each variant and task. Raises OSError."""
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
