"""`Journal`: what each handler call of a node read, published and took, so that a recording can be replayed exactly.

Kept only where a recorder hears it; sent in batches on `calls/<node>`, once a second and at the end.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from runtime.clock import Clock, to_s
from runtime.context import HandlerContext, current_call
from runtime.message import Epochs, Message

KEPT_CALLS = 8192
"""Of one batch; a node that makes more calls a second than this loses the rest, and says how many."""
KEPT_LINES = 256
"""Log lines of one batch."""


class CallRecord(Message):
    """One run of a handler. Messages are named "topic:source:seq".

    `order` counts the moments at which calls of this node saw or changed what it keeps. A call of a worker thread sees
    it at `begun` and changes it at `order`; any other does both at `order`.
    """

    message_durations = frozenset({"took_ns"})

    handler: str
    started_ns: int
    took_ns: int
    epochs: Epochs
    trigger: str = ""
    reads: tuple[str, ...] = ()  # "port=topic:source:seq" in order; "port=" where nothing was known
    nows_ns: tuple[int, ...] = ()  # what the clock said, after `started_ns`; empty where it stood still
    sent: tuple[str, ...] = ()  # "" where a fence voided the message
    is_cut: bool = False  # it read more than is kept
    order: int = 0
    begun: int = 0


class LogLine(Message):
    """One log line of a node; `level` as in Python's logging."""

    at_ns: int
    level: int
    text: str


class Calls(Message):
    """The calls of one node since the last batch, and its log lines."""

    node: str
    calls: tuple[CallRecord, ...]
    lost: int = 0  # calls that did not fit into this batch
    logs: tuple[LogLine, ...] = ()
    running: tuple[int, ...] = ()  # where the worker's calls began that have not ended yet


def calls_topic(node: str) -> str:
    """The topic of a node's journal."""
    return f"calls/{node}"


class Journal:
    """The calls of one node that have ended and are not sent yet."""

    def __init__(self) -> None:
        self._calls: list[CallRecord] = []
        self._lines: list[LogLine] = []
        self._lost = 0
        self._order = 0
        self._running: set[int] = set()
        self._lock = threading.Lock()

    def begin(self, call: HandlerContext) -> None:
        """A worker's call has seen the node (any thread)."""
        if call.notes is not None:
            with self._lock:
                self._order += 1
                call.notes.begun = self._order
                self._running.add(self._order)

    def end(self, handler: str, call: HandlerContext, now_ns: int) -> None:
        """A call has ended (any thread)."""
        notes = call.notes
        if notes is None:
            return
        stood_still = not any(notes.nows_ns)
        with self._lock:  # a batch holds every moment up to its last one
            self._order += 1
            self._running.discard(notes.begun)
            if len(self._calls) >= KEPT_CALLS:
                self._lost += 1
                return
            self._calls.append(
                CallRecord(
                    handler=handler,
                    started_ns=call.started_ns,
                    took_ns=now_ns - call.started_ns,
                    epochs=call.epochs,
                    trigger=call.trigger.envelope.ident if call.trigger is not None else "",
                    reads=tuple(notes.reads),
                    nows_ns=() if stood_still else tuple(notes.nows_ns),
                    sent=tuple(notes.sent),
                    is_cut=notes.is_cut,
                    order=self._order,
                    begun=notes.begun,
                )
            )

    def take(self, node: str) -> Calls | None:
        """What has come together since the last time; None where nothing has."""
        with self._lock:
            if not self._calls and not self._lines:
                return None
            batch = Calls(
                node=node,
                calls=tuple(self._calls),
                lost=self._lost,
                logs=tuple(self._lines),
                running=tuple(sorted(self._running)),
            )
            self._calls, self._lost, self._lines = [], 0, []
        return batch

    def say(self, line: LogLine) -> None:
        """Keep a log line (any thread); of too many in a second the rest is left to the terminal."""
        with self._lock:
            if len(self._lines) < KEPT_LINES:
                self._lines.append(line)


class JournalLog(logging.Handler):
    """Puts a node's log lines into its journal.

    What is logged with `extra={"secret": text}` is shown on the terminal, and recorded without that text.
    """

    def __init__(self, journal: Journal, clock: Clock) -> None:
        super().__init__(logging.INFO)
        self._journal = journal
        self._clock = clock

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
        except (TypeError, ValueError):  # the arguments do not fit the text
            text = f"{record.msg} {record.args}"
        if secret := getattr(record, "secret", ""):
            text = text.replace(str(secret), "(secret)")
        self._journal.say(LogLine(at_ns=self._clock.now_ns(), level=record.levelno, text=text[:8000]))


class JournalClock:
    """A node's clock that notes what it told a handler."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    @property
    def is_virtual(self) -> bool:
        return self._clock.is_virtual

    def now_ns(self) -> int:
        now_ns = self._clock.now_ns()
        call = current_call.get()
        if call is not None and call.notes is not None:
            call.notes.looked_at_clock(now_ns)
        return now_ns

    def now_s(self) -> float:
        return to_s(self.now_ns())

    def since_s(self, stamp_ns: int) -> float:
        return to_s(self.now_ns() - stamp_ns)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)  # sleep, external, and what else a clock can do
