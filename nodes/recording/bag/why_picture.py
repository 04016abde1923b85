"""A causal trace as a picture: one row for each step, time from left to right, arrows from cause to effect."""

from __future__ import annotations

from pathlib import Path

from nodes.recording.bag.causes import CausalTrace

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
