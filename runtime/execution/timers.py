"""Timers of a lane: when a tick is due, what becomes of missed ones; and the deadlines of its ports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime.clock import NS_PER_S, to_ns
from runtime.errors import MissedTickError
from runtime.histogram import TimerStats
from runtime.node import MOST_TO_CATCH_UP, Timer
from runtime.ports import Subscription


class TimerState:
    """One timer of one node: when its next tick is due, and how the past ones went."""

    def __init__(self, timer: Timer, hz: float, fail: Callable[[str, MissedTickError], None] = lambda *_: None) -> None:
        """`fail` is told the handler and what it missed, where its overrun is an error."""
        self.fail = fail
        self.timer = timer
        self.hz = hz
        self.start_ns = 0
        self.next_tick = 0
        self.stats = TimerStats()
        self.due_ns = 0  # kept rather than computed: asked for at each message
        self.has_run = False  # since the lane handled a message

    def start(self, now_ns: int) -> None:
        """Set the phase: the first tick is due now, or a part of a period later."""
        self.start_ns = self.due_ns = now_ns + round(self.timer.phase * NS_PER_S / self.hz)
        self.next_tick = 0

    def take(self, now_ns: int) -> bool:
        """True where a tick is due. Missed ticks are skipped and counted, or run one by one; the phase stays."""
        due_ns = self.due_ns
        if now_ns < due_ns:
            return False
        next_ns = self.start_ns + round((self.next_tick + 1) * NS_PER_S / self.hz)  # `_tick_ns`, without a call
        if now_ns < next_ns:  # nearly always: no tick was missed
            self.stats.tick(now_ns, now_ns - due_ns, 0)
            self.next_tick += 1
            self.due_ns = next_ns
            return True
        newest = max(self.next_tick, int((now_ns - self.start_ns) * self.hz / NS_PER_S))
        while self._tick_ns(newest) > now_ns:
            newest -= 1  # the float above may be one tick ahead
        while self._tick_ns(newest + 1) <= now_ns:
            newest += 1  # or behind
        if self.timer.overrun == "catch-up":
            newest = max(self.next_tick, newest - MOST_TO_CATCH_UP + 1)
        skipped = newest - self.next_tick
        if skipped and self.timer.overrun == "error":
            self.fail(self.timer.name, self._missed(skipped, now_ns - self._tick_ns(self.next_tick)))
        self.stats.tick(now_ns, now_ns - self._tick_ns(newest), skipped)
        self.next_tick = newest + 1
        self.due_ns = self._tick_ns(self.next_tick)
        return True

    def _missed(self, number: int, late_ns: int) -> MissedTickError:
        ticks = "1 tick" if number == 1 else f"{number} ticks"
        return MissedTickError(
            f"missed {ticks} at {self.hz:g} Hz: late by {late_ns / NS_PER_S:.3f} s; make what takes so long in its "
            "process blocking or async, or lower its hz"
        )

    def _tick_ns(self, tick: int) -> int:
        """Start + k x period, in whole nanoseconds without drift."""
        return self.start_ns + round(tick * NS_PER_S / self.hz)


class FollowingTimer(TimerState):
    """A timer that follows the messages of a port: it ticks when one comes, so that its output is as fresh as that
    message.

    Messages that come faster than its rate are skipped. Where they come more slowly, the ticks between two of them
    divide the time evenly. Where none comes for half a tick longer than expected, it ticks by itself.
    """

    def __init__(self, timer: Timer, hz: float, port: Subscription[Any]) -> None:
        super().__init__(timer, hz)
        self.port = port
        self._period_ns = self._step_ns = round(NS_PER_S / hz)
        self._seen_ns = 0  # the newest message that was looked at
        self._called_ns: int | None = None  # when the last one came that counted
        self._slot_ns = 0  # when the next one may come
        self._is_called = False
        self._between = 0  # ticks that are left until the next one is expected

    def start(self, now_ns: int) -> None:
        """Set the phase, and expect the first message at any time."""
        super().start(now_ns)
        self._slot_ns, self._called_ns = self.start_ns, None

    def listen(self, now_ns: int) -> bool:
        """Look at the port; returns whether a message came for which it should tick."""
        newest_ns = self.port.newest_ns
        if newest_ns == self._seen_ns:
            return False
        self._seen_ns = newest_ns
        if now_ns < self._slot_ns - self._period_ns // 4:
            return False
        self._slot_ns = max(self._slot_ns + self._period_ns, now_ns + self._period_ns * 3 // 4)
        since_ns = self._period_ns if self._called_ns is None else now_ns - self._called_ns
        count = max(1, int(since_ns / self._period_ns + _SLOWER)) if since_ns < _LONGEST * self._period_ns else 1
        self._between, self._step_ns = count - 1, since_ns // count if count > 1 else self._period_ns
        self._called_ns, self._is_called, self.due_ns = now_ns, True, now_ns
        return True

    def take(self, now_ns: int) -> bool:
        """True where a tick is due: for a message, between two of them, or because none came."""
        due_ns = self.due_ns
        if now_ns < due_ns:
            return False
        self.stats.tick(now_ns, now_ns - due_ns, 0)
        self.next_tick += 1
        if self._between:
            self._between -= 1
            self.due_ns = now_ns + self._step_ns
        else:
            self.due_ns = now_ns + (self._step_ns * 3 // 2 if self._is_called else self._period_ns)
            self._is_called = False
        return True


_SLOWER, _LONGEST = 0.05, 4


class Deadline:
    """Watches one port for a silence that is too long."""

    def __init__(self, handler: str, port: Subscription[Any]) -> None:
        assert port.qos.deadline_s is not None
        self.handler = handler
        self.port = port
        self.period_ns = to_ns(port.qos.deadline_s)
        self.due_ns = 0
        self._missed_after_ns = -1  # the arrival after which it was silent, as told already

    def start(self, now_ns: int) -> None:
        """Start the time now, as if a message had just come."""
        self.port.arrived_ns = max(self.port.arrived_ns, now_ns)
        self.due_ns = self.port.arrived_ns + self.period_ns

    def take(self, now_ns: int) -> bool:
        """True once for each silence that is too long."""
        if now_ns < self.due_ns:
            return False
        arrived_ns = self.port.arrived_ns
        self.due_ns = arrived_ns + self.period_ns
        if now_ns < self.due_ns:
            return False  # something came since
        self.due_ns = now_ns + self.period_ns  # look again then; a message wakes nobody for this
        if arrived_ns == self._missed_after_ns:
            return False
        self._missed_after_ns = arrived_ns
        self.port.deadlines_missed += 1
        return True
