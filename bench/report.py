"""Writes what was measured into docs/performance.md and docs/performance.png."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench import marked
from bench.code_commit import commit_of
from bench.result import Result

DOCS = Path(__file__).resolve().parent.parent / "docs"
FIGURES = "<!-- figures: begin, written by python -m bench --write -->", "<!-- figures: end -->"
STAGES = "<!-- stages: begin, written by python -m bench --write -->", "<!-- stages: end -->"
_HEAD = """| what | ours | reference | ratio | goal | reached | against | how |
|---|---:|---:|---:|---|---|---|---|
"""


def machine() -> dict[str, object]:
    """On what, when, and beside how much other work it was measured."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "commit": commit_of() or "unknown",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "load": round(os.getloadavg()[2], 1),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def write(results: Sequence[Result], found: dict[str, object], stages: str, kind: str, folder: Path = DOCS) -> None:
    """Write what the page holds between its markers, and its picture; `stages` tells where the time goes."""
    words = (
        f"Measured {found['date']} on {found['cores']} cores of {found['processor']}, {found['system']}, "
        f"CPython {found['python']}, commit {found['commit']};\nload average before it began {found['load']}. "
        f"This is the {kind} measurement: `{'make bench' if kind == 'quick' else 'make bench FULL=1'}`."
    )
    rows = []
    for result in results:
        peers = "".join(f"; {peer} {_figure(value)}" for peer, value in result.peers.items())
        reached = "-" if result.goal is None else "yes" if result.is_met else "**no**"
        rows.append(
            f"| {result.name} [{result.unit}] | {_figure(result.ours)} | {_figure(result.reference)} | "
            f"{result.ratio:.2f} | {result.goal_text} | {reached} | {result.reference_name}{peers} | {result.how} |"
        )
    page = folder / "performance.md"
    marked.write(page, *FIGURES, f"{words}\n\n{_HEAD}" + "\n".join(rows))
    marked.write(page, *STAGES, stages)
    draw([result for result in results if result.goal is not None], folder / "performance.png")


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def draw(results: Sequence[Result], file: Path) -> None:
    """One bar for each figure: how much of what its goal allows was needed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(10, 1.2 + 0.32 * len(results)), layout="constrained")
    shares = [min(10.0, max(0.01, result.share)) for result in results]
    colours = ["#2a7f62" if result.is_met else "#c0392b" for result in results]
    names = [f"{result.name} [{result.unit}]" for result in results]
    axes.barh(range(len(results)), shares, color=colours, left=0.0)
    axes.set_xscale("log")
    axes.set_xlim(0.01, 14)
    axes.axvline(1.0, color="#333333", linewidth=1)
    axes.set_yticks(range(len(results)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xticks([0.01, 0.1, 1, 10], ["1 %", "10 %", "the goal", "10 x"])
    for place, (share, result) in enumerate(zip(shares, results, strict=True)):
        axes.text(
            share * 1.06, place, f"{_figure(result.ours)} vs {_figure(result.reference)}", va="center", fontsize=7
        )
    axes.set_xlabel("share of what the goal allows (logarithmic; left of the line: reached)")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(file, dpi=110)
    pyplot.close(figure)
