"""`RateLimit`: which messages of a topic reach a receiver that wants only so many a second."""

from __future__ import annotations

from runtime.clock import NS_PER_S


class RateLimit:
    """Lets on average at most `hz` messages a second through, by their time of publication.

    Asked again for the same message, it answers the same. It keeps the phase: of a camera's 30 images a second, every
    second one passes at 15 Hz, even where they come a little early or late.
    """

    __slots__ = ("_last_ns", "_next_ns", "_period_ns")

    def __init__(self, hz: float) -> None:
        self._period_ns = round(NS_PER_S / hz)
        self._next_ns = self._last_ns = -1

    def allows(self, published_ns: int) -> bool:
        """Whether the message that was published at this time passes."""
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
