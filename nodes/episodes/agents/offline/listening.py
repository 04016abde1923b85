"""What the offline agent makes of what it hears: how far others have moved it, and by which turn.

Pure and repeatable: all of it follows from the turns heard, the profile and the seed. What counts is what was said and
when: a reason weighs more after one's own question, an offer less before any reason was given, everything less after an
insult; what was said before weighs nothing.
"""

from __future__ import annotations

import re

from nodes.episodes.agents.deal_reading import stance
from nodes.episodes.agents.offline.phrasing import DialogueVoice
from runtime.msgs.episode import Turn

RUDE = re.compile(
    r"\b(idiot|stupid|shut up|hate you|liar|moron|pathetic|get lost|damn you|fool|disgust\w*|ridiculous|coward)\b", re.I
)
_OFFER = re.compile(
    r"\b(what if|what about|i could|i would|i'd|we could|i'll|let me have|take the|you may|you could have"
    r"|in exchange)\b",
    re.I,
)
_REFUSAL = re.compile(r"\b(rather not|prefer not|don't want to|can't agree|cannot|i won't|not today|no use)\b", re.I)
_KIND = re.compile(r"\b(thank|thanks|glad|sorry|please|understand|appreciate|kind of you)\b", re.I)

STUBBORN = {"low": 0.7, "medium": 0.0, "high": -0.5}
"""What agreeableness adds to how much it takes."""


class Heard:
    """How far the others have moved a participant by now."""

    def __init__(self, voice: DialogueVoice) -> None:
        self.pull = 0.0
        self.trust = 1.0
        self.rude = 0
        self.tipped_by = -1  # index of the turn with which it was enough
        self.needed = 2.2 + 2.6 * voice.temper("stubborn") + STUBBORN[voice.trait("agreeableness")]
        self._seen: set[str] = set()
        self._reasons = 0
        spoken = [turn for turn in voice.sight.turns if turn.kind == "speak"]
        last_mine: Turn | None = None
        others = max(1, len(voice.sight.others))
        for turn in spoken:
            if turn.speaker == voice.me:
                last_mine = turn
                continue
            self.pull += self._weight(turn.argument, last_mine) / others
            if self.tipped_by < 0 and self.pull >= self.needed and last_mine is not None:
                self.tipped_by = turn.index

    @property
    def is_moved(self) -> bool:
        """Whether it was enough."""
        return self.tipped_by >= 0 and self.rude < 2

    def _weight(self, text: str, last_mine: Turn | None) -> float:
        if text in self._seen:
            return 0.0
        self._seen.add(text)
        if RUDE.search(text):
            self.rude += 1
            self.trust *= 0.4
            return -1.5
        if _REFUSAL.search(text) or stance(text) == "no":
            return -0.4
        kind = 0.2 if _KIND.search(text) else 0.0
        if text.rstrip().endswith("?"):
            return (0.4 + kind) * self.trust
        if _OFFER.search(text):
            return ((1.3 if self._reasons else 0.6) + kind) * self.trust
        self._reasons += 1
        was_asked = last_mine is not None and last_mine.argument.rstrip().endswith("?")
        return (0.7 + 0.5 * was_asked + kind) * self.trust
