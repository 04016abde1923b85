"""`Drafts`: what the planner's model would say next waits here for a person's yes, for so long and no longer.

While a person sits on the planner's seat, the model goes on in shadow: nobody acts on what it says. A draft joins a
subtask and the sentence that came with it. A newer one replaces it; what was decided once does not come again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Literal

from runtime.clock import to_ns
from runtime.msgs import Subtask

AtEnd = Literal["drop", "send"]
DECIDED_KEPT = 200

Content = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """One thing that the model would like to say."""

    number: int
    since_ns: int
    subtask: Subtask | None = None
    sentence: str = ""

    @property
    def text(self) -> str:
        """For people."""
        return self.subtask.text if self.subtask is not None else ""


class Drafts:
    """At most one draft waits. `is_open` says whether anybody decides about them at all."""

    def __init__(self) -> None:
        self.is_open = False
        self.wait_s = 8.0
        self.at_end: AtEnd = "drop"
        self.waiting: Draft | None = None
        self._count = 0
        self._decided: deque[Content] = deque(maxlen=DECIDED_KEPT)

    def open(self, wait_s: float, at_end: AtEnd, current: Subtask | None) -> None:
        """Begin to hold drafts back; what is being done already is no news."""
        self.is_open, self.wait_s, self.at_end = True, wait_s, at_end
        if current is not None:
            self._decided.append(_content(current))

    def close(self) -> None:
        """Nobody decides any more: the model speaks for itself, or a person writes."""
        self.is_open, self.waiting = False, None

    def plan(self, subtask: Subtask, now_ns: int) -> Draft | None:
        """The model has a subtask; returns the draft that it replaces, if there is one."""
        before = self.waiting
        if not self.is_open or _content(subtask) in self._decided:
            return None
        if before is not None and before.subtask is not None:
            if _content(before.subtask) == _content(subtask):
                return None
            self._decided.append(_content(before.subtask))
            self.waiting = self._new(now_ns, subtask=subtask)
            return before
        self.waiting = replace(before, subtask=subtask) if before is not None else self._new(now_ns, subtask=subtask)
        return None

    def say(self, sentence: str, now_ns: int) -> None:
        """The model has a sentence; it goes with the subtask that waits, or waits for one."""
        before = self.waiting
        if not self.is_open or (sentence,) in self._decided or (before is not None and before.sentence == sentence):
            return
        if before is None or before.sentence:
            subtask = before.subtask if before is not None else None
            self.waiting = self._new(now_ns, subtask=subtask, sentence=sentence)
        else:
            self.waiting = replace(before, sentence=sentence)

    def decide(self, number: int) -> Draft | None:
        """Take the draft of that number away; None where it is not the one that waits."""
        draft = self.waiting
        if draft is None or draft.number != number:
            return None
        self.waiting = None
        if draft.subtask is not None:
            self._decided.append(_content(draft.subtask))
        if draft.sentence:
            self._decided.append((draft.sentence,))
        return draft

    def left_s(self, now_ns: int) -> float:
        """How long the draft that waits waits still."""
        if self.waiting is None:
            return 0.0
        return max(0.0, self.wait_s - (now_ns - self.waiting.since_ns) * 1e-9)

    def expired(self, now_ns: int) -> Draft | None:
        """The draft whose time is up, which is taken away."""
        draft = self.waiting
        if draft is None or now_ns - draft.since_ns < to_ns(self.wait_s):
            return None
        return self.decide(draft.number)

    def _new(self, now_ns: int, *, subtask: Subtask | None = None, sentence: str = "") -> Draft:
        self._count += 1
        return Draft(self._count, now_ns, subtask, sentence)


def _content(subtask: Subtask) -> Content:
    return subtask.id, subtask.text, subtask.verb, subtask.what, subtask.where, subtask.excluding
