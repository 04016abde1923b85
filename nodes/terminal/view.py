"""`TerminalView`: a run on the terminal, as a story: a board that is drawn anew, or lines."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from nodes.msgs import Action, Feedback, GuardState, Interrupt, Subtask, Utterance
from nodes.terminal.board import ADDRESS, BoardLine, ProcessRow, TerminalBoard, once
from nodes.terminal.typed_lines import TypedLines
from runtime.clock import Clock, SystemClock, to_ns, to_s
from runtime.coordination.health import Health
from runtime.coordination.lease import Lease, SeatHolders
from runtime.message import Message, Stamped
from runtime.supervision.view import plain

INTERRUPT_STYLES = {"stop": "bold red", "resume": "green", "amend": "yellow", "replan": "yellow", "hold": "yellow"}
LOUD = ("warning", "error", "critical", "output")

HELD_NS = to_ns(0.25)
"""Processes are heard at different speeds: messages wait so long in real time, and are then told in their order."""

SHOWN = {
    f"{kind.__module__}:{kind.__qualname__}": kind
    for kind in (Utterance, Subtask, Action, Feedback, Interrupt, GuardState, Health, Lease)
}
"""The types of message that are shown, by their names in a recording."""


class TerminalView:
    """Tells who says what, what the robot does and why it stopped; not what candidates in shadow say, and no rates.

    With `live`, a board drawn at each `refresh`; else one line for each thing worth telling, with the run time. Colours
    only on a terminal.
    """

    shows: tuple[type[Message], ...] = tuple(SHOWN.values())

    def __init__(
        self,
        title: str,
        *,
        live: bool,
        console: Console | None = None,
        clock: Clock | None = None,
        start_ns: int | None = None,
        shows_info: bool = False,
    ) -> None:
        """`start_ns`: run time zero of a recorded run, which is shown again. `shows_info`: all that nodes log."""
        self._clock = clock or SystemClock()
        self._made_ns = self._clock.now_ns()
        self._start_ns = self._made_ns if start_ns is None else start_ns
        self._newest_ns = 0 if start_ns is None else start_ns
        self._is_virtual = start_ns is not None  # its time is that of its messages
        self._shows_info = shows_info
        self._is_running = False
        self._console = console or Console(highlight=False)
        self.board = TerminalBoard(title)
        self._texts: dict[str, str] = {}
        self._texts_heard: deque[str] = deque(maxlen=4)
        self._held: list[tuple[int, int, Stamped[Any]]] = []  # a heap: when published, a number, what
        self._numbered = 0
        self._show: dict[type, Callable[[Stamped[Any]], None]] = {
            Utterance: self._utterance,
            Subtask: self._subtask,
            Action: self._action,
            Feedback: self._feedback,
            Interrupt: self._interrupt,
            GuardState: self._guard,
            Health: self._health,
            Lease: self._lease,
        }
        self._leases = SeatHolders()
        self._live: Live | None = None
        self._typing: TypedLines | None = None
        if live:
            self._live = Live(console=self._console, screen=True, auto_refresh=False)
            self._live.start()
            self._typing = TypedLines.open() if start_ns is None else None  # a recorded run hears nobody
        else:
            self._console.print(title, style="bold", soft_wrap=True)

    def message(self, stamped: Stamped[Any]) -> None:
        """Take note of a message; most types are not shown."""
        if type(stamped.message) not in self._show:
            return
        published_ns = stamped.envelope.published_ns
        if not self._is_virtual and not self._newest_ns and published_ns < self._made_ns:
            # Older than this view: the run has a clock of its own, which starts at zero.
            self._is_virtual = True
            self._start_ns = 0
        self._newest_ns = max(self._newest_ns, published_ns)
        self._numbered += 1
        heapq.heappush(self._held, (published_ns, self._numbered, stamped))
        if self._is_virtual:
            self._tell_until(published_ns)

    def _tell_until(self, now_ns: int | None = None) -> None:
        """Show what was published until then, or all, the oldest first."""
        while self._held and (now_ns is None or self._held[0][0] <= now_ns):
            *_, stamped = heapq.heappop(self._held)
            if not self._leases.is_shadow(stamped.envelope):
                self._show[type(stamped.message)](stamped)

    def process(self, name: str, pid: int, state: str) -> None:
        """A process changed its state."""
        self.board.processes[name] = ProcessRow(pid, state)
        if not self._is_running and all(row.state == "running" for row in self.board.processes.values()):
            self._is_running = True
            self._start_ns = self._clock.now_ns()  # the run begins; what came before was loading
            self._tell(0.0, "", "every node runs", "", is_story=False)
        if state not in ("started", "running", "stopped"):
            style = "yellow" if state == "restarted" else "red"
            self._tell(self._now_s(), name, f"{state} [pid {pid}]", style)

    def log(self, level: str, source: str, text: str, at_s: float | None = None) -> None:
        """A log line; only notices, warnings and worse, and what a process prints are shown, if not all is wanted."""
        at_s = self._now_s() if at_s is None else at_s
        if level == "notice":
            if self.board.notice != plain(text):  # several processes may have the same to say
                self._tell(at_s, "", text, "bold cyan", is_story=False)
            self.board.notice = plain(text)
        elif level in LOUD:
            last = text.splitlines()[-1] if text.strip() else text
            is_fault = level in ("error", "critical")
            self.board.warn(plain(f"{at_s:7.1f} {source}: {last}"), is_fault=is_fault)
            self._tell(at_s, source, f"{level}: {text}", "red" if is_fault else "yellow", is_story=False)
        elif self._shows_info:
            self._tell(at_s, source, text, "")

    def refresh(self, now_ns: int) -> None:
        """Tell what has waited long enough, and draw the board."""
        self._tell_until(now_ns - HELD_NS)
        if self._live is None:
            return
        if self._typing is not None:
            for problem in self._typing.poll():
                self.board.warn(plain(problem), is_fault=False)
            self.board.typed = self._typing.text
        self.board.run_s = to_s(now_ns - self._start_ns)
        size = self._console.size
        self._live.update(self.board.draw(now_ns, size.width, size.height), refresh=True)

    def close(self) -> None:
        """Give the terminal back, with what was said left on it."""
        self._tell_until()
        if self._live is None:
            return
        if self._typing is not None:
            self._typing.close()
            self._typing = None
        self._live.stop()
        self._live = None
        self._console.print(self.board.title, style="bold", soft_wrap=True)
        for line in self.board.lines:
            self._print(line)

    def _utterance(self, stamped: Stamped[Utterance]) -> None:
        message = stamped.message
        style = "bold" if stamped.envelope.topic == "said" else "bold blue"
        self._texts_heard.append(message.text)
        self._tell(self._at_s(stamped), message.speaker, f"“{message.text}”", style)

    def _subtask(self, stamped: Stamped[Subtask]) -> None:
        if plain(stamped.message.text) != self.board.plan:
            self.board.plan = plain(stamped.message.text)
            self._tell(self._at_s(stamped), "plan", stamped.message.text, "")

    def _action(self, stamped: Stamped[Action]) -> None:
        message = stamped.message
        text = plain(message.text or message.skill)
        if self._texts.get(message.id) == text:
            return
        self._texts = {message.id: text}
        self.board.action, self.board.action_status = text, ""
        self._tell(self._at_s(stamped), "action", text, "")

    def _feedback(self, stamped: Stamped[Feedback]) -> None:
        message = stamped.message
        ending = message.ending
        is_news = message.action_id in self._texts and ending != self.board.action_status
        if not is_news:
            return
        self.board.action_status = ending
        if ending != "running":
            why = f": {message.why}" if ending != "success" and message.why else ""
            style = {"success": "green", "failure": "red"}.get(ending, "")
            text = f"{ending}: {self._texts[message.action_id]}{why}"
            self._tell(self._at_s(stamped), "action", text, style)

    def _interrupt(self, stamped: Stamped[Interrupt]) -> None:
        message = stamped.message
        style = INTERRUPT_STYLES[message.depth]
        # What was said is on the line above already.
        text = "" if message.text in self._texts_heard else f": {message.text}"
        self._tell(self._at_s(stamped), "interrupt", once(f"{message.depth} by {message.by}{text}"), style)

    def _guard(self, stamped: Stamped[GuardState]) -> None:
        before, self.board.guard = self.board.guard, stamped.message
        if before is None or (before.mode, before.estop) != (stamped.message.mode, stamped.message.estop):
            style = "red" if stamped.message.is_stopped else ""
            self._tell(self._at_s(stamped), "guard", once(stamped.message.sentence), style)

    def _lease(self, stamped: Stamped[Lease]) -> None:
        self._leases.take(stamped.message)

    def _health(self, stamped: Stamped[Health]) -> None:
        self.board.take_health(stamped.message, stamped.envelope.published_ns)
        if "recorder" in stamped.message.node:
            self.board.recording_s = self._at_s(stamped)

    def _tell(self, at_s: float, who: str, text: str, style: str, *, is_story: bool = True) -> None:
        """Print the line or, on the board, keep those that belong to the story."""
        line = BoardLine(at_s, plain(who), plain(text), style)
        if is_story:
            self.board.lines.append(line)
        if self._live is None:
            self._print(line)

    def _print(self, line: BoardLine) -> None:
        is_early = not (self._is_running or self._is_virtual or self._newest_ns)  # the run has no time yet
        at = "[loading] " if is_early else f"[{line.at_s:5.1f} s] "
        said = Text(f"{line.who}: {line.text}" if line.who else line.text, line.style)
        if self._console.is_terminal and not ADDRESS.search(line.text):  # words stay whole, beside the time
            row = Table.grid()
            row.add_column(no_wrap=True)
            row.add_row(Text(at, "dim"), said)
            self._console.print(row)
        else:
            self._console.print(Text.assemble((at, "dim"), said), soft_wrap=True)

    def _at_s(self, stamped: Stamped[Any]) -> float:
        return to_s(stamped.envelope.published_ns - self._start_ns)

    def _now_s(self) -> float:
        now_ns = self._newest_ns if self._is_virtual else self._clock.now_ns()
        return to_s(now_ns - self._start_ns)
