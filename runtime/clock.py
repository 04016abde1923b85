"""`Clock`: the only source of time. Nanoseconds inside, seconds at the edge; nobody else reads the system's clock."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from runtime.external_call import ANSWER_TIMEOUT_S, CLOSING_S, answer_of, as_awaitable

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

NS_PER_S = 1_000_000_000


LONGEST_NS = 1 << 61
"""Longest duration, seventy years in ns; twice of it fits into 64 bits."""


def to_ns(seconds: float) -> int:
    """Turn seconds into whole nanoseconds, rounded to the nearest and at most LONGEST_NS. Raises ValueError for NaN."""
    number = seconds * NS_PER_S
    return LONGEST_NS if number >= LONGEST_NS else round(number)


def to_s(ns: float) -> float:
    """Turn nanoseconds into seconds, the nearest float: `to_s(to_ns(0.3)) > 0.3` is False, to the nanosecond."""
    return ns / NS_PER_S


def run_to_end(made: Coroutine[Any, Any, T]) -> T:
    """Run it as `asyncio.run` does; a call that goes on although it was cancelled is told, and left behind."""
    import asyncio

    runner = asyncio.Runner()
    try:
        return runner.run(made)
    finally:
        close_runner(runner)


def close_runner(runner: asyncio.Runner) -> None:
    """Close it as it does itself, but wait only a moment for what ignores its cancel."""
    import asyncio
    import logging

    async def cancelled() -> set[asyncio.Task[Any]]:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        return (await asyncio.wait(others, timeout=CLOSING_S))[1] if others else set()

    if left := runner.run(cancelled()):
        names = ", ".join(sorted({str(getattr(task.get_coro(), "__qualname__", "a call")) for task in left}))
        logging.getLogger("clock").warning("%s goes on although it was cancelled, and is left behind", names)
        loop = runner.get_loop()
        loop.set_exception_handler(lambda *_: None)  # it is told already
        loop.close()  # the runner would wait for it for ever
        return
    runner.close()


class Clock(Protocol):
    """The time of a run, real or virtual, as nodes see it: `self.clock`."""

    @property
    def is_virtual(self) -> bool:
        """True where time stands still between events."""
        ...

    def now_ns(self) -> int:
        """Return the monotonic time in ns; only differences mean anything."""
        ...

    def now_s(self) -> float:
        """Return the same in seconds."""
        ...

    def since_s(self, stamp_ns: int) -> float:
        """Return the seconds from `stamp_ns`, a stamp of this clock, until now."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds of this clock."""
        ...

    async def external(
        self,
        call: Awaitable[T] | Callable[[], Awaitable[T]],
        latency_s: float = 0.0,
        *,
        timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> T:
        """Await a call to the outside world, such as a request to a model, and return its answer.

        `call` is what an async function returns, or the async function itself. In real time it takes as long as it
        takes. In virtual time the clock stands still while the world answers, and the answer arrives `latency_s` later.
        A recording keeps the answer, where it is a plain value, and no word of what was asked. A call that has not
        answered after `timeout_s`, 300 s of real time, is cancelled. Raises what the call raises, NoAnswerError (a
        TimeoutError) for one that was given up so, and UserError where there is nothing to await.
        """
        ...


class TimeSource(ABC):
    """What all clocks have alike. Each says what time it is, and how a call to the world outside is answered."""

    @abstractmethod
    def now_ns(self) -> int:
        """The time now, ns."""

    def now_s(self) -> float:
        """The same in seconds."""
        return to_s(self.now_ns())

    def since_s(self, stamp_ns: int) -> float:
        """Seconds from a stamp of this clock in ns until now."""
        return to_s(self.now_ns() - stamp_ns)

    async def external(
        self,
        call: Awaitable[T] | Callable[[], Awaitable[T]],
        latency_s: float = 0.0,
        *,
        timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> T:
        """As `Clock.external` says. Raises UserError where there is nothing to await."""
        return await self.answered(as_awaitable(call, latency_s, timeout_s), latency_s, timeout_s)

    @abstractmethod
    async def answered(self, call: Awaitable[T], latency_s: float, timeout_s: float) -> T:
        """The answer to a call that has been looked at, and was not made yet."""


class SystemClock(TimeSource):
    """The machine's monotonic clock, shared by all processes of a host."""

    @property
    def is_virtual(self) -> bool:
        """False."""
        return False

    now_ns = staticmethod(time.monotonic_ns)  # asked for several times at each message: no step of our own

    async def sleep(self, seconds: float) -> None:
        """Wait for this many seconds."""
        import asyncio  # not at the top: an emergency stop at a terminal does without, and starts sooner

        await asyncio.sleep(seconds)

    async def answered(self, call: Awaitable[T], latency_s: float, timeout_s: float) -> T:
        """Await the call and return its answer; `latency_s` applies in virtual time only."""
        return await answer_of(call, timeout_s)

    def block(self, seconds: float) -> None:
        """Block this thread for this many seconds: for commands without a loop, never for nodes."""
        time.sleep(seconds)


def wall_time_text() -> str:
    """Return the local wall-clock time for file names, like "20260131-235959"."""
    return time.strftime("%Y%m%d-%H%M%S")


def wall_time_ns() -> int:
    """Return the wall-clock time in ns since 1970, for file names and recordings; no decision may depend on it."""
    return time.time_ns()


OWN_CPU = time.CLOCK_THREAD_CPUTIME_ID
"""For `cpu_ns`: the processor time of whichever thread asks."""
TELLS_CPU_OF_THREADS = hasattr(time, "pthread_getcpuclockid")
"""Whether one thread can ask for the processor time of another here."""


def cpu_clock() -> int:
    """Return the clock of the calling thread's processor time, which other threads may give to `cpu_ns`."""
    import threading

    return time.pthread_getcpuclockid(threading.get_ident())


def cpu_ns(clock: int) -> int:
    """Return the processor time that a thread has used, ns; 0 once it has ended."""
    try:
        return time.clock_gettime_ns(clock)
    except OSError:
        return 0
