"""The experiment's plots: reactions by arm, harm, what latency and rates do, and single episodes side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from statistics import median

from bench.interruptions.comparisons import quantile, value_of
from bench.interruptions.measures import distances_to_goal, of_kind
from bench.interruptions.scenarios import shipped
from nodes.evaluation.arms import REGIMES, swept_value
from nodes.evaluation.trials import Result
from nodes.plotting.figure import Axes, Figure
from nodes.report.run import read_run
from nodes.statistics.paired import wilson

COLOURS = {
    "A": "#1f6f8b", "B+": "#c8553d", "C": "#588157", "B": "#7d5ba6", "B++": "#b08900", "D": "#495057", "O": "#adb5bd",
}  # fmt: skip
OTHERS = "#212529"
REACTIONS = (("act after retraction", "act_s", "retraction"), ("rest after stop", "rest_s", "stop"),
             ("act after revision", "act_s", "revision"), ("act after burst", "act_s", "burst"))  # fmt: skip
HARMFUL = tuple(f"{kind}-{moment}" for kind in ("retraction", "revision") for moment in shipped().moments)
TOUCHED = ("hand", "foot")
"""The controls in which a person's body is in the way."""
BEFORE_S, AFTER_S = 2.0, 12.0
DPI = 110
LEGEND_INCH = 0.25
LABEL_S, LABEL_LETTERS = 2.6, 38
"""As wide is the longest label of what happened."""
TIMES_S = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
LINEAR_S, LONGEST_S = 0.1, 20.0
"""The axis of reaction times is linear up to there, then by powers of ten."""
DASHES = ("-", (0, (5, 2)), (0, (2, 2)), (0, (6, 2, 1, 2)), (0, (1, 1)))
"""Arms that react alike lie on each other: the later ones are thinner, and let the earlier ones through."""


def arm_of(variant: str) -> str:
    """The arm of a variant's name."""
    return variant.rpartition("-")[0]


def regime_of(variant: str) -> str:
    """The latencies of a variant's name."""
    return variant.rpartition("-")[2]


def reactions(results: Sequence[Result], regime: str) -> bytes | None:
    """For each reaction the share of runs in which it had come by then, a line for each arm; PNG, None without any."""
    arms = _by_arm(results, regime)
    told = [
        (title, measure, kind)
        for title, measure, kind in REACTIONS
        if any(of_kind(kind)(one.trial.task) for mine in arms.values() for one in mine)
    ]
    if not told:
        return None
    rows = (len(told) + 1) // 2
    figure = Figure(figsize=(11, 3.2 * rows))
    for number, (title, measure, kind) in enumerate(told, 1):
        axes = figure.add_subplot(rows, min(len(told), 2), number)
        for place, (arm, mine) in enumerate(arms.items()):
            runs = [one for one in mine if of_kind(kind)(one.trial.task)]
            if not runs:
                continue
            times = sorted(value for one in runs if (value := value_of(one, measure)) is not None)
            shares = [(number + 1) / len(runs) for number in range(len(times))]
            axes.step(
                [0.0, *times, LONGEST_S], [0.0, *shares, len(times) / len(runs)], where="post", label=arm,
                color=COLOURS.get(arm, OTHERS), linewidth=max(1.5, 3.5 - 0.5 * place),
                linestyle=DASHES[place % len(DASHES)],
            )  # fmt: skip
        _plain(axes, title, "s after the word", "share of runs")
        axes.set_xscale("symlog", linthresh=LINEAR_S, linscale=0.5)
        axes.set_xticks(TIMES_S, [f"{at_s:g}" for at_s in TIMES_S])
        axes.set(xlim=(0, LONGEST_S), ylim=(0, 1.02))
    return _png(figure)


def harms(results: Sequence[Result], regime: str) -> bytes | None:
    """What was measured of harm: shares of runs by scenario and arm, with Wilson's 95 % intervals; and the impulse on a
    hand or a foot in each run. PNG, or None without any."""
    arms = _by_arm(results, regime)
    harmed, touched = ({(arm, task): [value for one in mine if one.trial.task == task
                                      if (value := value_of(one, measure)) is not None]
                        for arm, mine in arms.items() for task in tasks}
                       for measure, tasks in (("is_harm", HARMFUL), ("impulse_n_s", TOUCHED)))  # fmt: skip
    panels = [one for one in ((harmed, HARMFUL), (touched, TOUCHED)) if any(one[0].values())]
    if not panels:
        return None
    figure = Figure(figsize=(11, 3.6))
    grid = figure.subplots(1, len(panels), width_ratios=[len(tasks) for _, tasks in panels], squeeze=False)
    for axes, (values_of, tasks) in zip(grid[0], panels, strict=True):
        for (arm, task), values in values_of.items():
            x = tasks.index(task) + _beside(list(arms).index(arm), len(arms))
            colour = COLOURS.get(arm, OTHERS)
            if values and values_of is harmed:
                axes.plot([x, x], wilson(int(sum(values)), len(values)), color=colour, linewidth=5, alpha=0.3)
                axes.plot(x, sum(values) / len(values), "o", color=colour, markersize=7, label=arm)
            elif values:
                axes.plot([x] * len(values), values, "o", color=colour, markersize=7, alpha=0.6, label=arm)
        if values_of is harmed:
            _plain(axes, "runs with harm, and 95 % intervals", "", "share of runs")
            axes.set_ylim(-0.03, 1.03)
        else:
            _plain(axes, "contact impulse, each run", "", "N s")
            axes.set_ylim(-0.03 * axes.get_ylim()[1], None)
        axes.set_xticks(range(len(tasks)), [task.replace("-", "\n") for task in tasks])
        axes.set_xlim(-0.5, len(tasks) - 0.5)
    return _png(figure)


def _beside(place: int, arms: int) -> float:
    """How far from the middle of a group of so many arms this one stands; groups are 1 apart."""
    return (place - (arms - 1) / 2) * min(0.16, 0.8 / arms)


def sweep(results: Sequence[Result], who: str) -> bytes | None:
    """Reaction and success against what was swept, a line for each arm; PNG, or None where nothing was."""
    places: dict[str, float] = {}
    for regime in dict.fromkeys(regime_of(one.trial.variant) for one in results):
        swept = swept_value(regime)
        if swept is not None and swept[0] == who:
            places[regime] = swept[1]
    if not places:
        return None
    if who == "planner":
        places |= {name: p50 for name, ((p50, _), _) in REGIMES.items() if name == "cloud"}
    figure = Figure(figsize=(11, 3.8))
    left, right = figure.subplots(1, 2)
    arms = dict.fromkeys(arm_of(one.trial.variant) for one in results)
    for arm in arms:
        points = []
        for regime, x in sorted(places.items(), key=lambda item: item[1]):
            mine = [
                one for one in results if one.trial.variant == f"{arm}-{regime}" and one.trial.task.startswith("retr")
            ]
            times = [value for one in mine if (value := value_of(one, "act_s")) is not None]
            if mine and times:
                share = sum(bool(one.is_success) for one in mine) / len(mine)
                points.append((x, median(times), quantile(times, 0.9) or 0.0, share))
        if points:
            at, middle, high, shares = zip(*points, strict=True)
            left.plot(at, middle, "o-", color=COLOURS.get(arm, OTHERS), label=arm)
            left.fill_between(at, middle, high, color=COLOURS.get(arm, OTHERS), alpha=0.12, linewidth=0)
            right.plot(at, shares, "o-", color=COLOURS.get(arm, OTHERS))
    unit = "the planner's median latency, s" if who == "planner" else f"rate of the {who}, Hz"
    _plain(left, "act after retraction: median, and up to p90", unit, "s")
    _plain(right, "runs that succeeded", unit, "share")
    right.set_ylim(-0.03, 1.03)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xticks(list(places.values()), [f"{value:g}" for value in places.values()])
        axes.minorticks_off()
    return _png(figure)


def side_by_side(episodes: Mapping[str, Path]) -> bytes:
    """One scenario and seed in several arms: how far the gripper is from its old goal, and what happened; PNG."""
    figure = Figure(figsize=(11, 1.0 + 1.9 * len(episodes)))
    rows = figure.subplots(len(episodes), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (arm, recording) in zip(rows, episodes.items(), strict=True):
        run = read_run(recording)
        times, away = distances_to_goal(run)
        axes.plot(times, away, color=COLOURS.get(arm, OTHERS), linewidth=2)
        said = run.interruptions.messages[0]
        zero_ns = said.envelope.published_ns
        axes.axvline(0, color="#c42626", linewidth=1)
        for track, mark, height in (
            (run.actions, "action", 0.86),
            (run.subtasks, "plan", 0.66),
            (run.said, "says", 0.46),
        ):
            before, before_s, low = "", -math.inf, False
            for one in track.messages:
                text = one.message.text
                at_s = (one.envelope.published_ns - zero_ns) * 1e-9
                if text == before or not -BEFORE_S < at_s < AFTER_S:
                    continue
                low = at_s - before_s < LABEL_S and not low  # two that come close stand one below the other
                before, before_s = text, at_s
                axes.axvline(at_s, color="#9aa0a6", linewidth=0.5)
                axes.text(
                    at_s, height - 0.1 * low, f" {mark}: {text[:LABEL_LETTERS]}", fontsize=6.5, clip_on=True,
                    transform=axes.get_xaxis_transform(),
                )  # fmt: skip
        axes.set_ylabel(f"{arm}\nm", rotation=0, ha="right", va="center")
        axes.set(xlim=(-BEFORE_S, AFTER_S), ylim=(0, max([0.1, *away]) * 1.5))
        axes.spines[["top", "right"]].set_visible(False)
    rows[0].set_title(f"“{said.message.text}” at 0 s, {said.message.moment}: distance of the gripper to its old goal",
                      loc="left", fontsize=10)  # fmt: skip
    rows[-1].set_xlabel("s after the word")
    return _png(figure)


def _by_arm(results: Sequence[Result], regime: str) -> dict[str, list[Result]]:
    found: dict[str, list[Result]] = {}
    for one in results:
        if regime_of(one.trial.variant) == regime:
            found.setdefault(arm_of(one.trial.variant), []).append(one)
    return found


def _plain(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _png(figure: Figure) -> bytes:
    """With the arms named once, whichever axes have drawn them first."""
    drawn = {label: line for axes in figure.axes for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.tight_layout(rect=(0, 0, 1, 1 - LEGEND_INCH / figure.get_figheight() if drawn else 1))
    if drawn:
        figure.legend(list(drawn.values()), list(drawn), frameon=False, ncols=len(drawn), loc="upper right")
    data = BytesIO()
    figure.savefig(data, format="png", dpi=DPI, metadata={"Software": None})
    return data.getvalue()
