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

from runtime.clock import SystemClock

if TYPE_CHECKING:
    from selectors import EpollSelector
else:  # elsewhere than on Linux nobody makes one, but the module is there
    EpollSelector = getattr(selectors, "EpollSelector", selectors.SelectSelector)

_now_ns = SystemClock.now_ns


class Ticking(Protocol):
    """Something with ticks."""

    due_ns: int | None

    def tick(self) -> None:
        """Run what is due; called once `due_ns` is over."""
        ...


class StraightSelector(EpollSelector):
    """A selector that calls what is straight by itself, and returns the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[int, Callable[[], None]] = {}
        """By descriptor, what is called when it is readable; it is registered as well."""
        self.ticking: list[Ticking] = []
        self.tell_failure: Callable[[dict[str, Any]], None] = lambda context: None
        self._poll: Callable[[float, int], list[tuple[int, int]]] = self._selector.poll  # type: ignore[attr-defined]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for at most so many seconds, None without a limit, and until a tick is due."""
        due_ns = None
        for one in self.ticking:
            if (its_ns := one.due_ns) is not None and (due_ns is None or its_ns < due_ns):
                due_ns = its_ns
        if due_ns is not None:
            left_s = (due_ns - _now_ns()) * 1e-9
            if timeout is None or left_s < timeout:
                timeout = left_s
        wait_s = -1 if timeout is None else math.ceil(timeout * 1e3) * 1e-3 if timeout > 0 else 0
        try:
            ready = self._poll(wait_s, len(self.get_map()) or 1)
        except InterruptedError:
            return []
        found = []
        for fd, event in ready:
            call = self.calls.get(fd)
            if call is not None:
                self._run(call)
                continue
            try:
                key = self.get_key(fd)
            except KeyError:
                continue  # one that was called before it has removed it
            mask = (selectors.EVENT_READ if event & ~select.EPOLLOUT else 0) | (
                selectors.EVENT_WRITE if event & ~select.EPOLLIN else 0
            )
            found.append((key, mask & key.events))
        if due_ns is not None:
            now_ns = _now_ns()
            for one in tuple(self.ticking) if now_ns >= due_ns else ():
                if (its_ns := one.due_ns) is not None and now_ns >= its_ns:
                    self._run(one.tick)
        return found

    def _run(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as problem:  # noqa: BLE001  # as in asyncio: the loop goes on
            self.tell_failure({"message": f"{call} failed", "exception": problem})


class StraightLoop(asyncio.SelectorEventLoop):
    """The loop of a process of a run."""

    def __init__(self) -> None:
        self.straight = StraightSelector()
        super().__init__(self.straight)
        self.straight.tell_failure = self.call_exception_handler


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop for the handlers of a process; asyncio's own where the system has no epoll."""
    return StraightLoop() if hasattr(selectors, "EpollSelector") else asyncio.new_event_loop()
