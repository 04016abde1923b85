"""`SoftHold`: a moment without motion for words that nobody understood; a pure part of the guard.

It waits for a second judgement and is no stop: it ends by itself, and commands go on coming meanwhile.
"""

from __future__ import annotations

from math import isfinite
from typing import Literal

from nodes.msgs import GuardMode, Interrupt
from runtime.clock import to_ns, to_s

LONGEST_HOLD_NS = to_ns(1.5)
"""A soft hold ends by itself after this time at the latest; `interrupts/hold_seconds.py` says what is asked for."""

HoldState = Literal["none", "holding"]
HoldEvent = Literal["asked while moving", "asked", "taken back", "over"]

HOLDS: dict[tuple[HoldState, HoldEvent], HoldState] = {
    ("none", "asked while moving"): "holding",
    ("holding", "asked while moving"): "holding",
    ("holding", "asked"): "holding",  # anew, from now on
    ("holding", "taken back"): "none",
    ("holding", "over"): "none",
}
"""What leads from one to another; what is not listed changes nothing: a robot that does not move needs no hold."""

MOVING: frozenset[GuardMode] = frozenset({"moving", "retreating"})
"""Modes in which something may move that a hold would hold."""


class SoftHold:
    """Whether the robot is held for a moment, until when, and by which interrupt."""

    def __init__(self) -> None:
        self._state: HoldState = "none"
        self._ident, self._until_ns = "", 0

    def state(self, now_ns: int) -> HoldState:
        """Whether it holds at this moment."""
        if now_ns >= self._until_ns:
            self._enter("over")
        return self._state

    def is_on(self, now_ns: int) -> bool:
        """Whether the robot is to be kept still at this moment, whatever is asked of it."""
        return self.state(now_ns) == "holding"

    def ask(self, interrupt: Interrupt, mode: GuardMode, now_ns: int) -> bool:
        """Begin a hold, or end it by its own id alone; whether one was begun or prolonged."""
        self.state(now_ns)
        if interrupt.takes_back:
            if interrupt.takes_back == self._ident:
                self._enter("taken back")
            return False
        if self._enter("asked while moving" if mode in MOVING else "asked") == "none":
            return False
        hold_s = interrupt.hold_s if isfinite(interrupt.hold_s) else to_s(LONGEST_HOLD_NS)
        self._ident, self._until_ns = interrupt.id, now_ns + min(max(to_ns(hold_s), 0), LONGEST_HOLD_NS)
        return True

    def _enter(self, event: HoldEvent) -> HoldState:
        self._state = HOLDS.get((self._state, event), self._state)
        return self._state
