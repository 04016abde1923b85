"""`RateLimit`: which messages of a topic somebody gets who wants at most so many a second."""

from __future__ import annotations

from runtime.clock import NS_PER_S


class RateLimit:
    """Lets messages through, at most `hz` a second on average, by when they were published.

    Asked again for the same message, it says the same. Their phase is kept: of a camera's 30 images every second one is
    let through at 15 Hz, also where they come a little early or late.
    """

    __slots__ = ("_last_ns", "_next_ns", "_period_ns")

    def __init__(self, hz: float) -> None:
        self._period_ns = round(NS_PER_S / hz)
        self._next_ns = self._last_ns = -1

    def allows(self, published_ns: int) -> bool:
        """Whether the message that was published then is let through."""
        if published_ns == self._last_ns:
            return True
        if published_ns < self._next_ns - self._period_ns // 5:  # so much early is early enough
            return False
        self._last_ns = published_ns
        is_first = self._next_ns < 0
        self._next_ns = max(
            self._next_ns + self._period_ns, published_ns + (self._period_ns if is_first else self._period_ns // 2)
        )
        return True
