"""`SpeakingTurn`: whether the robot may speak, as a person speaks and stops are called; decisions without I/O.

An interruption takes with it what was being said and what was said before it and waited; what is said after it waits
until the person is silent. An utterance of which nothing was heard yet is not interrupted: it waits as well.
"""

from __future__ import annotations

import math

from nodes.msgs import Speech
from runtime.clock import to_s

SPEECH_LASTS_S = 2.0
"""A microphone repeats that somebody speaks; after so long without a word from it nobody is waited for any more."""


class SpeakingTurn:
    """Who has it."""

    def __init__(self, barge_in_s: float) -> None:
        self.barge_in_s = barge_in_s
        self._silenced_ns, self._why = -1, ""  # nothing that was said before is spoken any more
        self._since_ns: int | None = None  # a person speaks
        self._told_ns = 0

    def hear(self, speech: Speech, now_ns: int) -> None:
        """What the microphone tells; a beginning that is not of this machine's clock is when it was told first."""
        self._told_ns = now_ns
        if not speech.is_speaking:
            self._since_ns = None
        elif 0 < speech.begun_ns <= now_ns:
            self._since_ns = speech.begun_ns
        elif self._since_ns is None:
            self._since_ns = now_ns

    def silence(self, from_ns: int, why: str) -> None:
        """Nothing more of what was said before that time; an answer to a stop may be of the same instant."""
        if from_ns > self._silenced_ns:
            self._silenced_ns, self._why = from_ns, why

    def why_silent(self, said_ns: int) -> str:
        """Why what was said then is not to be heard any more, or ""."""
        return self._why if said_ns < self._silenced_ns else ""

    def taken_for_s(self, now_ns: int) -> float:
        """For how long, as far as is known, a person goes on speaking; 0: nobody does, or nobody minds."""
        if self._since_ns is None or self.barge_in_s == math.inf:
            return 0.0
        return max(0.0, SPEECH_LASTS_S - to_s(now_ns - self._told_ns))

    def to_barge_in_s(self, now_ns: int) -> float:
        """How long until one who speaks now has interrupted the robot; inf where nobody speaks."""
        if self._since_ns is None or not self.taken_for_s(now_ns):
            return math.inf
        return self.barge_in_s - to_s(now_ns - self._since_ns)
