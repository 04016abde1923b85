"""`SlowCalls` names handlers that blocked all others of their process; `LongCalls` those that do not return.

For the second no call records anything: another thread looks from time to time at what the handlers' threads execute.
"""

from __future__ import annotations

import inspect
import logging
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, NamedTuple

from runtime.clock import NS_PER_S, SystemClock, to_ns
from runtime.execution.lane import Lane
from runtime.node import Node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runtime.execution.bound_node import BoundNode

SLOW_S = 0.1
"""A plain handler that runs for longer than this, s, and than its period is reported."""
BLOCKS_S = 0.5
"""A plain handler without a period is reported from this duration on, s."""
_LOOK_S = 0.5
_MOST_S = 60.0  # at least so often it is told again
_START = "on_start"
_START_S = 5.0  # it may load a model: told from here on


class SlowCalls:
    """Which plain handlers of one node blocked all others of their process; for the thread that runs them."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._worst: dict[str, tuple[float, float, int]] = {}  # handler -> its longest, its period, how often

    def tell(self, handler: str, took_s: float, period_s: float) -> None:
        """Note the duration of a call; `period_s` is 0 for one that is no timer. The first is logged at once."""
        if took_s < max(period_s, SLOW_S if period_s else BLOCKS_S):
            return
        worst_s, _, number = self._worst.get(handler, (0.0, 0.0, 0))
        self._worst[handler] = (max(took_s, worst_s), period_s, number + 1)
        if not number:
            self._log.warning("%s took %s", handler, _took(took_s, period_s))

    def tell_unended(
        self, handler: str, place: str, for_s: float, period_s: float, then: str = "make it blocking or async"
    ) -> None:
        """Log that a call has not returned: its line, and what to do or expect (any thread)."""
        of = f" of its {period_s:.3g} s" if period_s else ""
        self._log.warning("%s still runs after %.1f s%s, at %s; %s", handler, for_s, of, place, then)

    def sum_up(self) -> None:
        """Log at the end which handlers were slow, and how often."""
        for handler, (worst_s, period_s, number) in self._worst.items():
            often = f"{number} times" if number > 1 else "once"
            self._log.warning("%s took up to %s; %s in this run", handler, _took(worst_s, period_s), often)


class _Seen(NamedTuple):
    """What a thread was in, and how often it had done something by then."""

    node: str
    handler: str
    progress: int


class _Watched:
    """A thread that runs handlers; `loop` where it is that of the asyncio loop."""

    def __init__(self, ident: int, progress: Callable[[], int], move_on: Callable[[], None]) -> None:
        self.ident = ident
        self.progress = progress
        self.move_on = move_on
        self.seen: _Seen | None = None
        self.since_ns = 0
        self.tell_ns = 0


class LongCalls:
    """Watches the calls of these nodes' handlers that block others; `look` is for one thread that runs no handlers."""

    def __init__(self, nodes: Iterable[BoundNode], now_ns: Callable[[], int] = SystemClock.now_ns) -> None:
        self._nodes = {bound.name: bound for bound in nodes}
        self._now_ns = now_ns
        self._threads: list[_Watched] = []
        self._is_ending = False
        self._codes: dict[int, str] = {}  # by the identity of their code: its hash is one of all that is in it
        for bound in self._nodes.values():
            self._codes[id(_code_of(bound.node, _START))] = _START
            for lane in bound.lanes:
                if lane.style != "blocking":
                    for handler in lane.handlers:
                        self._codes[id(_code_of(bound.node, handler))] = handler

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Watch the calling thread while it starts the nodes."""
        self._threads.append(_Watched(threading.get_ident(), lambda: 0, _nothing))
        try:
            yield
        finally:
            self._threads.clear()

    def watch_loop(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        """Watch the calling thread, which runs a loop; `call_soon` schedules a call in it (any thread)."""
        turns = 0

        def turn() -> None:
            nonlocal turns
            turns += 1

        def move_on() -> None:
            try:
                call_soon(turn)
            except RuntimeError:
                pass  # the loop is closed: the process ends

        self._threads.append(_Watched(threading.get_ident(), lambda: turns, move_on))

    def watch_thread(self, thread: threading.Thread, lane: Lane) -> None:
        """Watch a thread that drives a lane of plain handlers."""
        if thread.ident is not None:
            self._threads.append(_Watched(thread.ident, lambda: lane.calls, _nothing))

    def end(self) -> None:
        """The process is asked to stop: the next look reports once more whatever keeps it from stopping."""
        self._is_ending = True

    def look(self) -> None:
        """Report each call that runs for longer than it may, and again whenever that time has doubled."""
        now_ns, frames = self._now_ns(), sys._current_frames()
        is_ending, self._is_ending = self._is_ending, False
        for thread in self._threads:
            frame = self._handler_frame(frames.get(thread.ident))
            node = frame.f_locals.get("self") if frame is not None else None
            if frame is None or not isinstance(node, Node) or node.name not in self._nodes:
                thread.seen = None
                continue
            seen = _Seen(node.name, self._codes[id(frame.f_code)], thread.progress())
            period_s = self._nodes[node.name].period_s(seen.handler)
            if seen != thread.seen:
                thread.seen, thread.since_ns = seen, now_ns
                thread.tell_ns = now_ns + to_ns(_START_S if seen.handler == _START else max(period_s, BLOCKS_S))
                thread.move_on()
            elif now_ns >= thread.tell_ns or is_ending:
                for_ns = now_ns - thread.since_ns
                thread.tell_ns = now_ns + min(for_ns, to_ns(_MOST_S))
                place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                tell = self._nodes[node.name].slow.tell_unended
                if seen.handler == _START:
                    tell(seen.handler, place, for_ns / NS_PER_S, 0.0, "the run waits for it")
                else:
                    tell(seen.handler, place, for_ns / NS_PER_S, period_s)

    def _handler_frame(self, frame: FrameType | None) -> FrameType | None:
        """The frame of the handler that a thread is in."""
        found = None
        while frame is not None:
            if id(frame.f_code) in self._codes:
                found = frame
            frame = frame.f_back
        return found

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look regularly on a thread that this starts, for a process without another thread that could."""
        is_over = threading.Event()

        def watch() -> None:
            while not is_over.wait(_LOOK_S):
                self.look()

        thread = threading.Thread(target=watch, name="long-calls", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


def _took(took_s: float, period_s: float) -> str:
    of = f" of its {period_s:.3g} s" if period_s else ", and nothing else of its process ran meanwhile"
    return f"{took_s:.1f} s{of}; make it blocking or async"


def _code_of(node: Node, handler: str) -> CodeType:
    """The code that a user wrote, also under decorators."""
    code: CodeType = inspect.unwrap(getattr(type(node), handler)).__code__
    return code


def _nothing() -> None:
    """A lane counts its calls by itself."""
