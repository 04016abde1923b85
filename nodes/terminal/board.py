"""`TerminalBoard`: what a run's live view knows, and how it is drawn on a terminal of 80 x 24 or more."""

from __future__ import annotations

import io
import re
from collections import deque
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.style import Style
from rich.table import Table
from rich.text import Text

from nodes.msgs import GuardState
from runtime.coordination.health import Health
from runtime.supervision.view import plain

SILENT_NS = 3_000_000_000
"""A node that has not told its health for so long is shown as silent."""

WARNING_NS = 10_000_000_000
"""A warning is shown for so long; a fault stays."""

MODE_STYLES = {
    "moving": "green", "armed": "cyan", "holding": "yellow", "retreating": "magenta", "stopped": "bold white on red",
    "estopped": "bold white on red",
}  # fmt: skip
_KEPT_LINES = 200
_NAMES, _TIMES = 8, 7
"""Widths of the columns of what goes on now, and of the story's times."""
_MOST_ROWS = 3
"""Of one thing beside the story."""
_WRAPPING = Console(file=io.StringIO(), width=80)
"""By it texts are measured; nothing is written to it."""
ADDRESS = re.compile(r"\b(?:https?|wss?)://\S+")


def once(text: str) -> str:
    """The text without a name that stands twice: "stopped by contact: contact: base"."""
    return re.sub(r"\b(\w+): \1: ", r"\1: ", text)


def rows_of(text: Text, width: int, most: int) -> list[Text]:
    """A text wrapped between its words, in at most so many rows; only what is longer than all of them is cut.

    A web address in it stands whole, on rows of its own. Terminals that know links open it by a click, also where it
    takes several rows.
    """
    if text.cell_len > width and (found := ADDRESS.search(text.plain)) is not None:
        address = Text(
            found[0], Style.combine([text.get_style_at_offset(_WRAPPING, found.start()), Style(link=found[0])])
        )
        around = Text(f"{text.plain[: found.start()]}{text.plain[found.end() :]}".strip(), text.style)
        cuts = range(width, address.cell_len, width)
        return rows_of(around, width, most) + list(address.divide(cuts)) if around.plain else list(address.divide(cuts))
    rows = list(text.wrap(_WRAPPING, max(1, width))) or [Text("")]
    if len(rows) > most:
        rows = rows[:most]
        rows[-1].truncate(max(1, width - 1))
        rows[-1].append("…")
    for row in rows:
        row.rstrip()
    return rows


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
        head += self._now("plan", Text(self.plan), width)
        head += self._now("action", Text.assemble(self.action, "  ", self._status()), width)
        head += self._now("guard", self._guard(), width)
        foot: list[RenderableType] = self._trouble(now_ns, width)
        if self.notice:
            foot += rows_of(Text(self.notice, "cyan"), width, _MOST_ROWS)
        if self.typed is not None:
            line = Text.assemble(("say to the robot: ", "dim"), self.typed, "▏")
            foot += rows_of(line, width, len(line))[-_MOST_ROWS:]  # the end is where somebody types
        room = max(2, height - len(head) - len(foot) - 2)
        return Group(*head, Rule(style="dim"), self._story(room, width), *foot)

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
            lines += rows_of(Text.assemble(*parts), width, _MOST_ROWS)
        self._warned_ns = now_ns if self._warned_ns is None else self._warned_ns
        if self.warning and now_ns - self._warned_ns < WARNING_NS:
            lines += rows_of(Text(self.warning, "yellow"), width, _MOST_ROWS)
        if self.fault:
            lines += rows_of(Text(self.fault, "red"), width, _MOST_ROWS)
        return lines

    def _now(self, name: str, text: Text, width: int) -> list[Text]:
        rows = rows_of(text, width - _NAMES, _MOST_ROWS)
        return [Text.assemble((f"{'' if i else name:<{_NAMES}}", "dim"), row) for i, row in enumerate(rows)]

    def _status(self) -> Text:
        style = {"success": "green", "failure": "red"}.get(self.action_status, "dim")
        return Text(self.action_status, style=style)

    def _guard(self) -> Text:
        if self.guard is None:
            return Text()
        mode = Text(f" {self.guard.mode} ", style=MODE_STYLES.get(self.guard.mode, ""))
        return Text.assemble(mode, "  ", once(plain(self.guard.reason)))

    def _story(self, room: int, width: int) -> RenderableType:
        """The newest lines that have room, each whole; the newest of all is cut where it alone has none."""
        names = max((cell_len(line.who) for line in list(self.lines)[-room:]), default=0)
        told: list[tuple[str, Text, Text]] = []
        for line in reversed(self.lines):
            texts = rows_of(Text(line.text, line.style), max(8, width - _TIMES - names - 2), room)
            if told and len(told) + len(texts) > room:
                break
            first = (f"{line.at_s:.1f}", Text(line.who, line.style))
            told[:0] = [(*(first if not i else ("", Text())), text) for i, text in enumerate(texts)]
        grid = Table.grid(padding=(0, 1), expand=True)
        grid.add_column(justify="right", no_wrap=True, style="dim", width=_TIMES)
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        for row in (*told, *[("", Text(), Text())] * (room - len(told))):
            grid.add_row(*row)
        return grid
