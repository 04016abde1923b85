"""The timeline: who said and did what when, over the whole run, and the policies' rates in a close-up."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nodes.msgs import Utterance
from nodes.plotting.figure import Axes, Figure, settings
from nodes.report.actions import action_spans
from nodes.report.interrupt_outcomes import stop_times
from nodes.report.run import Run, TopicMessages

INK = "#202124"
FAINT = "#8a8d93"
MODES = {
    "disarmed": "#d7d9de", "armed": "#bccbe3", "moving": "#8fc7a3", "holding": "#f0d58c", "retreating": "#c9a7d8",
    "stopped": "#dd8080", "estopped": "#b34747",
}  # fmt: skip
SKILLS = {"pick": "#7d9fd1", "place": "#a58fcb", "hand_over": "#c98fb4", "look": "#c9ccd3", "hold": "#e0c37e"}
DEPTHS = {"amend": "#c47814", "replan": "#2d5faf", "stop": "#c42626", "resume": "#26824a", "hold": "#8a8a8a"}
RATES = (("planner", "subtask", "#2d5faf"), ("VLM", "description", "#7a5bb0"), ("policy", "command", "#26824a"))
MOST_ROWS = 9
"""In which sentences stand below each other, so that none runs into another."""
LANES: dict[str, str] = {"planner": "planner", "vlm": "VLM", "policy": "policy"}
PERSON = "#ffc857"
LETTERS = 58
"""Of a line of speech; what is longer goes on below, over so many lines at most."""
MOST_LINES = 4
CLOSE_UP_S = 6.0
ROW = 0.72
CHARACTER = 0.0044  # width of a small letter, of the axes' width

Span = tuple[float, float]


def draw_timeline(run: Run, path: Path) -> None:
    """Write the timeline as a PNG."""
    with settings({"font.family": "DejaVu Sans", "font.size": 9, "axes.edgecolor": FAINT}):
        figure = Figure(figsize=(16, 9), dpi=110, facecolor="white")
        grid = figure.add_gridspec(
            2, 1, height_ratios=(5.2, 1.5), hspace=0.22, left=0.08, right=0.985, top=0.93, bottom=0.06
        )
        _whole(figure.add_subplot(grid[0]), run)
        _close_up(figure.add_subplot(grid[1]), run)
        figure.suptitle(_title(run), x=0.08, y=0.975, ha="left", fontsize=13, fontweight="bold", color=INK)
        figure.savefig(path, metadata={"Software": None})


def _title(run: Run) -> str:
    is_success, reason = run.outcome
    word = {True: "Success", False: "Failed", None: "Ended"}[is_success]
    return f"{word} after {run.end_s:.0f} s{': ' if reason else ''}{reason}"


def _whole(axes: Axes, run: Run) -> None:
    length_s = max(run.duration_s, 1.0)
    lanes = ["person", "robot", "plan", "action", "interrupt", "guard", *(name for name, _, _ in RATES)]
    talk = {"person": _speech_of(run.heard, run, length_s), "robot": _speech_of(run.said, run, length_s)}
    height = {
        name: 0.45 + ROW * max((one.row + len(one.lines) for one in texts), default=1) for name, texts in talk.items()
    }
    height |= {"plan": 1.5, "action": 1.5, "interrupt": 1.4, "planner": 0.7, "VLM": 0.7, "policy": 0.7}
    top, centre = 0.0, {}
    for lane in lanes:
        size = height.get(lane, 1.0)
        centre[lane] = top - size / 2
        top -= size
        axes.axhline(top, color="#ececee", lw=0.8, zorder=0)
    axes.set(xlim=(run.begin_s, run.begin_s + length_s), ylim=(top, 0))
    axes.set_yticks(list(centre.values()), list(centre), color=INK, fontsize=10)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", colors=FAINT)
    axes.set_xlabel("run time, s", color=FAINT, loc="right", labelpad=-2)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)

    for stop in stops(run):
        axes.axvspan(*stop, color="#c42626", alpha=0.09, lw=0, zorder=0)
    for name, colour in (("person", "#2d5faf"), ("robot", "#4a4e57")):
        _speech(axes, talk[name], centre[name] + (height[name] - 0.45 - ROW) / 2, colour)
    _plans(axes, run, length_s, centre["plan"])
    _actions(axes, run, length_s, centre["action"])
    _interrupts(axes, run, centre["interrupt"], top)
    _modes(axes, run, centre["guard"])
    for name, topic, colour in RATES:
        _ticks(axes, run, topic, centre[name], 0.23, colour, 0.6)
    for seat, (start_s, end_s) in seated(run):
        _person(axes, (start_s, end_s), centre[LANES[seat]], length_s)


def seated(run: Run) -> list[tuple[str, Span]]:
    """Which seat a person held, and when, in run time."""
    found: list[tuple[str, Span]] = []
    since_s: dict[str, float] = {}
    for one in run.leases.messages:
        seat, at_s = one.message.seat, run.at_s(one.envelope.published_ns)
        if one.message.kind == "person":
            since_s.setdefault(seat, at_s)
        elif seat in since_s:
            found.append((seat, (since_s.pop(seat), at_s)))
    return found + [(seat, (at_s, run.end_s)) for seat, at_s in since_s.items()]


def _person(axes: Axes, span: Span, centre: float, length_s: float) -> None:
    """A person on a seat, above what was said from it."""
    start_s, end_s = span
    axes.broken_barh([(start_s, end_s - start_s)], (centre + 0.2, 0.14), color=PERSON, lw=0, zorder=5)
    if end_s - start_s > 9 * CHARACTER * length_s:
        axes.text(
            start_s + CHARACTER * length_s, centre - 0.02, "a person", color=INK, fontsize=7.5, va="center", zorder=6,
            bbox={"boxstyle": "round,pad=0.15", "fc": PERSON, "ec": "none"},
        )  # fmt: skip


def stops(run: Run) -> list[Span]:
    """From each stop heard to the robot's release, or to the end, in run time."""
    found = []
    for interrupt in run.interrupts.messages:
        times = stop_times(run, interrupt)
        if times.held_ms is not None:
            since_s = run.at_s(interrupt.envelope.begun_ns("utterance"))
            found.append((since_s, run.end_s if times.resumed_s is None else since_s + times.resumed_s))
    return _merged(found)


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


@dataclass(frozen=True, slots=True)
class Spoken:
    """A sentence and the row of its lane that it begins in."""

    at_s: float
    lines: Sequence[str]
    is_left: bool  # of its point, where there is no room on its right
    row: int


def _speech_of(track: TopicMessages[Utterance], run: Run, length_s: float) -> list[Spoken]:
    starts = [run.at_s(one.envelope.published_ns) for one in track.messages]
    texts = [textwrap.wrap(one.message.text, LETTERS, max_lines=MOST_LINES, placeholder="…") for one in track.messages]
    widths = [(max(map(len, lines), default=0) + 3) * CHARACTER * length_s for lines in texts]
    lefts = [at_s + width_s > run.begin_s + length_s for at_s, width_s in zip(starts, widths, strict=True)]
    spans = [
        (at_s - width_s, at_s) if is_left else (at_s, at_s + width_s)
        for at_s, width_s, is_left in zip(starts, widths, lefts, strict=True)
    ]
    chosen = rows(spans, MOST_ROWS, [len(lines) for lines in texts])
    return [Spoken(*one) for one in zip(starts, texts, lefts, chosen, strict=True)]


def _speech(axes: Axes, texts: Sequence[Spoken], top_row: float, colour: str) -> None:
    for one in texts:
        axes.plot([one.at_s], [top_row - ROW * one.row], marker="o", ms=4.5, color=colour, zorder=4)
        for number, line in enumerate(one.lines):
            axes.annotate(
                line, (one.at_s, top_row - ROW * (one.row + number)),
                xytext=(-6 if one.is_left else 6, 0), textcoords="offset points",
                ha="right" if one.is_left else "left", va="center", color=colour, fontsize=8.5, zorder=4,
                bbox={"boxstyle": "round,pad=0.2", "fc": "white", "ec": "none", "alpha": 0.8},
            )  # fmt: skip


def rows(spans: Sequence[Span], number: int, sizes: Sequence[int] = ()) -> list[int]:
    """The first row of each span, of so many rows (default: one), so that none runs into another where it fits."""
    taken: list[list[Span]] = [[] for _ in range(number)]
    chosen = []
    for (start, end), size in zip(spans, sizes or [1] * len(spans), strict=True):
        free = [all(end < a or b < start for a, b in row) for row in taken]
        last = max(0, number - size)
        row = next((index for index in range(last) if all(free[index : index + size])), last)
        for one in taken[row : row + size]:
            one.append((start, end))
        chosen.append(row)
    return chosen


def _plans(axes: Axes, run: Run, length_s: float, centre: float) -> None:
    merged: list[tuple[float, str]] = []
    for one in run.subtasks.messages:
        if not merged or merged[-1][1] != one.message.text:
            merged.append((run.at_s(one.envelope.published_ns), one.message.text))
    for index, (start_s, text) in enumerate(merged):
        end_s = merged[index + 1][0] if index + 1 < len(merged) else run.end_s
        _bar(axes, (start_s, end_s), centre, 0.42, "#dbe5f4", text, length_s, "#9db6dc")


def _actions(axes: Axes, run: Run, length_s: float, centre: float) -> None:
    marks = {"success": ("✓", "#26824a"), "failure": ("✗", "#c42626"), "asked": ("?", "#8a6d1f")}
    for one in action_spans(run):
        span = run.at_s(one.start_ns), run.at_s(one.end_ns)
        _bar(axes, span, centre, 0.42, SKILLS.get(one.skill, "#c9ccd3"), one.text, length_s, "white")
        if one.end in marks:
            mark, colour = marks[one.end]
            axes.text(
                span[1], centre + 0.58, mark, color=colour, ha="center", va="center", fontsize=10, fontweight="bold"
            )


def _interrupts(axes: Axes, run: Run, centre: float, bottom: float) -> None:
    starts = [run.at_s(one.envelope.published_ns) for one in run.interrupts.messages]
    width_s = 9 * CHARACTER * max(run.duration_s, 1.0)
    chosen = rows([(at_s, at_s + width_s) for at_s in starts], 2)
    for one, at_s, row in zip(run.interrupts.messages, starts, chosen, strict=True):
        depth, y = one.message.depth, centre + (0.3, -0.3)[row]
        colour = DEPTHS[depth]
        axes.plot([at_s, at_s], [bottom, 0], color=colour, lw=0.9, ls=(0, (4, 3)), zorder=1)
        axes.plot([at_s], [y], marker="D", ms=6, color=colour, zorder=5)
        axes.annotate(
            depth, (at_s, y), xytext=(7, 0), textcoords="offset points", va="center", color=colour, fontsize=9,
            fontweight="bold", zorder=5,
        )  # fmt: skip


def _modes(axes: Axes, run: Run, centre: float) -> None:
    for (start_s, end_s), mode in mode_spans(run):
        axes.barh(centre, end_s - start_s, 0.62, left=start_s, color=MODES.get(mode, "#d7d9de"), lw=0, zorder=2)
        if end_s - start_s > 0.012 * run.duration_s * len(mode) * 0.6:
            axes.text((start_s + end_s) / 2, centre, mode, ha="center", va="center", fontsize=8.5, color=INK, zorder=3)


def mode_spans(run: Run) -> list[tuple[Span, str]]:
    """The guard's modes in run time, each as long as it lasted."""
    found: list[tuple[Span, str]] = []
    for one in run.guard.messages:
        at_s, mode = run.at_s(one.envelope.published_ns), one.message.mode
        if found and found[-1][1] == mode:
            continue
        if found:
            found[-1] = ((found[-1][0][0], at_s), found[-1][1])
        found.append(((at_s, run.end_s), mode))
    return found


def _ticks(axes: Axes, run: Run, topic: str, centre: float, half: float, colour: str, width: float) -> None:
    stamps = run.stamps.get(topic, [])
    axes.vlines([run.at_s(ns) for ns in stamps], centre - half, centre + half, color=colour, lw=width, zorder=2)


def _close_up(axes: Axes, run: Run) -> None:
    """Some seconds around the first stop, or around the middle, with every single tick."""
    found = stops(run)
    middle_s = found[0][0] if found else (run.begin_s + run.end_s) / 2
    start_s = max(run.begin_s, min(middle_s - CLOSE_UP_S / 3, run.end_s - CLOSE_UP_S))
    end_s = start_s + CLOSE_UP_S
    lanes = [*RATES, ("guard", "robot/command", "#4a4e57")]
    for index, (_, topic, colour) in enumerate(lanes):
        _ticks(axes, run, topic, -index, 0.33, colour, 1.6)
    names = [
        f"{name}  {_hz(run.stamps.get(topic, []), run.start_ns + start_s * 1e9, run.start_ns + end_s * 1e9):.2g} Hz"
        for name, topic, _ in lanes
    ]
    axes.set(xlim=(start_s, end_s), ylim=(-len(lanes) + 0.45, 0.6))
    axes.set_yticks([-index for index in range(len(lanes))], names, color=INK)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", colors=FAINT)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    for stop in found:
        axes.axvspan(*stop, color="#c42626", alpha=0.09, lw=0, zorder=0)
    _name_interrupts(axes, run, (start_s, end_s))
    axes.set_title(f"{CLOSE_UP_S:.0f} s close up: every message", loc="left", fontsize=9, color=FAINT)


def _name_interrupts(axes: Axes, run: Run, shown: Span) -> None:
    """A line at each interrupt, with its text above; those that fall together share one."""
    together: list[tuple[float, str, list[str]]] = []
    for one in run.interrupts.messages:
        at_s = run.at_s(one.envelope.begun_ns("utterance"))
        if not shown[0] <= at_s <= shown[1]:
            continue
        axes.axvline(at_s, color=DEPTHS[one.message.depth], lw=1.2)
        times = stop_times(run, one)
        text = one.message.text
        if times.is_cause and times.held_ms is not None:
            rest = "" if times.at_rest_ms is None else f", at rest after {times.at_rest_ms:.0f}"
            text += f" (held after {times.held_ms:.0f} ms{rest})"
        if together and at_s - together[-1][0] < 0.5:
            together[-1][2].append(text)
        else:
            together.append((at_s, DEPTHS[one.message.depth], [text]))
    for at_s, colour, texts in together:
        is_left = at_s > shown[1] - CLOSE_UP_S / 5
        axes.text(
            at_s, 0.64, "  ·  ".join(texts), color=colour, fontsize=8.5, va="bottom", ha="right" if is_left else "left"
        )  # fmt: skip


def _hz(stamps: Iterable[int], start_ns: float, end_ns: float) -> float:
    return sum(start_ns <= ns < end_ns for ns in stamps) * 1e9 / (end_ns - start_ns)


def _bar(
    axes: Axes, span: Span, centre: float, half: float, colour: str, text: str, length_s: float, edge: str
) -> None:
    width_s = max(span[1] - span[0], length_s * 0.0015)
    axes.barh(centre, width_s, 2 * half, left=span[0], color=colour, edgecolor=edge, lw=0.8, zorder=2)
    room = int(width_s / (CHARACTER * length_s))
    lines = _folded(text, room, 2)
    if lines:
        axes.text(
            span[0] + 0.004 * length_s, centre, "\n".join(lines), ha="left", va="center", fontsize=8, color=INK,
            zorder=3, linespacing=1.05, clip_on=True,
        )  # fmt: skip


def _folded(text: str, room: int, lines: int) -> list[str]:
    """The text in so many lines of so many letters, cut short where needed; nothing where no word fits."""
    found: list[str] = []
    rest = text.split()
    while rest and len(found) < lines:
        line = ""
        while rest and len(line) + len(rest[0]) + bool(line) <= room:
            line = f"{line} {rest.pop(0)}".strip()
        if not line:
            break
        found.append(line)
    if not found:
        return []
    if rest:
        found[-1] = f"{found[-1][: max(1, room - 1)]}…"
    return found
