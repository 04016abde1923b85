"""`TerminalBoard`: what a run's live view knows, and how it is drawn on a terminal of 80 x 24 or more."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.style import Style
from rich.table import Table
from rich.text import Text

from runtime.coordination.health import Health
from runtime.msgs import GuardState
from runtime.supervision.view import plain

SILENT_NS = 3_000_000_000
"""A node that has not told its health for so long is shown as silent."""

WARNING_NS = 10_000_000_000
"""A warning is shown for so long; a fault stays."""

MODE_STYLES = {"moving": "green", "armed": "cyan", "holding": "yellow", "stopped": "bold white on red"}
_KEPT_LINES = 200
ADDRESS = re.compile(r"\b(?:https?|wss?)://\S+")


def once(text: str) -> str:
    """The text without a name that stands twice: "stopped by contact: contact: base"."""
    return re.sub(r"\b(\w+): \1: ", r"\1: ", text)


def whole(text: str, style: str, width: int) -> list[RenderableType]:
    """A line, shortened where it is longer than the terminal; but a web address in it stands whole, on rows of its own.

    Terminals that know links open it by a click, also where it takes several rows.
    """
    if len(text) <= width or (found := ADDRESS.search(text)) is None:
        return [Text(text, style=style, no_wrap=True, overflow="ellipsis")]
    address = found[0]
    rows = [address[start : start + width] for start in range(0, len(address), width)]
    around = f"{text[: found.start()]}{text[found.end() :]}".strip()
    before: list[RenderableType] = [Text(around, style=style, no_wrap=True, overflow="ellipsis")] if around else []
    return before + [Text(row, style=Style.parse(style) + Style(link=address), no_wrap=True) for row in rows]


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
    notice: str = ""  # for the person in front, as where a page is
    warning: str = ""
    fault: str = ""
    typed: str | None = None  # of the line that somebody types to the robot; None: nobody can
    _warned_ns: int | None = None  # when the warning was first drawn
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
        """The whole board, not higher than the terminal: what the robot does, then the story, then what goes wrong."""
        head: list[RenderableType] = [self._header(width), Rule(style="dim")]
        head += [self._now("plan", self.plan), self._now("action", self.action, self._status()), self._guard()]
        foot: list[RenderableType] = self._trouble(now_ns, width)
        if self.notice:
            foot += whole(self.notice, "cyan", width)
        if self.typed is not None:
            foot.append(
                Text.assemble(("say to the robot: ", "dim"), self.typed, "▏", no_wrap=True, overflow="ellipsis")
            )
        room = max(2, height - len(head) - len(foot) - 2)
        return Group(*head, Rule(style="dim"), self._story(room), *foot)

    def warn(self, text: str, *, is_fault: bool) -> None:
        """Show it at the foot: a fault until the next one, a warning for a while and never in a fault's place."""
        if is_fault:
            self.fault = text
        else:
            self.warning, self._warned_ns = text, None

    def _header(self, width: int) -> RenderableType:
        grid = Table.grid(expand=True)
        grid.add_column(no_wrap=True, overflow="ellipsis")
        grid.add_column(justify="right", no_wrap=True)
        recording = "" if self.recording_s is None else "● recording  "
        right = Text.assemble((recording, "red"), (f"{self.run_s:.1f} s", "bold"))
        grid.add_row(Text(self.title, style="bold"), right)
        return grid

    def _trouble(self, now_ns: int, width: int) -> list[RenderableType]:
        """How many nodes are well, and a line for each of those that are not; the newest fault or warning."""
        ill = [(node, *told) for node in self.health if (told := self.state_of(node, now_ns))[0]]
        told_of = {self._process_of.get(node, "") for node in self.health}
        ill += [
            (name, process.state, "red" if "failed" in process.state else "dim")
            for name, process in self.processes.items()
            if name not in told_of and process.state not in ("started", "running")
        ]
        well = sum(not self.state_of(node, now_ns)[0] for node in self.health)
        rates = f"{well} of {len(self.health)} nodes are well; polyrhythm top shows their rates"
        lines: list[RenderableType] = [Text(rates if self.health else "loading", style="dim")]
        if ill:
            parts = [(f"{node}: {state}  ", style) for node, state, style in ill]
            lines.append(Text.assemble(*parts, no_wrap=True, overflow="ellipsis"))
        self._warned_ns = now_ns if self._warned_ns is None else self._warned_ns
        if self.warning and now_ns - self._warned_ns < WARNING_NS:
            lines += whole(self.warning, "yellow", width)
        if self.fault:
            lines += whole(self.fault, "red", width)
        return lines

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
        line = Text.assemble(("guard   ", "dim"), mode, "  ", once(plain(self.guard.reason)), no_wrap=True)
        line.overflow = "ellipsis"
        return line

    def _story(self, room: int) -> RenderableType:
        grid = Table.grid(padding=(0, 1), expand=True)
        grid.add_column(justify="right", no_wrap=True, style="dim", width=7)
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        for line in list(self.lines)[-room:]:
            grid.add_row(f"{line.at_s:.1f}", Text(line.who, style=line.style), Text(line.text, style=line.style))
        for _ in range(room - len(self.lines)):
            grid.add_row("", "", "")
        return grid
