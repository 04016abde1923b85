"""How fast a server is asked, and when not at all: slower after a 429, with growing pauses after failures."""

from __future__ import annotations

import asyncio
from collections import deque

FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 8.0
LONGEST_PAUSE_S = 20.0
"""So long at the most a node of a robot waits after failures in a row, whatever is known of the server."""
FAILURES_TO_OPEN = 3
"""So many failures in a row, of whoever asks, and the server counts as down."""
LONGEST_HOLD_S = 60.0
"""So long does one 429 hold the others back, whatever it asks for; then one of them hears it for itself."""
REFUSED_IS_DOWN = 6
"""So many times asked for fewer calls, a second or more apart and with no answer in between, is an outage."""
PROBE_S = 4.0
"""So often is a server asked then."""


class RequestPacer:
    """When the next call may leave: at a given rate, slower after a 429, slowly faster again. Times are the loop's.

    It is not slower than half the best rate of answers so far, while a tenth of the calls is answered: 429s
    that come whatever the rate is do not end in a halt. Where nothing at all was answered for a while, that was an
    outage and tells nothing of the rate: it is asked every few seconds, and after the first answer as fast as before.
    """

    def __init__(self, calls_per_minute: float = 0.0) -> None:
        self._given_gap_s = 60.0 / calls_per_minute if calls_per_minute else 0.0
        self._gap_s = self._given_gap_s
        self._next_s = 0.0
        self._slowed_s = -1e9
        self._answered: deque[float] = deque(maxlen=200)
        self._lately: deque[bool] = deque(maxlen=20)  # was the call answered, and no 429?
        self._best = 0.0  # answers a second, over ten of them
        self._refused = 0  # times in a row that it asked for fewer calls, with no answer in between
        self._before = (0.0, 0.0)  # gap and best rate before the first of them
        self._faster = asyncio.Event()

    async def turn(self, longest_s: float) -> bool:
        """Wait for the time at which a call may leave; False where that is not within so many seconds."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + longest_s
        while (at_s := self.next_s(now_s := loop.time())) > now_s:
            faster = self._faster
            try:
                async with asyncio.timeout_at(min(at_s, until_s)):
                    await faster.wait()  # then all places are given anew
            except TimeoutError:
                return at_s <= until_s
        return True

    def next_s(self, now_s: float) -> float:
        """The time at which the call that asks now may leave; it has that place."""
        at_s = max(now_s, self._next_s)
        self._next_s = at_s + self._gap_s
        return at_s

    def slower(self, now_s: float, after_s: float) -> None:
        """The server asks for fewer calls, and for none before `after_s` seconds have passed."""
        self._lately.append(False)
        if now_s - self._slowed_s > 1.0:  # those that were under way together are told the same thing
            if not self._refused:
                self._before = (self._gap_s, self._best)
            self._refused += 1
            if 10 * sum(self._lately) < len(self._lately):
                self._best /= 1.5  # the server can do less than it could
            lately = sum(at_s > now_s - 2.0 for at_s in self._answered) / 2.0
            known_s = 1.25 / lately if lately else 0.1
            slower_s = max(1.5 * self._gap_s, known_s if not self._gap_s else 0.0)
            self._gap_s = max(self._gap_s, min(slower_s, 2.0 / self._best if self._best else 30.0, 30.0))
            if self._refused >= REFUSED_IS_DOWN:
                self._gap_s = min(self._gap_s, max(PROBE_S, self._given_gap_s))
            self._slowed_s = now_s
        self._next_s = max(self._next_s, now_s + min(after_s, LONGEST_HOLD_S))

    def answered(self, now_s: float) -> None:
        """A call was answered: a little faster, down to the given rate.

        By 15 % up to 0.7 of the best rate so far, and then by a fiftieth, or by 0.1 calls/s (at most by 15 %).
        """
        if self._refused >= REFUSED_IS_DOWN:
            gap_s, self._best = self._before
            self._gap_s = min(self._gap_s, max(gap_s, self._given_gap_s))
            self._lately.clear()
            self._next_s = now_s + self._gap_s
            self._faster.set()
            self._faster = asyncio.Event()
        self._refused = 0
        self._answered.append(now_s)
        self._lately.append(True)
        if len(self._answered) >= 10:
            self._best = max(self._best, 9.0 / max(2.0, now_s - self._answered[-10]))
        if self._gap_s > self._given_gap_s:
            rate = 1.0 / self._gap_s
            rate += 0.15 * rate if rate < 0.7 * self._best else max(0.02 * rate, min(0.1, 0.15 * rate))
            self._gap_s = max(self._given_gap_s, 1.0 / rate if rate < 1e4 else 0.0)


class Breaker:
    """Whether a server is up, by what became of the calls to it. Times are the loop's."""

    def __init__(self) -> None:
        self.failures = 0  # in a row
        self._until_s = 0.0
        self._pauses = 0
        self._is_probing = False
        self._changed = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether nobody but one prober asks."""
        return self.failures >= FAILURES_TO_OPEN

    def is_resting(self, now_s: float) -> bool:
        """Whether nobody at all asks now."""
        return self.is_open and now_s < self._until_s

    async def enter(self) -> bool:
        """Return when a call may start; True for the one that finds out whether the server is back."""
        while self.is_open:
            wait_s = self._until_s - asyncio.get_running_loop().time()
            if wait_s <= 0 and not self._is_probing:
                self._is_probing = True
                return True
            changed = self._changed
            try:
                async with asyncio.timeout(wait_s if wait_s > 0 else None):
                    await changed.wait()
            except TimeoutError:
                pass
        return False

    def succeeded(self) -> None:
        """The server answers; everybody goes on."""
        self.failures = self._pauses = 0
        self._wake()

    def failed(self, now_s: float, after_s: float, jitter: float, *, is_probe: bool) -> None:
        """A call came to nothing: the next pause is twice as long, if this one was not under way since before it."""
        self.failures += 1
        if self.is_open and (is_probe or now_s >= self._until_s):
            wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0**self._pauses) * (1 + 0.5 * jitter)
            self._pauses = min(self._pauses + 1, 20)
            self._until_s = now_s + max(wait_s, after_s)

    def left(self) -> None:
        """The prober is gone, whatever it found."""
        self._is_probing = False
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
