"""`TerminalBoard`: what a run's live view knows, and how it is drawn on a terminal of 80 x 24 or more."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from runtime.control_messages.health import Health
from runtime.msgs import GuardState
from runtime.supervision.view import plain

SILENT_NS = 3_000_000_000
"""A node that has not told its health for so long is shown as silent."""

MODE_STYLES = {"moving": "green", "armed": "cyan", "holding": "yellow", "stopped": "bold white on red"}
_KEPT_LINES = 200


@dataclass
class ProcessRow:
    pid: int
    state: str  # "started", "running", "restarted", "stopped", "failed: WHY"


@dataclass
class BoardLine:
    at_s: float
    who: str
    text: str
    style: str = ""


@dataclass
class TerminalBoard:
    """The newest of everything."""

    title: str
    run_s: float = 0.0
    recording_s: float | None = None
    processes: dict[str, ProcessRow] = field(default_factory=dict)
    health: dict[str, tuple[Health, int]] = field(default_factory=dict)  # by node, with its stamp
    lines: deque[BoardLine] = field(default_factory=lambda: deque(maxlen=_KEPT_LINES))
    plan: str = ""
    action: str = ""
    action_status: str = ""
    guard: GuardState | None = None
    warning: str = ""
    _process_of: dict[str, str] = field(default_factory=dict)

    def take_health(self, health: Health, stamp_ns: int) -> None:
        """Keep a node's health, and which process it lives in."""
        self.health[health.node] = (health, stamp_ns)
        for name, process in self.processes.items():
            if process.pid == health.pid:
                self._process_of[health.node] = name

    def state_of(self, node: str, now_ns: int) -> tuple[str, str]:
        """The state of a node in a word or two, with its style."""
        health, stamp_ns = self.health[node]
        process = self.processes.get(self._process_of.get(node, ""))
        if process is not None and process.state.startswith("failed"):
            return process.state, "red"
        if process is not None and process.pid != health.pid:
            return process.state, "yellow"
        if now_ns - stamp_ns > SILENT_NS:
            return "silent", "yellow"
        return (f"{health.errors} errors", "red") if health.errors else ("", "")

    def draw(self, now_ns: int, width: int, height: int) -> RenderableType:
        """The whole board, not higher than the terminal."""
        nodes = self._nodes(now_ns)
        head: list[RenderableType] = [self._header(width), nodes, Rule(style="dim")]
        head += [self._now("plan", self.plan), self._now("action", self.action, self._status()), self._guard()]
        foot: list[RenderableType] = [Text(self.warning, style="yellow", no_wrap=True, overflow="ellipsis")]
        room = max(2, height - (nodes.row_count + 1) - 6 - len(foot) - 1)
        return Group(*head, Rule(style="dim"), self._conversation(room), *foot)

    def _header(self, width: int) -> RenderableType:
        grid = Table.grid(expand=True)
        grid.add_column(no_wrap=True, overflow="ellipsis")
        grid.add_column(justify="right", no_wrap=True)
        recording = "" if self.recording_s is None else "● recording  "
        right = Text.assemble((recording, "red"), (f"{self.run_s:.1f} s", "bold"))
        grid.add_row(Text(self.title, style="bold"), right)
        return grid

    def _nodes(self, now_ns: int) -> Table:
        table = Table(box=None, padding=(0, 1), expand=True, header_style="dim", pad_edge=False)
        table.add_column("node", no_wrap=True, max_width=14)
        for title in ("pid", "Hz", "target", "p99 ms", "overruns", "overwr.", "lost"):
            table.add_column(title, justify="right", no_wrap=True)
        table.add_column("", ratio=1, no_wrap=True, overflow="ellipsis")
        shown = set()
        order = list(self.processes)
        for node in sorted(self.health, key=lambda name: _index(order, self._process_of.get(name, ""))):
            self._node_row(table, node, now_ns)
            shown.add(self._process_of.get(node, ""))
        for name, process in self.processes.items():
            if name not in shown:
                cells = [escape(name), str(process.pid), *[""] * 6]
                table.add_row(*cells, Text(process.state, style="red" if "failed" in process.state else "dim"))
        return table

    def _node_row(self, table: Table, node: str, now_ns: int) -> None:
        health, _ = self.health[node]
        state, style = self.state_of(node, now_ns)
        timer = max(health.timers, key=lambda one: one.hz_target, default=None)
        overwritten = sum(port.dropped.get("overwritten", 0) for port in health.ports)
        lost = sum(sum(port.dropped.values()) for port in health.ports) - overwritten
        process = self.processes.get(self._process_of.get(node, ""))
        pid = health.pid if process is None else process.pid
        rate: list[RenderableType] = [Text("")] * 4
        if timer is not None:
            is_slow = timer.ticks > 2 and timer.hz_achieved < 0.9 * timer.hz_target
            rate = [
                Text(f"{timer.hz_achieved:.1f}", style="red" if is_slow else "green"),
                Text(f"{timer.hz_target:g}"),
                Text(f"{timer.lateness_p99_ms:.1f}"),
                Text(f"{timer.overruns}", style="yellow" if timer.overruns else ""),
            ]
        counts = (Text(f"{overwritten}", style="dim"), Text(f"{lost}", style="yellow" if lost else ""))
        table.add_row(escape(node), str(pid), *rate, *counts, Text(state, style=style))

    def _now(self, name: str, text: str, mark: Text | None = None) -> Text:
        line = Text.assemble((f"{name:<8}", "dim"), text, "  ", mark or "", no_wrap=True)
        line.overflow = "ellipsis"
        return line

    def _status(self) -> Text:
        style = {"success": "green", "failure": "red"}.get(self.action_status, "dim")
        return Text(self.action_status, style=style)

    def _guard(self) -> Text:
        if self.guard is None:
            return self._now("guard", "")
        mode = Text(f" {self.guard.mode} ", style=MODE_STYLES.get(self.guard.mode, ""))
        line = Text.assemble(("guard   ", "dim"), mode, "  ", plain(self.guard.reason), no_wrap=True)
        line.overflow = "ellipsis"
        return line

    def _conversation(self, room: int) -> RenderableType:
        grid = Table.grid(padding=(0, 1), expand=True)
        grid.add_column(justify="right", no_wrap=True, style="dim", width=7)
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        for line in list(self.lines)[-room:]:
            grid.add_row(f"{line.at_s:.1f}", Text(line.who, style=line.style), Text(line.text, style=line.style))
        for _ in range(room - len(self.lines)):
            grid.add_row("", "", "")
        return grid


def _index(names: list[str], name: str) -> int:
    return names.index(name) if name in names else len(names)
