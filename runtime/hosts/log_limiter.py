"""`LogLimiter`: what a gateway says in the log, without filling it."""

from __future__ import annotations

import logging

from runtime.clock import Clock, to_ns

_SAY_AGAIN_NS = to_ns(5.0)
_LONGEST_SILENCE_NS = to_ns(300.0)
_MOST_KEPT = 100  # sentences


class LogLimiter:
    """The log of one gateway; for the thread of its small socket and, one sentence at a time, the other one."""

    def __init__(self, log: logging.Logger, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._said_ns: dict[str, int] = {}
        self._silences = 0  # told since the other host was there last
        self._next_silence_ns = 0

    def say(self, sentence: str) -> None:
        """Say what is amiss; the same again no sooner than after 5 s."""
        now_ns = self._clock.now_ns()
        if len(self._said_ns) > _MOST_KEPT:
            self._said_ns.clear()
        if now_ns - self._said_ns.get(sentence, -_SAY_AGAIN_NS) >= _SAY_AGAIN_NS:
            self._said_ns[sentence] = now_ns
            self._log.warning("%s", sentence)

    def silence(self, sentence: str) -> None:
        """Say that the other host is not there: at once, and then ever less often, in the end each 5 minutes."""
        now_ns = self._clock.now_ns()
        if self._silences and now_ns < self._next_silence_ns:
            return
        self._next_silence_ns = now_ns + min(_SAY_AGAIN_NS << self._silences, _LONGEST_SILENCE_NS)
        self._silences += 1
        self._log.warning("%s", sentence)

    def heard(self) -> None:
        """The other host is there: its next silence is news."""
        self._silences = 0
