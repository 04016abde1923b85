"""Virtual time: a scheduler with a total order (time, priority, sequence), a clock and an asyncio loop on it.

Nothing waits for real: when all that was due at one time has run, time jumps to the next entry.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from asyncio import events
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from contextvars import Context
from dataclasses import dataclass
from itertools import count
from typing import Any, NoReturn, TypeVar

from runtime.clock import NS_PER_S, TimeSource, close_runner
from runtime.context import current_call
from runtime.errors import EscapeError, NoAnswerError, UserError
from runtime.external_call import answer_of
from runtime.virtual.sandbox import DeterminismGuard

T = TypeVar("T")

TOLD_EVERY_S = 10.0
"""How often a wait for the outside world is reported, s of real time."""

DELIVERY, TIMER = 0, 1
"""Priorities within one instant: messages arrive before ticks run."""


class Scheduler:
    """Callbacks in order of (time, priority, sequence)."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._sequence = count()  # one step: a finalizer may schedule something in the middle of `at`
        self._heap: list[tuple[int, int, int, Callable[[], object]]] = []

    def at(self, time_ns: int, callback: Callable[[], object], *, priority: int = DELIVERY) -> None:
        """Run the callback at this time, or now where it has passed."""
        heapq.heappush(self._heap, (max(time_ns, self.now_ns), priority, next(self._sequence), callback))

    @property
    def next_ns(self) -> int | None:
        """When the next callback is due; None where there is none."""
        return self._heap[0][0] if self._heap else None

    def step(self) -> None:
        """Jump to the time of the next callback and run it."""
        self.now_ns, _, _, callback = heapq.heappop(self._heap)
        callback()


class VirtualLoop(asyncio.BaseEventLoop):
    """An asyncio loop whose callbacks run on the scheduler, so that sleeps, timeouts and queues take virtual time."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler
        self.watch: DeterminismGuard | None = None

    def __del__(self, _warn: object = None) -> None:
        """Holds no socket and no selector: there is nothing to close."""

    def time(self) -> float:
        """The virtual time, s."""
        return self._scheduler.now_ns / NS_PER_S

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> events.Handle:  # type: ignore[override]
        """Run the callback at the present virtual time, after what is due already."""
        handle = events.Handle(callback, args, self, context)
        self._scheduler.at(self._scheduler.now_ns, lambda: self._run(handle))
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> events.TimerHandle:
        """Run the callback after `delay` seconds of virtual time."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> events.TimerHandle:
        """Run the callback at this virtual time, s."""
        handle = events.TimerHandle(when, callback, args, self, context)
        self._scheduler.at(round(when * NS_PER_S), lambda: self._run(handle))
        return handle

    def _run(self, handle: events.Handle) -> None:
        if handle.cancelled():
            return
        watch = self.watch
        if watch is None or handle._context.get(current_call) is None:  # type: ignore[attr-defined]  # the loop's own
            handle._run()
            return
        watch.begin("")
        try:
            handle._run()
        finally:
            watch.end()

    def _timer_handle_cancelled(self, handle: events.TimerHandle) -> None:
        """A cancelled entry stays on the heap and does nothing when its time comes."""

    def call_soon_threadsafe(self, *_: Any, **__: Any) -> NoReturn:  # type: ignore[override]  # always refuses
        """Refuse: a thread would call into virtual time. Raises EscapeError."""
        raise EscapeError("a thread called into virtual time; use clock.external() for what happens outside")

    async def create_connection(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: a connection would leave virtual time. Raises EscapeError."""
        self._refuse_socket()

    async def create_server(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: a server would leave virtual time. Raises EscapeError."""
        self._refuse_socket()

    async def sock_connect(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: a socket would leave virtual time. Raises EscapeError."""
        self._refuse_socket()

    def _refuse_socket(self) -> NoReturn:
        if self.watch is not None and self.watch.place:
            self.watch.event("socket.connect")
        raise EscapeError("a handler opened a socket in virtual time; await the call inside self.clock.external()")

    def run_in_executor(self, *_: Any, **__: Any) -> NoReturn:  # type: ignore[override]  # always refuses
        """Refuse: a thread would leave virtual time. Raises EscapeError."""
        if self.watch is not None and self.watch.place:
            self.watch.event("_thread.start_new_thread")
        raise EscapeError("a handler started a thread in virtual time; mark it blocking=True instead")


@dataclass(frozen=True, slots=True)
class OutsideCall:
    """A call to the outside world that virtual time waits for, and the future for its answer."""

    call: Awaitable[Any]
    timeout_s: float
    future: asyncio.Future[Any]


class VirtualClock(TimeSource):
    """Reads a scheduler's time."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.watch: DeterminismGuard | None = None
        self._outside: asyncio.Runner | None = None
        self.outside_calls: list[OutsideCall] | None = None
        """Where a list: calls to the outside wait here for whoever drives this clock (`Simulation.run_async`)."""

    @property
    def is_virtual(self) -> bool:
        """True."""
        return True

    def now_ns(self) -> int:
        """The virtual time, ns."""
        return self._scheduler.now_ns

    async def sleep(self, seconds: float) -> None:
        """Wait for this many seconds of virtual time."""
        await asyncio.sleep(seconds)

    async def answered(self, call: Awaitable[T], latency_s: float, timeout_s: float) -> T:
        """Await a call to the outside while virtual time stands still; its answer arrives `latency_s` later."""
        loop = events.get_running_loop()
        if isinstance(call, asyncio.Future) and not call.done() and call.get_loop() is loop:
            raise UserError(
                "clock.external: a task is of the run, which stands still while the world answers in virtual time; "
                "write `await self.clock.external(client.ask(...))` with the call itself"
            )
        answer: T | None = None
        failure: Exception | None = None
        try:
            if self.outside_calls is not None:
                future: asyncio.Future[T] = loop.create_future()
                self.outside_calls.append(OutsideCall(call, timeout_s, future))
                answer = await future
            else:
                answer = self._stand_still(call, timeout_s)
        except Exception as problem:  # noqa: BLE001  # handed on below, at its virtual time
            failure = problem
        wait_s = failure.waited_s if isinstance(failure, NoAnswerError) else latency_s
        if wait_s or self.outside_calls is None:
            await asyncio.sleep(wait_s)
        if failure is not None:
            raise failure
        return answer  # type: ignore[return-value]  # T may itself be None

    def _stand_still(self, call: Awaitable[T], timeout_s: float) -> T:
        """What the world answers; meanwhile nothing else happens."""
        if self._outside is None:
            self._outside = asyncio.Runner()
        loop = events.get_running_loop()
        who = self.watch.place if self.watch is not None else ""
        events._set_running_loop(None)
        try:
            with self.watch.outside() if self.watch is not None else nullcontext():
                return self._outside.run(_awaited(answer_of(call, timeout_s), who or "a handler"))
        finally:
            events._set_running_loop(loop)

    def close(self) -> None:
        """Close what `external` used."""
        if self._outside is not None:
            close_runner(self._outside)
            self._outside = None


async def _awaited(call: Awaitable[T], who: str) -> T:
    """What the world answers; that it takes its time is told, for meanwhile nothing else happens."""
    loop = asyncio.get_running_loop()
    telling: list[asyncio.TimerHandle] = []

    def wait_on(waited_s: float) -> None:
        if waited_s:
            logging.getLogger("clock").warning(
                "%s has waited %g s for the world outside; virtual time stands still until it answers", who, waited_s
            )
        telling[:] = [loop.call_later(TOLD_EVERY_S, wait_on, waited_s + TOLD_EVERY_S)]

    wait_on(0.0)
    try:
        return await call
    finally:
        telling[0].cancel()
