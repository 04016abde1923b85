"""`StraightLoop`: an asyncio loop that runs handlers within its own wait, where they need nothing else of asyncio.

asyncio takes a dozen steps from the end of a wait to a callback, and as many to set a timer. After a rest of
milliseconds each of them costs microseconds. What comes straight for a lane, and a lane's next tick, are called here as
soon as the wait ends. All else goes asyncio's way, in the same turn.
"""

from __future__ import annotations

import asyncio
import math
import select
import selectors
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from runtime.clock import NS_PER_S, SystemClock

if TYPE_CHECKING:
    from selectors import EpollSelector
else:  # elsewhere than on Linux nobody makes one, but the module is there
    EpollSelector = getattr(selectors, "EpollSelector", selectors.SelectSelector)

_now_ns = SystemClock.now_ns
_MOST_READY = 64  # descriptors at once; the others are ready at the next turn, too
_MOST_SELECTED = 1024  # the numbers of descriptors that `select` takes are smaller


class Ticking(Protocol):
    """Something with ticks."""

    due_ns: int | None

    def tick(self) -> None:
        """Run what is due; called once `due_ns` is over."""
        ...


class StraightSelector(EpollSelector):
    """A selector that calls by itself what is straight, one thing after each wait, and returns the rest.

    It does so only while nothing else is to be done: what was scheduled meanwhile goes first, such as an order to stop.
    Where nothing was, it waits again: asyncio's own way from one wait to the next takes as many steps as a handler.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[int, Callable[[], object]] = {}
        """By descriptor, what is called when it is readable; it is registered as well."""
        self.ticking: list[Ticking] = []
        self.loop: Any = None
        """Asyncio's, set by it: what is scheduled in it goes before a further wait."""
        self._itself = [self.fileno()] if self.fileno() < _MOST_SELECTED else []
        self._has_ticked = False  # the last time: then what is readable goes first
        self._poll: Callable[[float, int], list[tuple[int, int]]] = self._selector.poll  # type: ignore[attr-defined]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for at most so many seconds, None without a limit, and until a tick is due."""
        loop, left_s = self.loop, timeout
        end_ns, timers = _now_ns() + round((timeout or 0.0) * NS_PER_S), len(loop._scheduled)
        while True:
            first, due_ns = None, 0
            for one in self.ticking:
                if one.due_ns is not None and (first is None or one.due_ns < due_ns):
                    first, due_ns = one, one.due_ns
            try:
                ready = self._wait(left_s, due_ns if first is not None else None)
            except InterruptedError:
                return []
            is_due = first is not None and _now_ns() >= due_ns
            call = self.calls.get(ready[0][0]) if len(ready) == 1 else None
            if timeout is not None and timeout <= 0:  # asyncio has something to do
                break
            if is_due and first is not None and (not ready or (call is not None and not self._has_ticked)):
                self._has_ticked, call = True, first.tick
            elif call is not None:
                self._has_ticked = False
            else:
                break
            try:
                call()
            except Exception as problem:  # noqa: BLE001  # as in asyncio: the loop goes on
                loop.call_exception_handler({"message": f"{call} failed", "exception": problem})
            if loop._ready or loop._stopping or len(loop._scheduled) != timers:
                return []
            if timeout is not None and (left_s := (end_ns - _now_ns()) * 1e-9) <= 0:
                return []
        if is_due and first is not None:
            loop.call_soon(first.tick)
        return [self._found(self.get_key(fd), event) for fd, event in ready]

    def _wait(self, timeout_s: float | None, due_ns: int | None) -> list[tuple[int, int]]:
        """Wait for at most so many seconds, and until then; returns what is ready. Raises InterruptedError."""
        wait_s = -1.0 if timeout_s is None else timeout_s
        if due_ns is not None and wait_s != 0:
            left_s = max(0.0, (due_ns - _now_ns()) * 1e-9)
            if timeout_s is None or left_s < timeout_s:
                wait_s = 0.0
                if left_s > 0 and self._itself:  # epoll itself counts in milliseconds
                    if not select.select(self._itself, (), (), left_s)[0]:
                        return []
                elif left_s > 0:
                    wait_s = left_s
        return self._poll(math.ceil(wait_s * 1e3) * 1e-3 if wait_s > 0 else wait_s, _MOST_READY)

    def _found(self, key: selectors.SelectorKey, event: int) -> tuple[selectors.SelectorKey, int]:
        reads = selectors.EVENT_READ if event & ~select.EPOLLOUT else 0
        writes = selectors.EVENT_WRITE if event & ~select.EPOLLIN else 0
        return key, (reads | writes) & key.events


class StraightLoop(asyncio.SelectorEventLoop):
    """The loop of a process of a run."""

    def __init__(self) -> None:
        self.straight = StraightSelector()
        super().__init__(self.straight)
        self.straight.loop = self


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop for the handlers of a process; asyncio's own where the system has no epoll."""
    return StraightLoop() if hasattr(selectors, "EpollSelector") else asyncio.new_event_loop()
