"""`SuspendDetector`: notices that this process was stopped for a while: what waited meanwhile is not taken for new."""

from __future__ import annotations

from runtime.clock import to_ns

STILL_NS = to_ns(0.3)
"""Beats come ten times a second; a gap of this length was no ordinary one."""
DISTRUST_NS = to_ns(0.15)
"""So long after it, keys are not believed: a hand that still holds them sends them again."""


class SuspendDetector:
    """The beats of a process, and what their gaps mean."""

    def __init__(self) -> None:
        self._beat_ns = 0
        self._until_ns = 0

    def beat(self, now_ns: int) -> None:
        """The process is alive at this moment."""
        self._look(now_ns)
        self._beat_ns = now_ns

    def distrusts(self, now_ns: int) -> bool:
        """Whether what comes now may have waited since before a standstill."""
        self._look(now_ns)
        return now_ns < self._until_ns

    def _look(self, now_ns: int) -> None:
        if self._beat_ns and now_ns - self._beat_ns > STILL_NS:
            self._until_ns = now_ns + DISTRUST_NS
