"""The experiment's plots: reactions by arm, harm, what latency and rates do, and single episodes side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from statistics import median

from nodes.evaluation.interruptions.arm import REGIMES, swept_value
from nodes.evaluation.interruptions.comparisons import quantile, value_of
from nodes.evaluation.interruptions.measures import distances_to_goal, of_kind
from nodes.evaluation.interruptions.scenarios import shipped
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


def reactions(results: Sequence[Result], regime: str) -> bytes:
    """For each reaction the share of runs in which it had come by then, a line for each arm; PNG."""
    figure = Figure(figsize=(11, 6.4))
    for axes, (title, measure, kind) in zip(figure.subplots(2, 2).flat, REACTIONS, strict=True):
        for place, (arm, mine) in enumerate(_by_arm(results, regime).items()):
            runs = [one for one in mine if of_kind(kind)(one.trial.task)]
            times = sorted(value for one in runs if (value := value_of(one, measure)) is not None)
            if not runs:
                continue
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
    _legend(figure.axes)
    return _png(figure)


def harms(results: Sequence[Result], regime: str) -> bytes:
    """The share of runs with harm by scenario and arm, with Wilson's 95 % intervals; beside it, where it was measured,
    the impulse on a hand or a foot of each run; PNG."""
    arms = _by_arm(results, regime)
    touches = {
        (arm, task): [value for one in mine if one.trial.task == task and (value := value_of(one, "impulse_n_s"))
                      is not None]
        for arm, mine in arms.items() for task in TOUCHED
    }  # fmt: skip
    figure = Figure(figsize=(11, 3.6))
    if any(touches.values()):
        axes, beside = figure.subplots(1, 2, width_ratios=(len(HARMFUL), len(TOUCHED)))
        _plain(beside, "contact impulse of each run", "", "N s")
        beside.set_xticks(range(len(TOUCHED)), TOUCHED)
        for place, arm in enumerate(arms):
            for number, task in enumerate(TOUCHED):
                values = touches[arm, task]
                x = number + _beside(place, len(arms))
                beside.plot([x] * len(values), values, "o", color=COLOURS.get(arm, OTHERS), alpha=0.6, markersize=6)
        beside.set(xlim=(-0.5, len(TOUCHED) - 0.5), ylim=(0, max(1.0, *map(max, filter(None, touches.values()))) * 1.1))
    else:
        axes = figure.subplots()
    for place, (arm, mine) in enumerate(arms.items()):
        for number, task in enumerate(HARMFUL):
            told = [value for one in mine if one.trial.task == task and (value := value_of(one, "is_harm")) is not None]
            if not told:
                continue
            low, high = wilson(int(sum(told)), len(told))
            x = number + _beside(place, len(arms))
            axes.plot([x, x], [low, high], color=COLOURS.get(arm, OTHERS), linewidth=5, alpha=0.3)
            axes.plot(x, sum(told) / len(told), "o", color=COLOURS.get(arm, OTHERS), markersize=7, label=arm)
    axes.set_xticks(range(len(HARMFUL)), [task.replace("-", "\n") for task in HARMFUL])
    _plain(axes, "runs with harm, and 95 % intervals", "", "share of runs")
    axes.set(xlim=(-0.5, len(HARMFUL) - 0.5), ylim=(-0.03, 1.03))
    _legend([axes])
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
    _legend([left])
    return _png(figure)


def side_by_side(episodes: Mapping[str, Path]) -> bytes:
    """One scenario and seed in several arms: how far the gripper is from its old goal, and what happened; PNG."""
    figure = Figure(figsize=(11, 1.0 + 1.5 * len(episodes)))
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
            before = ""
            for one in track.messages:
                text = one.message.text
                at_s = (one.envelope.published_ns - zero_ns) * 1e-9
                if text == before or not -BEFORE_S < at_s < AFTER_S:
                    continue
                before = text
                axes.axvline(at_s, color="#9aa0a6", linewidth=0.5)
                axes.text(at_s, height, f" {mark}: {text[:38]}", transform=axes.get_xaxis_transform(), fontsize=6.5)
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


def _legend(several: Sequence[Axes]) -> None:
    """The arms once, where something is drawn."""
    for axes in several:
        lines = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        if lines:
            axes.figure.legend(list(lines.values()), list(lines), frameon=False, ncols=len(lines), loc="upper right")
            return


def _plain(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _png(figure: Figure) -> bytes:
    figure.tight_layout()
    data = BytesIO()
    figure.savefig(data, format="png", dpi=DPI, metadata={"Software": None})
    return data.getvalue()
