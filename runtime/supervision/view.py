"""`View`: what shows a run while it goes on; `PlainView` prints lines."""

from __future__ import annotations

import logging
import shutil
import sys
from typing import Any, Protocol, TextIO

from runtime.clock import NS_PER_S, Clock, SystemClock
from runtime.message import Message, Stamped

_OBEYED = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def plain(text: str) -> str:
    """The text with what a terminal would obey written out: models and recordings are to be read, not obeyed."""
    return text.translate(_OBEYED)


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Columns of the terminal that a stream is, or standard output; None where it is none: lines stay whole."""
    return max(60, shutil.get_terminal_size().columns) if (stream or sys.stdout).isatty() else None


class View(Protocol):
    """Shows processes, messages and log lines; called from one thread only.

    One with an attribute `shows`, a tuple of message types, hears no others.
    """

    def message(self, stamped: Stamped[Any]) -> None:
        """A message that was published."""
        ...

    def process(self, name: str, pid: int, state: str) -> None:
        """A process changed its state: "started", "running", "stopped", "failed: WHY"."""
        ...

    def log(self, level: str, source: str, text: str, at_s: float | None = None) -> None:
        """A log line of a node, or of the supervisor; `at_s`: its run time, where that is not now.

        Of level "notice" it is for the person in front, and stays in view.
        """
        ...

    def refresh(self, now_ns: int) -> None:
        """Time to draw again; about four times a second."""
        ...

    def close(self) -> None:
        """The run is over."""
        ...


def shown_by(view: View) -> tuple[type[Message], ...] | None:
    """The types of message that a view shows; None for all."""
    shows: tuple[type[Message], ...] | None = getattr(view, "shows", None)
    return shows


class PlainView:
    """Prints log lines and process states, with the seconds since the start."""

    shows: tuple[type[Message], ...] = ()

    def __init__(self, title: str, *, live: bool = False) -> None:
        self._start_ns = SystemClock().now_ns()
        self._print(title)

    def message(self, stamped: Stamped[Any]) -> None:
        """Shows no messages."""

    def process(self, name: str, pid: int, state: str) -> None:
        self._print(f"{name} [pid {pid}] {state}")

    def log(self, level: str, source: str, text: str, at_s: float | None = None) -> None:
        mark = "" if level in ("info", "notice") else f"{level}: "
        self._print(f"{source}: {mark}{text}", at_s)

    def refresh(self, now_ns: int) -> None:
        """Lines need no drawing."""

    def close(self) -> None:
        """Lines need no closing."""

    def _print(self, text: str, at_s: float | None = None) -> None:
        seconds = (SystemClock().now_ns() - self._start_ns) * 1e-9 if at_s is None else at_s
        print(f"[{seconds:6.1f} s] {plain(text)}", flush=True)


class SilentView:
    """Prints nothing but errors, on standard error: for `--json`."""

    shows: tuple[type[Message], ...] = ()

    def __init__(self, title: str = "", *, live: bool = False) -> None:
        """Takes what every view takes."""

    def message(self, stamped: Stamped[Any]) -> None:
        """Shows nothing."""

    def process(self, name: str, pid: int, state: str) -> None:
        """Shows nothing."""

    def log(self, level: str, source: str, text: str, at_s: float | None = None) -> None:
        if level in ("error", "critical"):
            print(f"{source}: {plain(text)}", file=sys.stderr, flush=True)

    def refresh(self, now_ns: int) -> None:
        """Shows nothing."""

    def close(self) -> None:
        """Shows nothing."""


class ViewLog(logging.Handler):
    """Shows the log records of this process, in which a run has its own clock, in a view."""

    def __init__(self, view: View, clock: Clock) -> None:
        super().__init__()
        self._view = view
        self._clock = clock

    def emit(self, record: logging.LogRecord) -> None:
        at_s = self._clock.now_ns() / NS_PER_S
        self._view.log(record.levelname.lower(), record.name.removeprefix("node."), record.getMessage(), at_s)
