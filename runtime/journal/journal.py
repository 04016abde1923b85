"""`Journal`: gathers what each handler call of a node read, published and used, and its log lines, for a recording.

It is kept only where a recorder is in the graph, and sent in batches on `calls/<node>`, once a second and at the end.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from runtime.clock import Clock, TimeSource
from runtime.context import KEPT_READS, HandlerContext, current_call
from runtime.errors import RecordingError
from runtime.journal.answers import CANCELLED, SLEPT, WOKEN, blotted, written, written_failure
from runtime.journal.calls import CallRecord, Calls, LogLine
from runtime.operating_system.telling import text_of

T = TypeVar("T")

KEPT_CALLS = 8192
"""Most calls of one batch; a node that makes more in a second loses the others, and says how many."""
KEPT_LINES = 256
"""Most log lines of one batch."""


class Journal:
    """The calls of one node that have ended and were not sent yet."""

    def __init__(self) -> None:
        self._calls: list[CallRecord] = []
        self._lines: list[LogLine] = []
        self._lost = 0
        self._order = 0
        self._running: set[int] = set()
        self._lock = threading.Lock()

    def begin(self, call: HandlerContext) -> None:
        """Note that a worker's call has looked at the node, or that an async call begins (any thread)."""
        if call.notes is not None:
            with self._lock:
                self._order += 1
                call.notes.begun = self._order
                self._running.add(self._order)

    def end(self, handler: str, call: HandlerContext, now_ns: int) -> None:
        """Note that a call has ended (any thread)."""
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
                    waits=tuple(notes.waits),
                )
            )

    def go_on(self, call: HandlerContext, answer: str) -> None:
        """Note that an async call goes on after a wait, with an answer from outside or with none (any thread)."""
        if call.notes is not None:
            with self._lock:
                self._order += 1
                if len(call.notes.waits) < KEPT_READS:
                    call.notes.waits.append((self._order, answer))
                else:
                    call.notes.is_cut = True

    def take(self, node: str) -> Calls | None:
        """The calls and lines since the last batch; None where there are none."""
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
        """Keep a log line (any thread); beyond the bound, lines appear on the terminal only."""
        with self._lock:
            if len(self._lines) < KEPT_LINES:
                self._lines.append(line)


_MOST_READ, _MOST_KEPT = 16_000, 8_000  # characters of a log line; blotted before the cut, which may halve a key


class JournalLog(logging.Handler):
    """Puts a node's log lines into its journal.

    A record logged with `extra={"secret": text}` is shown on the terminal, and recorded without that text.
    """

    def __init__(self, journal: Journal, clock: Clock) -> None:
        super().__init__(logging.INFO)
        self._journal = journal
        self._clock = clock

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one log record."""
        text = text_of(record)
        if secret := getattr(record, "secret", ""):
            text = text.replace(str(secret), "(secret)")
        self._journal.say(
            LogLine(at_ns=self._clock.now_ns(), level=record.levelno, text=blotted(text[:_MOST_READ])[:_MOST_KEPT])
        )


class JournalClock(TimeSource):
    """A node's clock that notes which times it gave to a handler, and what the world outside answered."""

    def __init__(self, clock: Clock, journal: Journal) -> None:
        self._clock = clock
        self._journal = journal

    @property
    def is_virtual(self) -> bool:
        """Whether the run is in virtual time."""
        return self._clock.is_virtual

    def now_ns(self) -> int:
        """The time now, ns; noted."""
        now_ns = self._clock.now_ns()
        call = current_call.get()
        if call is not None and call.notes is not None:
            call.notes.looked_at_clock(now_ns)
        return now_ns

    async def sleep(self, seconds: float) -> None:
        """Wait for that long; noted."""
        await self._noted(self._clock.sleep(seconds), lambda _: SLEPT, WOKEN)

    async def answered(self, call: Awaitable[T], latency_s: float, timeout_s: float) -> T:
        """The answer of the world outside; noted, where it is a plain value. This is the one place that keeps it."""
        return await self._noted(self._clock.external(call, latency_s, timeout_s=timeout_s), _kept, CANCELLED)

    async def _noted(self, wait: Awaitable[T], kept: Callable[[T], str], ended: str) -> T:
        call = current_call.get()
        if call is None:
            return await wait
        try:
            answer = await wait
        except asyncio.CancelledError:
            self._journal.go_on(call, ended)
            raise
        except Exception as problem:
            self._journal.go_on(call, written_failure(problem))
            raise
        self._journal.go_on(call, kept(answer))
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)  # what else a clock can do


def _kept(answer: object) -> str:
    try:
        return written(answer)
    except RecordingError as problem:
        return written_failure(problem)  # a replay raises it, and tells why it goes no further
