"""The experiment's report: one HTML file with tables, plots, episodes side by side, and pictures of each harm."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from pathlib import Path

from bench.interruptions.comparisons import compare, figures_of, table, value_of
from bench.interruptions.findings import falsifier_table, falsifiers, secondaries, secondary_table
from bench.interruptions.plots import arm_of, harms, reactions, regime_of, side_by_side, sweep
from bench.interruptions.scenarios import shipped
from nodes.evaluation.arms import swept_value
from nodes.evaluation.trials import Result
from nodes.report.contact_sheet import draw_strip
from nodes.report.run import read_run
from runtime.command_line.arguments import unique_path

REPORT_FILE = "report.html"
LOOKS_S = (-1.0, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Of a harm's pictures: when, beside the word."""
SWEPT = ("planner", "vlm", "policy")
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#202124}"
    "div{overflow-x:auto}table{border-collapse:collapse;margin:1em 0}"
    "td,th{padding:.25em .7em;border-bottom:1px solid #ddd;text-align:left;font-variant-numeric:tabular-nums}"
    "img{max-width:100%}summary{cursor:pointer;margin:1em 0}"
)
HARMS = {"is_wrong_lifted": "lifted", "is_wrong_binned": "in the bin", "is_knocked_over": "on the floor"}
"""What a harm is called, by its measure."""


def markdown(results: Sequence[Result], regime: str) -> str:
    """What would falsify the claim, the primary measures, and all others, of the runs under these latencies."""
    return "\n\n".join(_tables(results, regime))


def _tables(results: Sequence[Result], regime: str) -> tuple[str, str, str]:
    mine = [one for one in results if regime_of(one.trial.variant) == regime]
    comparisons = compare(mine)
    return (
        falsifier_table(falsifiers(mine, comparisons, regime)),
        table(figures_of(mine), comparisons),
        secondary_table(secondaries(mine)),
    )


def write_report(results: Sequence[Result], out: Path, sheets: Sequence[tuple[str, bytes]] = ()) -> Path:
    """The page in that folder, beside those that are there; `sheets` are titles and PNGs of harms. Raises OSError."""
    parts = ["<h1>Interrupting a moving robot</h1>", f"<p>{len(results)} runs.</p>"]
    for who in SWEPT:
        swept = sweep(results, who)
        if swept is not None:
            parts.append(f"<h2>The {who} swept</h2>{_picture(f'reaction and success, {who} swept', swept)}")
    regimes = dict.fromkeys(regime_of(one.trial.variant) for one in results)
    parts += [_of_regime(results, regime) for regime in sorted(regimes, key=lambda one: swept_value(one) is not None)]
    parts.append(_harms(harmful(results)))
    parts += [f"<h3>{html.escape(title)}</h3>{_picture(title, picture)}" for title, picture in sheets]
    broken = [one for one in results if one.has_broken or not one.measures.get("is_measured")]
    if broken:
        rows = "".join(f"<li>{html.escape(f'{one.trial.name}: {_why(one)}')}</li>" for one in broken)
        parts.append(f"<h2>Runs that could not be measured</h2><ul>{rows}</ul>")
    path = unique_path(out / REPORT_FILE)
    head = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Interruptions</title><style>{_STYLE}</style>"
    )
    path.write_text(head + "\n".join(parts) + "</html>\n", encoding="utf-8")
    return path


def _of_regime(results: Sequence[Result], regime: str) -> str:
    """What the claim stands on, the plots, the rest; folded up where it is part of a sweep."""
    falsified, primaries, others = _tables(results, regime)
    parts = [_as_html(falsified), _as_html(primaries)]
    for title, drawn in (("reactions by arm", reactions(results, regime)), ("harm by arm", harms(results, regime))):
        if drawn is not None:
            parts.append(_picture(title, drawn))
    parts += [_picture(title, picture) for title, picture in _episodes(results, regime)]
    parts.append(f"<h3>Every other measure</h3>{_as_html(others)}")
    name = html.escape(regime)
    if swept_value(regime) is not None:
        return f"<details><summary>{name}</summary>{''.join(parts)}</details>"
    return f"<h2>{name}</h2>{''.join(parts)}"


def _harms(harmed: Sequence[Result]) -> str:
    """Which runs did what harm, after which words."""
    if not harmed:
        return ""
    lines = ["| run | words | harm | in the end |"]
    for one in harmed:
        what = ", ".join(name for measure, name in HARMS.items() if one.measures.get(measure)) or "-"
        cells = (one.trial.name, str(one.measures.get("text", "")), what, one.reason)
        lines.append(f"| {' | '.join(cell.replace('|', '/') or '-' for cell in cells)} |")
    number, rows = f"{len(harmed)} run{'s' if len(harmed) > 1 else ''}", _as_html("\n".join(lines))
    return f"<h2>Each harm</h2><details><summary>{number}</summary>{rows}</details>"


def _why(one: Result) -> str:
    return one.reason if one.has_broken else str(one.measures.get("why_not") or one.reason)


def _episodes(results: Sequence[Result], regime: str) -> list[tuple[str, bytes]]:
    """Of each kind the episode in which A's reaction was its median, in all arms whose recording was kept."""
    found = []
    for kind in shipped().kinds:
        mine = sorted(
            (value, one.trial.task, one.trial.seed)
            for one in results
            if one.trial.variant == f"A-{regime}" and one.trial.task.startswith(f"{kind}-")
            if (value := value_of(one, "rest_s" if kind == "stop" else "act_s")) is not None
        )
        if not mine:
            continue
        _, task, seed = mine[len(mine) // 2]
        kept = {
            arm_of(one.trial.variant): Path(one.recording)
            for one in results
            if (one.trial.task, one.trial.seed) == (task, seed) and regime_of(one.trial.variant) == regime
            if one.recording and Path(one.recording).is_file()
        }
        if kept:
            found.append((f"{task}, seed {seed}", side_by_side(kept)))
    return found


def harmful(results: Sequence[Result]) -> list[Result]:
    """The runs with harm."""
    return [one for one in results if one.measures.get("is_harm") is True]


def harm_sheet(recording: Path) -> bytes | None:
    """What the head camera saw around the word of a run; PNG, or None where no image was recorded."""
    run = read_run(recording)
    if "head/image" not in run.image_topics or not run.interruptions.messages:
        return None
    zero_ns = run.interruptions.messages[0].envelope.published_ns
    stamps = {f"{at_s:+g} s": zero_ns + int(at_s * 1e9) for at_s in LOOKS_S}
    return draw_strip(run, "head/image", stamps)


def _picture(title: str, png: bytes) -> str:
    return f'<p><img alt="{html.escape(title)}" src="data:image/png;base64,{base64.b64encode(png).decode()}"></p>'


def _as_html(tables: str) -> str:
    """Tables of Markdown, which hold nothing but cells and **bold**; the first row of each is its head."""
    parts = []
    for block in tables.split("\n\n"):
        rows = [line.strip("| ").split(" | ") for line in block.splitlines() if not line.startswith("|---")]
        lines = [
            "".join(f"<{cell}>{_bold(text)}</{cell}>" for text in row)
            for row, cell in zip(rows, ["th", *["td"] * (len(rows) - 1)], strict=True)
        ]
        parts.append(f"<div><table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table></div>")
    return "".join(parts)


def _bold(cell: str) -> str:
    text = html.escape(cell.strip("* "))
    return f"<b>{text}</b>" if cell.strip().startswith("**") else text
