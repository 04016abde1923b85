"""An HTML page for a virtual run that failed: one row per topic over time, and where it left the run that passed.

It is one file with its drawing inside: no script, nothing loaded. It is made of the lines of a `MessageTrace`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from runtime.virtual.trace import first_difference

WIDTH_PX, NAME_PX, ROW_PX, TOP_PX = 1180, 170, 22, 46
MARKS = 1000
"""Most marks in a row; where there are more messages, those at one place share a mark."""
AROUND = 8
"""How many messages are shown before and after the first difference, and at the end."""

STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 24px; color: #1c2430; background: #fff; }
h1 { font-size: 20px; margin: 0 0 4px; } h2 { font-size: 15px; margin: 26px 0 6px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 14px; margin: 10px 0 20px; }
dt { color: #5b6675; } dd { margin: 0; white-space: pre-wrap; } code, td { font: 12px/1.5 ui-monospace, monospace; }
svg text { font: 12px system-ui, sans-serif; fill: #1c2430; } svg .axis { fill: #5b6675; }
table { border-collapse: collapse; width: 100%; } td { padding: 1px 8px 1px 0; vertical-align: top; }
td { white-space: nowrap; } td:last-child { white-space: normal; word-break: break-word; }
tr.parted td { background: #fdecea; } tr.was td { background: #eaf4ec; }
"""


@dataclass(frozen=True, slots=True)
class TimelineMessage:
    """One message of a trace."""

    time_s: float
    topic: str
    source: str
    text: str

    @classmethod
    def of(cls, line: str) -> TimelineMessage:
        """The message of one line of `MessageTrace.lines`."""
        time_text, ident, rest = line.split(" ", 2)
        topic, source, number = ident.rsplit(":", 2)
        content, _, text = rest.partition(" ")
        return cls(float(time_text), topic, f"{source} #{number}", text or f"arrays, hash {content}")


def page(title: str, facts: Sequence[tuple[str, str]], lines: Sequence[str], passed: Sequence[str] | None) -> str:
    """The page as HTML; `passed` are the lines of the last run that passed, None where none is known."""
    rows = [TimelineMessage.of(line) for line in lines]
    difference = first_difference(passed, lines) if passed is not None else None
    parted = difference[0] if difference is not None else None
    listed = "".join(f"<dt>{escape(name)}</dt><dd><code>{escape(value)}</code></dd>" for name, value in facts)
    parts = [f"<h1>{escape(title)}</h1><dl>{listed}</dl>", _drawing(rows, parted)]
    if difference is not None:
        number, was, _ = difference
        parts.append("<h2>Around the first message that differs (green: what the run that passed had there)</h2>")
        parts.append(_table(rows, max(0, number - AROUND), number + AROUND + 1, number, was))
    parts.append("<h2>The last messages</h2>")
    parts.append(_table(rows, max(0, len(rows) - 2 * AROUND), len(rows), parted, ""))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def _drawing(rows: Sequence[TimelineMessage], parted: int | None) -> str:
    """The topics in the order of their first message, the oldest on top."""
    topics = list(dict.fromkeys(row.topic for row in rows))
    if not topics:
        return "<p>No message was published.</p>"
    end_s = max(row.time_s for row in rows) or 1.0
    across = WIDTH_PX - NAME_PX - 20
    height = TOP_PX + ROW_PX * len(topics)

    def x(time_s: float) -> float:
        return NAME_PX + across * time_s / end_s

    drawn = [
        f'<svg viewBox="0 0 {WIDTH_PX} {height + 6}" width="100%" role="img" aria-label="messages by topic over time">'
    ]
    step_s = _step_s(end_s)
    for number in range(int(end_s / step_s) + 1):
        time_s = number * step_s
        drawn.append(
            f'<line x1="{x(time_s):.1f}" x2="{x(time_s):.1f}" y1="{TOP_PX - 6}" y2="{height}" stroke="#e6e9ee"/>'
        )
        drawn.append(f'<text class="axis" x="{x(time_s):.1f}" y="16" text-anchor="middle">{time_s:.4g} s</text>')
    for place, topic in enumerate(topics):
        y = TOP_PX + ROW_PX * place
        drawn.append(f'<text x="{NAME_PX - 12}" y="{y + 15}" text-anchor="end">{escape(topic)}</text>')
        drawn.extend(_marks([row for row in rows if row.topic == topic], end_s, y, across))
    if parted is not None:
        # A run that ended early parts at its end.
        time_s = rows[min(parted, len(rows) - 1)].time_s
        row_y = TOP_PX + ROW_PX * topics.index(rows[min(parted, len(rows) - 1)].topic)
        drawn.append(
            f'<line x1="{x(time_s):.1f}" x2="{x(time_s):.1f}" y1="{TOP_PX - 8}" y2="{height}" stroke="#c0392b" '
            'stroke-width="1.5" stroke-dasharray="5 3"/>'
        )
        drawn.append(
            f'<circle cx="{x(time_s):.1f}" cy="{row_y + ROW_PX / 2}" r="6" fill="none" stroke="#c0392b" '
            f'stroke-width="2"><title>here it left the run that passed: {time_s:.6f} s</title></circle>'
        )
        side = "end" if time_s > end_s / 2 else "start"
        shift = -6 if side == "end" else 6
        drawn.append(
            f'<text x="{x(time_s) + shift:.1f}" y="{TOP_PX - 6}" text-anchor="{side}" style="fill:#c0392b">'
            f"first difference, {time_s:.3f} s</text>"
        )
    return "".join([*drawn, "</svg>"])


def _step_s(end_s: float) -> float:
    """Between the lines of the time axis: 1, 2 or 5 times a power of ten, for at most ten of them."""
    power: float = 10.0 ** math.floor(math.log10(end_s))
    return next(step for step in (0.1 * power, 0.2 * power, 0.5 * power, power) if end_s / step <= 10)


def _marks(rows: Sequence[TimelineMessage], end_s: float, y: int, across: int) -> list[str]:
    """A mark for each message, or for all messages of one place; the words are in its title."""
    places: dict[int, list[TimelineMessage]] = {}
    for row in rows:
        places.setdefault(int(row.time_s / end_s * MARKS), []).append(row)
    most = max(len(together) for together in places.values())
    marks = []
    for place, together in places.items():
        tall = 6 + 10 * len(together) / most
        first = together[0]
        words = f"{first.time_s:.6f} s from {first.source} {first.text}"
        if len(together) > 1:
            words = f"{len(together)} messages from {first.time_s:.6f} to {together[-1].time_s:.6f} s"
        marks.append(
            f'<rect x="{NAME_PX + across * place / MARKS - 0.75:.1f}" y="{y + 11 - tall / 2:.1f}" width="1.5" '
            f'height="{tall:.1f}" fill="#2f6fb3"><title>{escape(words)}</title></rect>'
        )
    return marks


def _table(rows: Sequence[TimelineMessage], start: int, end: int, parted: int | None, was: str) -> str:
    """Messages as a table; where the run parted, first what the other one had there."""
    cells = []
    last = min(end, len(rows))
    if parted is not None and was:
        last = max(last, parted + 1)
    for number in range(start, last):
        if number == parted and was:
            cells.append(_cells("was", number, TimelineMessage.of(was)))
        if number < len(rows):
            cells.append(_cells("parted" if number == parted else "", number, rows[number]))
        else:
            cells.append('<tr class="parted"><td></td><td></td><td colspan="3">(the failed run ended before)</td></tr>')
    return f"<table>{''.join(cells)}</table>"


def _cells(kind: str, number: int, row: TimelineMessage) -> str:
    return (
        f'<tr class="{kind}"><td>{number + 1}</td><td>{row.time_s:.6f} s</td><td>{escape(row.topic)}</td>'
        f"<td>{escape(row.source)}</td><td>{escape(row.text)}</td></tr>"
    )
