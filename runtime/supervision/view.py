"""`View`: what shows a run while it goes on; `PlainView` prints lines."""

from __future__ import annotations

import logging
import shutil
import sys
from typing import Any, Protocol, TextIO

from runtime.clock import NS_PER_S, Clock, SystemClock
from runtime.message import Message, Stamped
from runtime.operating_system.telling import level_of, text_of

_OBEYED = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def plain(text: str) -> str:
    """The text with control characters escaped: no terminal obeys what models and recordings say."""
    return text.translate(_OBEYED)


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Columns of the terminal behind a stream, or standard output; None where it is none, and lines stay whole."""
    return max(60, shutil.get_terminal_size().columns) if (stream or sys.stdout).isatty() else None


class View(Protocol):
    """Shows processes, messages and log lines of a run; called from one thread only.

    A view with an attribute `shows`, a tuple of message types, gets no other messages.
    """

    def message(self, stamped: Stamped[Any]) -> None:
        """Show a message that was published."""
        return

    def process(self, name: str, pid: int, state: str) -> None:
        """Show a changed process state: "started", "running", "stopped", "failed: WHY"."""
        ...

    def log(self, level: str, source: str, text: str, at_s: float | None = None) -> None:
        """Show a log line of a node or of the supervisor; `at_s` is its run time, where that is not now.

        A line of level "notice" is for the person at the terminal, and stays in view.
        """
        ...

    def refresh(self, now_ns: int) -> None:
        """Draw again; called about four times a second."""
        return

    def close(self) -> None:
        """The run is over."""
        return


def shown_by(view: View) -> tuple[type[Message], ...] | None:
    """The message types that a view shows; None for all."""
    shows: tuple[type[Message], ...] | None = getattr(view, "shows", None)
    return shows


class PlainView(View):
    """Prints log lines and process states, with the seconds since the start."""

    shows: tuple[type[Message], ...] = ()

    def __init__(self, title: str, *, live: bool = False) -> None:
        self._start_ns = SystemClock().now_ns()
        self._print(title)

    def process(self, name: str, pid: int, state: str) -> None:
        """Print the changed state of a process."""
        self._print(f"{name} [pid {pid}] {state}")

    def log(self, level: str, source: str, text: str, at_s: float | None = None) -> None:
        """Print a log line."""
        mark = "" if level in ("info", "notice") else f"{level}: "
        self._print(f"{source}: {mark}{text}", at_s)

    def _print(self, text: str, at_s: float | None = None) -> None:
        seconds = (SystemClock().now_ns() - self._start_ns) * 1e-9 if at_s is None else at_s
        print(f"[{seconds:6.1f} s] {plain(text)}", flush=True)


class SilentView(PlainView):
    """Prints errors only, on standard error: for `--json`."""

    def __init__(self, title: str = "", *, live: bool = False) -> None:
        """Takes the arguments of every view."""

    def process(self, name: str, pid: int, state: str) -> None:
        """Do nothing."""

    def log(self, level: str, source: str, text: str, at_s: float | None = None) -> None:
        """Print an error on standard error; ignore other lines."""
        if level in ("error", "critical"):
            print(f"{source}: {plain(text)}", file=sys.stderr, flush=True)


class ViewLog(logging.Handler):
    """Shows the log records of this process, in which the run has a clock of its own, in a view."""

    def __init__(self, view: View, clock: Clock) -> None:
        super().__init__()
        self._view = view
        self._clock = clock

    def emit(self, record: logging.LogRecord) -> None:
        """Show one log record."""
        at_s = self._clock.now_ns() / NS_PER_S
        self._view.log(level_of(record), record.name.removeprefix("node."), text_of(record), at_s)
