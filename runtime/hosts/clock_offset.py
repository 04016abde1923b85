"""The offset between the clocks of two hosts, as bounds that hold whatever the delays of the network are."""

from __future__ import annotations

DRIFT = 200e-6
"""How far two clocks may drift apart, as a share of the time that passes; crystals keep within 100 ppm each."""


TRUST_NS = 100_000_000.0
"""How much younger than it is a message may be taken for, where the way out and the way back may differ that much."""


class ClockOffset:
    """Bounds of `other clock - own clock`, in ns, from questions that the other host answered with its time.

    An answer stamped `there_ns` to a question sent at `sent_ns` and answered by `received_ns` proves that the offset
    lay between `there_ns - received_ns` and `there_ns - sent_ns`. Bounds of several answers are intersected, each
    widened by the drift since its question.
    """

    def __init__(self) -> None:
        self._low_ns = 0.0
        self._high_ns = 0.0
        self._at_ns = 0
        self.answers = 0
        self.jumps = 0
        """How often the bounds contradicted each other: the other host was restarted, or its clock was halted."""

    def answered(self, sent_ns: int, there_ns: int, received_ns: int) -> None:
        """Take in one answer."""
        slack_ns = DRIFT * (received_ns - sent_ns)
        low, high = there_ns - received_ns - slack_ns, there_ns - sent_ns + slack_ns
        if self.answers:
            drift_ns = DRIFT * (received_ns - self._at_ns)
            old_low, old_high = self._low_ns - drift_ns, self._high_ns + drift_ns
            if low <= old_high and old_low <= high:
                low, high = max(low, old_low), min(high, old_high)
            else:
                self.jumps += 1
        self._low_ns, self._high_ns, self._at_ns = low, high, received_ns
        self.answers += 1

    @property
    def is_known(self) -> bool:
        """Whether there was an answer."""
        return self.answers > 0

    def error_ns(self, now_ns: int) -> float:
        """By how much a stamp that was moved may be wrong, either way: half of what the bounds leave open."""
        return (self._high_ns - self._low_ns) / 2 + DRIFT * max(0, now_ns - self._at_ns)

    def there_ns(self, now_ns: int) -> int:
        """What the other clock shows at least while ours shows `now_ns`."""
        return round(now_ns + self._low_ns - DRIFT * max(0, now_ns - self._at_ns))

    def shift_ns(self, now_ns: int) -> int:
        """What to add to a stamp of the other host to get one of ours, too young by `TRUST_NS` at the most."""
        middle = (self._low_ns + self._high_ns) / 2
        oldest = self._high_ns + DRIFT * max(0, now_ns - self._at_ns)
        return -round(max(middle, oldest - TRUST_NS))
