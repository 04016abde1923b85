"""A summary as tables for a terminal, readable at 80 columns."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from nodes.report.summary import InterruptSummary, Percentiles, Summary, WizardSummary
from runtime.supervision.view import plain

_BRAKES_S = 0.1
"""So long after a stop was heard the robot's commands certainly are those that brake."""

WIDEST = 100
NAME: Mapping[str, Any] = {"no_wrap": True}
RIGHT: Mapping[str, Any] = {"justify": "right"}
NUMBER: Mapping[str, Any] = {**RIGHT, **NAME}
REST: Mapping[str, Any] = {"ratio": 1}
"""Kinds of columns."""
_MET = {True: ("met", "green"), False: ("not met", "red"), None: ("too few to judge", "yellow")}


def print_summary(summary: Summary, console: Console | None = None) -> None:
    """Print the tables on the console, standard output by default."""
    console = _begun(summary, console or Console())
    console.print(_facts(summary))
    tables = (
        (summary.interrupts, _interrupts),
        (summary.paths, _paths),
        (summary.spending, _spending),
        (summary.timers, _timers),
        (summary.nodes, _nodes),
    )
    for rows, table in tables:
        if rows:
            console.print()
            console.print(table(summary))
    console.print()
    _end(summary, console)


def print_result(summary: Summary, console: Console | None = None) -> None:
    """What somebody wants to know who has just watched the run, and three commands that go on from there."""
    console = _begun(summary, console or Console())
    grid = _first_rows(summary, "")
    if summary.interrupts:
        grid.add_row("interrupts", _interrupters(summary))
    _add_stops(grid, summary)
    if summary.paths:
        grid.add_row("path budgets", ", ".join(f"{path.path} {_MET[path.is_met][0]}" for path in summary.paths))
    if ill := [node.node for node in summary.nodes if node.errors or node.starts > 1]:
        grid.add_row("with errors or restarts", Text(", ".join(ill), style="red"))
    console.print(grid)
    _end(summary, console)
    console.print()
    failed = summary.is_success is False or bool(summary.not_kept)
    console.print(Text("to find out why" if failed else "three things to try next", style="bold"))
    for command, does in _next(summary)[: 2 if failed else 3]:
        console.print(Text(f"  {command}"), soft_wrap=True)
        console.print(Text(f"      {does}", style="dim"))


def _begun(summary: Summary, console: Console) -> Console:
    """The console, with the headline on it."""
    console.width = min(console.width, WIDEST)
    console.print()
    console.print(_headline(summary))
    return console


def _end(summary: Summary, console: Console) -> None:
    """What may be wrong with the figures, and where everything lies."""
    for sentence in summary.damage:
        console.print(Text(f"damaged: {sentence}", style="yellow"))
    for sentence in summary.beyond_ranges:
        console.print(Text(plain(sentence), style="yellow"))
    console.print(_places(summary))


def _interrupters(summary: Summary) -> str:
    """How many there were of each depth, and by whom."""
    counted = Counter((one.depth, one.by) for one in summary.interrupts)
    return plain(", ".join(f"{number} {depth} by {by}" for (depth, by), number in counted.items()))


def _next(summary: Summary) -> list[tuple[str, str]]:
    program, recording = _program(), shlex.quote(_from_here(summary.recording))
    stop = next((one for one in summary.interrupts if one.is_cause), None)
    at_s = stop.at_s + _BRAKES_S if stop is not None else summary.duration_s / 2
    return [
        (f"{program} bag why {recording} --at {at_s:.1f}", "what led to the robot's command at that second"),
        (f"{program} report {recording}", "the whole summary: rates, ages, budgets, every interrupt and its effects"),
        (f"{program} new my_robot --with robot", "a project of your own: an arm behind its guard, and its test"),
    ]


def _program() -> str:
    """What to type for `polyrhythm` here: its environment need not be the active one."""
    if shutil.which("polyrhythm"):
        return "polyrhythm"
    own = Path(sys.executable).with_name("polyrhythm")
    return shlex.quote(_from_here(str(own))) if own.exists() else "python -m runtime"


def _from_here(path: str) -> str:
    """The shorter of a path's two names."""
    return os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else path


def _headline(summary: Summary) -> Text:
    words, style = {
        True: ("SUCCESS", "bold green"),
        False: ("FAILED", "bold red"),
        None: ("ENDED", "bold yellow"),
    }[summary.is_success]
    return Text.assemble((words, style), "  ", plain(summary.reason))


def _first_rows(summary: Summary, seed: str) -> Table:
    """How long the run was, and what came of its task."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("run time", f"{summary.duration_s:.1f} s ({summary.clock} clock{seed})")
    if summary.trace:
        grid.add_row("trace", summary.trace)
    if summary.task is not None and (summary.task.in_bin or summary.task.left):
        in_bin, left = summary.task.in_bin, summary.task.left
        rest = f"; left: {', '.join(left)}" if left else ""
        grid.add_row(f"{summary.task.label}s in the bin", f"{len(in_bin)} of {len(in_bin) + len(left)}{rest}")
    return grid


def _add_stops(grid: Table, summary: Summary) -> None:
    grid.add_row("stop heard to robot held", _spread(summary.stop_to_held_ms))
    grid.add_row("stop heard to robot at rest", _spread(summary.stop_to_rest_ms))


def _add_wizard(grid: Table, wizard: WizardSummary) -> None:
    if (after := wizard.after_s) is not None:
        acts = ", ".join(f"{number} {act}" for act, number in wizard.acts.items())
        figures = f"median {after.p50:.1f} s, longest {after.highest:.1f} s, of {after.count}"
        grid.add_row("last word to wizard's act", plain(f"{figures} ({acts})"))
    for title, lines in (("wizard's mistakes", wizard.mistakes), ("taken back", wizard.taken_back)):
        if lines:
            told = "; ".join(f"{one.at_s:.1f} s {one.text}".strip() for one in lines)
            grid.add_row(title, Text(plain(f"{len(lines)}: {told}")))


def _facts(summary: Summary) -> RenderableType:
    grid = _first_rows(summary, "" if summary.seed is None else f", seed {summary.seed}")
    if summary.wizard is not None:
        _add_wizard(grid, summary.wizard)
    for skill, ends in summary.actions.items():
        grid.add_row(f"{skill} actions", ", ".join(f"{number} {end}" for end, number in ends.items()))
    grid.add_row("image age behind commands", _spread(summary.image_age_ms))
    _add_stops(grid, summary)
    grid.add_row("messages recorded", f"{summary.messages:,}")
    grid.add_row("deliveries dropped", _counted(_reasons(summary.dropped), summary))
    if summary.missed_by_recorder:
        grid.add_row("missed by the recorder", _reasons(summary.missed_by_recorder))
    return grid


def _counted(title: str, summary: Summary) -> str:
    """Of what nodes count from their start on, said so where the recording is a piece of the run, such as a trial."""
    return f"{title}, since the run began" if summary.counts_from_before else title


def _interrupts(summary: Summary) -> Table:
    table = _table("Interrupts", {"at s": NUMBER, "depth": NAME, "said": {"ratio": 2}, "what followed": {"ratio": 3}})
    for one in summary.interrupts:
        style = {"stop": "red", "resume": "green"}.get(one.depth, "yellow")
        table.add_row(f"{one.at_s:.1f}", Text(one.depth, style=style), escape(plain(one.text)), escape(one.followed))
        if one.effects_ms or one.missing:
            table.add_row("", "", "", Text(_effects(one), style="dim"))
    return table


_EFFECT_WORDS = {"at_rest": "asked and measured at rest"}  # later than measured still, while braking is asked for


def _effects(one: InterruptSummary) -> str:
    """When each effect of an interrupt came, in order."""
    in_order = sorted(one.effects_ms.items(), key=lambda pair: pair[1])
    parts = [f"{_EFFECT_WORDS.get(name, name)} {time_ms:.1f}" for name, time_ms in in_order]
    parts += [f"{_EFFECT_WORDS.get(name, name)} never" for name in one.missing]
    return f"ms: {', '.join(parts)}"


def _paths(summary: Summary) -> Table:
    figures = ("p99 budget ms", "p50 ms", "p99 ms", "max ms", "over", "of")
    columns = {"path": REST, **dict.fromkeys(figures, NUMBER), "": NAME}
    table = _table(_counted("Path budgets: the age of what is behind the last topic", summary), columns)
    for one in summary.paths:
        table.add_row(
            escape(f"{one.path}: {' > '.join(one.topics)}"),
            f"{one.p99_budget_ms:g}",
            f"{one.p50_ms:.1f}",
            f"{one.p99_ms:.1f}",
            f"{one.max_ms:.1f}",
            f"{one.over:,}",
            f"{one.count:,}",
            Text(_MET[one.is_met][0], style=_MET[one.is_met][1]),
        )
    return table


def _spending(summary: Summary) -> Table:
    columns = {"node": NAME, "model": REST, "calls": RIGHT, "tokens in + out": RIGHT, "money": RIGHT, "": REST}
    table = _table("Model budgets: used of what the run may spend", columns)
    for one in summary.spending:
        tokens = f"{one.prompt_tokens:,} + {one.completion_tokens:,}" + (
            f" of {one.max_tokens:,}" * bool(one.max_tokens)
        )
        about = f" ({one.estimated_tokens:,} estimated)" if one.estimated_tokens else ""
        table.add_row(
            one.node,
            escape(one.model),
            f"{one.calls:,}" + f" of {one.max_calls:,}" * bool(one.max_calls),
            tokens + about,
            f"{one.money:.4f}" + f" of {one.max_money:g}" * bool(one.max_money),
            Text(one.spent or "within it", style="red" if one.spent else "green"),
        )
    return table


def _timers(summary: Summary) -> Table:
    figures = dict.fromkeys(("Hz", "target", "ticks", "overruns", "p50 ms", "p99 ms"), NUMBER)
    table = _table(_counted("Rates and lateness", summary), {"node": NAME, "timer": NAME, **figures})
    last = ""
    for one in summary.timers:
        is_slow = one.hz_achieved < 0.9 * one.hz_target and one.ticks > 2
        table.add_row(
            "" if one.node == last else one.node,
            one.timer,
            Text(f"{one.hz_achieved:.2f}", style="red" if is_slow else ""),
            f"{one.hz_target:g}",
            f"{one.ticks}",
            Text(f"{one.overruns}", style="yellow" if one.overruns else ""),
            f"{one.lateness_p50_ms:.2f}",
            f"{one.lateness_p99_ms:.2f}",
        )
        last = one.node
    return table


def _nodes(summary: Summary) -> Table:
    is_real = summary.clock != "virtual"
    counts, costs = ("starts", "sent", "received"), ("errors", "CPU s", "MB") if is_real else ("errors",)
    columns = {"node": NAME, **dict.fromkeys(counts, NUMBER), "dropped, by reason": REST}
    table = _table(_counted("Nodes", summary), columns | dict.fromkeys(costs, NUMBER))
    for node in summary.nodes:
        cells: list[RenderableType] = [
            node.node,
            Text(f"{node.starts}", style="yellow" if node.starts > 1 else ""),
            f"{node.sent}",
            f"{node.received}",
            _reasons(node.dropped),
            Text(f"{node.errors}", style="red" if node.errors else ""),
        ]
        table.add_row(*cells, *((f"{node.cpu_s:.1f}", f"{node.rss_mb:.0f}") if is_real else ()))
    return table


def _places(summary: Summary) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    whole = "" if summary.is_complete else ", not closed"
    grid.add_row("recording", f"{escape(summary.recording)} ({summary.size_mb:.1f} MB{whole})")
    for picture in summary.pictures:
        grid.add_row("film" if picture.endswith(".mp4") else "picture", escape(picture))
    return grid


def _table(title: str, columns: Mapping[str, Mapping[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 1), expand=True)
    for name, how in columns.items():
        table.add_column(name, **how)
    return table


def _spread(spread: Percentiles | None) -> str:
    if spread is None:
        return "none measured"
    if spread.count == 1:
        return f"{spread.p50:.1f} ms (once)"
    return f"p50 {spread.p50:.1f}, p99 {spread.p99:.1f}, max {spread.highest:.1f} ms ({spread.count:,} times)"


def _reasons(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {number:,}" for reason, number in counted.items()) or "none"
