"""`polyrhythm top`: how every node of a running graph fares, live."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from nodes.terminal.top_rows import COLUMNS, ENDED, WRAPPED, NodeRow, budgets, cells, fitting, node_row, trouble
from runtime.clock import SystemClock, to_ns
from runtime.command_line.arguments import seconds
from runtime.command_line.attach import Arrival, StopSignal, add_run_argument, attach, hear
from runtime.commands.nodes import table
from runtime.coordination.health import Health
from runtime.errors import CodecError
from runtime.launch.graph import health_topic
from runtime.message import Stamped
from runtime.serialization.codec import decode
from runtime.supervision.registry import FoundRun, ProcessState
from runtime.supervision.view import terminal_width

if TYPE_CHECKING:
    from rich.table import Table

_PATIENCE_S = 4.0
_REDRAW_S = 1.0
_WORDS = ("node", "process", "state", "dropped", "unacknowledged")


class Accounts:
    """The last two accounts of each node."""

    def __init__(self, run: FoundRun) -> None:
        self._run = run
        self._since_ns = SystemClock().now_ns()
        self._last: dict[str, tuple[Stamped[Health] | None, Stamped[Health]]] = {}

    def add(self, arrival: Arrival) -> None:
        """Take in a health message; one that is garbled is left out."""
        try:
            stamped = decode(arrival.frames, Health)
        except CodecError:
            return
        node = stamped.message.node
        before = self._last.get(node)
        self._last[node] = (before[1] if before else None, stamped)

    @property
    def is_complete(self) -> bool:
        """Whether each node has told of itself twice."""
        return all(self._last.get(node, (None,))[0] is not None for node in self._run.info.nodes)

    def rows(self, now_ns: int) -> list[NodeRow]:
        """The rows of all nodes, in the order of the launch file."""
        states = self._run.states()
        is_over = bool(self._last) and not states
        unknown = ProcessState(0, ENDED if is_over else "not started")
        kinds = {name: topic.kind for name, topic in self._run.info.topics.items()}
        rows = []
        for node, info in self._run.info.nodes.items():
            before, last = self._last.get(node, (None, None))
            state = states.get(info.process, unknown)
            row = node_row(node, info.process, state, before, last, now_ns, kinds, self._since_ns)
            rows.append(msgspec.structs.replace(row, host=self._host_of(info.process)))
        return rows

    def _host_of(self, process: str) -> str:
        """The host whose nodes this process stands for; "" where it runs them itself."""
        plan = self._run.info.processes.get(process)
        if plan is None or plan.gateway is None:
            return ""
        server, client = plan.gateway.meeting.server.name, plan.gateway.meeting.client.name
        return server if client == plan.gateway.own.name else client


def main(argv: list[str]) -> int:
    """`polyrhythm top`: 0; with --once 1 where a node does not run, or tells nothing."""
    asked = _parser().parse_args(argv)
    run = attach(asked.run)
    accounts = Accounts(run)
    topics = [health_topic(node) for node in run.info.nodes]
    is_live = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb" and not (asked.json or asked.once)
    if is_live:
        return _draw(run, accounts, topics, asked.for_s)
    clock = SystemClock()
    with StopSignal() as stop_signal:
        for arrival in hear(run, topics, stop_signal, asked.for_s or _PATIENCE_S):
            if arrival is not None:
                accounts.add(arrival)
                if accounts.is_complete and asked.for_s is None:
                    break
    rows = accounts.rows(clock.now_ns())
    if asked.json:
        data = [{**msgspec.to_builtins(row), "dropped": row.dropped, "waiting": row.waiting} for row in rows]
        print(
            msgspec.json.encode(
                {"run": run.info.name, "nodes": data, "budgets": budgets(rows), "trouble": trouble(rows)}
            ).decode()
        )
    elif terminal_width() is not None:
        _print(run, rows)
    else:
        print(run.title)
        print(table([dict(zip(COLUMNS, cells(row), strict=True)) for row in rows], COLUMNS))
        for line in (*budgets(rows), *trouble(rows)):
            print(line)
    return int(asked.once and any(row.state != "running" or row.is_silent for row in rows))


def _draw(run: FoundRun, accounts: Accounts, topics: Sequence[str], for_s: float | None) -> int:
    from rich.live import Live

    clock = SystemClock()
    next_ns = clock.now_ns()
    with StopSignal() as stop_signal, Live(auto_refresh=False, screen=True) as live:
        for arrival in hear(run, topics, stop_signal, for_s):
            if arrival is not None:
                accounts.add(arrival)
            if clock.now_ns() >= next_ns:
                next_ns = clock.now_ns() + to_ns(_REDRAW_S)
                live.update(_table(run, accounts.rows(clock.now_ns()), live.console.width), refresh=True)
        rows = accounts.rows(clock.now_ns())
    _print(run, rows)  # what was last seen stays on the terminal
    return 0


def _print(run: FoundRun, rows: Sequence[NodeRow]) -> None:
    from rich.console import Console

    console = Console(width=terminal_width(), height=25)  # without a height it takes a dumb one for 80 columns wide
    console.print(_table(run, rows, console.width))


def _table(run: FoundRun, rows: Sequence[NodeRow], width: int) -> Table:
    from rich.table import Table
    from rich.text import Text

    words = "\n".join([*budgets(rows), *trouble(rows)])
    drawn = Table(title=run.title, title_justify="left", caption=words or None, caption_justify="left", box=None)
    texts = [cells(row) for row in rows]
    shown = fitting(texts, width)
    for column in shown:
        justify: Literal["left", "right"] = "left" if column in _WORDS else "right"
        drawn.add_column(column.replace(" ", "\n"), justify=justify, no_wrap=column not in WRAPPED)
    for row, text in zip(rows, texts, strict=True):
        is_bad = bool(trouble([row]))
        drawn.add_row(
            *(Text(cell) for column, cell in zip(COLUMNS, text, strict=True) if column in shown),
            style="red" if is_bad else "",
        )
    return drawn


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm top",
        description="Show how every node fares: rate against target, lateness, overruns, age of its stalest input, "
        "queue, drops and unacknowledged reliable events by reason, and CPU and memory of its process; and how the run "
        "keeps to its [budgets]. Live on a terminal, once on one that is dumb; elsewhere once, with every column.",
        epilog="example: polyrhythm top --json | python -m json.tool",
    )
    add_run_argument(parser)
    parser.add_argument("--for", dest="for_s", type=seconds, metavar="S", help="end after that many seconds")
    parser.add_argument("--json", action="store_true", help="print one account as JSON")
    parser.add_argument(
        "--once", action="store_true", help="print one account; exit code 1 where a node does not run or tells nothing"
    )
    return parser
