"""`Clock`: the only source of time. Nanoseconds inside, seconds at the edge; nobody else reads the system's clock."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Protocol, TypeVar

T = TypeVar("T")

NS_PER_S = 1_000_000_000


LONGEST_NS = 1 << 61
"""Seventy years: longer than anything here lasts; twice of it fits into 64 bits."""


def to_ns(seconds: float) -> int:
    """Seconds as whole nanoseconds, rounded to nearest; what is longer than LONGEST_NS is as long as that."""
    number = seconds * NS_PER_S
    return LONGEST_NS if number >= LONGEST_NS else round(number)


def to_s(ns: float) -> float:
    """Nanoseconds as seconds, the nearest number there is: `to_s(to_ns(0.3)) > 0.3` is False, to the nanosecond."""
    return ns / NS_PER_S


class Clock(Protocol):
    """What nodes know of time."""

    @property
    def is_virtual(self) -> bool:
        """True where time stands still between events."""
        ...

    def now_ns(self) -> int:
        """Monotonic time; only differences mean anything."""
        ...

    def now_s(self) -> float:
        """The same in seconds."""
        ...

    def since_s(self, stamp_ns: int) -> float:
        """Seconds from a stamp of this clock until now."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds of this clock."""
        ...

    async def external(self, call: Awaitable[T], latency_s: float) -> T:
        """Await a call to the outside world.

        In real time it takes as long as it takes; in virtual time the clock stands still while the world answers and
        the answer arrives `latency_s` later.
        """
        ...


class SystemClock:
    """The machine's monotonic clock, shared by all processes of a host."""

    @property
    def is_virtual(self) -> bool:
        return False

    now_ns = staticmethod(time.monotonic_ns)  # asked for several times at each message: no step of our own

    def now_s(self) -> float:
        return to_s(self.now_ns())

    def since_s(self, stamp_ns: int) -> float:
        return to_s(self.now_ns() - stamp_ns)

    async def sleep(self, seconds: float) -> None:
        import asyncio  # not at the top: an emergency stop at a terminal does without, and starts sooner

        await asyncio.sleep(seconds)

    async def external(self, call: Awaitable[T], latency_s: float) -> T:
        return await call

    def block(self, seconds: float) -> None:
        """Hold up this thread: for commands without a loop, never for nodes."""
        time.sleep(seconds)


def wall_time_text() -> str:
    """Local wall-clock time for file names, like "20260131-235959"."""
    return time.strftime("%Y%m%d-%H%M%S")


def wall_time_ns() -> int:
    """Wall-clock time for file names and recordings; no decision may depend on it."""
    return time.time_ns()
