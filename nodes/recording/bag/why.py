"""`polyrhythm bag why --at T`: what led to the robot's command at that time, as text and as a picture."""

from __future__ import annotations

import argparse
import json
import textwrap
from dataclasses import asdict
from pathlib import Path

from nodes.recording.bag.causes import CausalStep, CausalTrace, trace
from nodes.recording.bag.recording import Recording, add_recording, check_picture, tell_damage
from runtime.errors import UserError
from runtime.supervision.view import plain, terminal_width

_WIDTH = 100
_NARROWEST = 16
LATEST_S = 1e9
"""Of run time: 30 years."""


def describe(found: CausalTrace, columns: int | None = None) -> str:
    """The trace as lines of text, as wide as that many columns allow; the texts go on below themselves."""
    width = max(len(step.topic) for step in (*found.steps, *found.inputs))
    lines = [f"why {found.command} at {found.at_s:.3f} s:", ""]
    before: CausalStep | None = None
    for step in found.steps:
        later = f"+{step.at_s - before.at_s:.3f} s" if before is not None else ""
        lines.append(_line(f"{step.at_s:9.3f} s  {later:>10}  {step.topic:{width}}  ", _short(step.text), columns))
        detail = "; ".join(part for part in (step.how, step.provenance) if part)
        said = f"{step.ident}: {step.age_s:.3f} s old" + (f"; {detail}" if detail else "")
        lines.append(_line(" " * (width + 27), said, columns))
        before = step
    if found.inputs:
        lines += ["", "also read on the way:"]
        for step in found.inputs:
            lines.append(
                _line(f"{step.at_s:9.3f} s  {step.age_s:8.3f} s old  ", f"{step.ident}  ({step.how})", columns)
            )
    if not found.has_journal:
        lines += ["", "! this recording has no journal of handler calls: the newest messages of that time stand in"]
    if found.begins_s > 0:
        lines += ["", f"! this recording begins at {found.begins_s:.3f} s of its run: what came before is not in it"]
    if found.ends_s is not None:
        lines += ["", f"! this recording ends at {found.ends_s:.3f} s, before the moment asked for"]
    return "\n".join(lines)


def _line(before: str, text: str, columns: int | None) -> str:
    if columns is None or len(before) + len(text) <= columns:
        return before + text
    if columns - len(before) < _NARROWEST:  # a long topic in a narrow window: a word a line is worse than a break
        return before + text
    return textwrap.fill(
        text, columns, initial_indent=before, subsequent_indent=" " * len(before), break_on_hyphens=False
    )


def _short(text: str) -> str:
    text = plain(text)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


def main(argv: list[str]) -> int:
    """`polyrhythm bag why`: 0, or 1 where the recording has no command then, or a chunk of it was left out."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm bag why",
        description="What led to the robot's command at a point of run time: utterance, plan, action, command, "
        "with times and ages.",
        epilog="example: polyrhythm bag why run.mcap --at 12.31 --png why.png",
    )
    add_recording(parser)
    parser.add_argument("--at", type=float, required=True, metavar="S", help="run time in seconds")
    parser.add_argument(
        "--topic", default="robot/command", help="whose last message is explained; default: %(default)s"
    )
    parser.add_argument("--png", type=Path, metavar="FILE", help="draw it, too")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    asked = parser.parse_args(argv)
    if not abs(asked.at) < LATEST_S:
        raise UserError(f"--at {asked.at}: expected a run time in seconds")
    check_picture(asked.png, "--png")
    recording = Recording(asked.recording)
    found = trace(recording, asked.at, asked.topic)
    print(json.dumps(asdict(found)) if asked.json else describe(found, terminal_width()))
    if asked.png is not None:
        draw(found, asked.png)
    return tell_damage(recording)


_COLOURS = {
    "heard": "#c2410c", "interrupt": "#b91c1c", "subtask": "#7c3aed", "action": "#2563eb", "chunk": "#0e7490",
    "command": "#15803d", "robot/command": "#111827",
}  # fmt: skip
_LONGEST = 76


def draw(found: CausalTrace, path: Path) -> None:
    """Write the picture as a PNG."""
    from nodes.plotting.figure import Figure

    rows = [*found.steps]
    inputs = [step for step in found.inputs if step.age_s <= max(2.0, rows[-1].at_s - rows[0].at_s)][-8:]
    figure = Figure(figsize=(12, 1.4 + 0.55 * (len(rows) + len(inputs))), layout="constrained")
    axes = figure.add_subplot()
    first_s, last_s = min(step.at_s for step in rows), found.at_s
    span_s = max(last_s - first_s, 0.2)
    for row, step in enumerate(rows):
        colour = _COLOURS.get(step.topic, "#374151")
        axes.plot(step.at_s, -row, "o", color=colour, markersize=9)
        text = step.text if len(step.text) <= _LONGEST else f"{step.text[: _LONGEST - 3]}..."
        is_right = step.at_s > first_s + 0.5 * span_s
        axes.annotate(
            f"{text}   ({step.age_s:.3f} s old)", (step.at_s, -row), xytext=(-12 if is_right else 12, 0),
            textcoords="offset points", ha="right" if is_right else "left", va="center", color=colour, fontsize=9,
        )  # fmt: skip
        if row:
            before = rows[row - 1]
            axes.annotate(
                "", (step.at_s, -row + 0.16), xytext=(before.at_s, -row + 1 - 0.16),
                arrowprops={"arrowstyle": "->", "color": "#9ca3af"},
            )  # fmt: skip
    for offset, step in enumerate(inputs):
        axes.plot(step.at_s, -len(rows) - offset, "s", color="#9ca3af", markersize=6)
    axes.set_yticks(
        [-row for row in range(len(rows) + len(inputs))],
        [step.topic for step in rows] + [step.topic for step in inputs],
    )
    axes.set_xlim(first_s - 0.05 * span_s, last_s + 0.05 * span_s)
    axes.set_ylim(-len(rows) - len(inputs) + 0.4, 0.6)
    axes.set_xlabel("run time, s")
    axes.set_title(f"Why {found.command} at {found.at_s:.3f} s (grey: also read on the way)", fontsize=10, loc="left")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="x", color="#e5e7eb")
    axes.set_axisbelow(True)
    figure.savefig(path, dpi=110)
