"""`Latch`: whose stops stand, and who may lift them; a pure part of the guard.

Each person lifts their own stop, as with personal locks on a machine. What no person has made, any person lifts. An
operator, whose order is signed, answers for having looked and lifts what anybody stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from nodes.guard.immediate_faults import FUTURE_NS
from nodes.msgs import GuardMode, Interrupt
from nodes.msgs.robot import AnswerCode
from runtime.clock import to_ns, to_s

Lock = Literal["none", "anybody", "persons", "crowd", "emergency"]
Key = Literal["machine", "person", "operator"]

LIFTED_BY: dict[Lock, frozenset[Key]] = {
    "none": frozenset(),
    "anybody": frozenset({"person", "operator"}),  # of a fault, a ladder, a lost link; or nobody's stop is left
    "persons": frozenset({"operator"}),  # each withdraws their own, and the last one lifts it
    "crowd": frozenset({"operator"}),  # nobody knows any more whose stops these are
    "emergency": frozenset(),  # re-arming turns it into one of the others
}
"""Who lifts what is latched."""

CROWD = "many"
"""Stands for everybody who stopped the robot after the first `MOST_STOPPERS`; only an operator lifts such a stop."""
MOST_STOPPERS = 16
NOBODY = "/"
"""Begins the key of a stop that no person has made, by a page's button, a tool or a bridge; no person has such one."""

GO_ON_NS = to_ns(5.0)
"""A request to resume is valid for this long after it was said; whoever said it may look elsewhere by then."""


class Refusal(NamedTuple):
    """Why a request is refused: a code for programs, a sentence for people."""

    code: AnswerCode
    why: str


class Latch:
    """What stopped the robot and when, whose stops stand, and whether somebody asked to be let go."""

    def __init__(self) -> None:
        self.cause = ""  # the id of the interrupt that stopped it
        self.by = ""
        self.heard_ns = 0
        self.estop = ""  # why the emergency stop is latched
        self.is_caught = False  # a person asked to be let go: the gripper opens
        self._stoppers: dict[str, str] = {}
        self._last_heard_ns = 0
        self._last = ""  # the id of the last stop; "" for one that nobody can take back

    @property
    def stoppers(self) -> dict[str, str]:
        """Whose stops stand: their names, by what tells people apart."""
        return dict(self._stoppers)

    @property
    def signature(self) -> tuple[object, ...]:
        """Whose stops stand, and whether a gripper has to open first."""
        return tuple(sorted(self._stoppers)), self.is_caught

    def lock(self, mode: GuardMode) -> Lock:
        """What is latched in this mode."""
        if mode not in ("stopped", "estopped"):
            return "none"
        if mode == "estopped":
            return "emergency"
        return "crowd" if CROWD in self._stoppers else "persons" if self._stoppers else "anybody"

    def stop(self, interrupt: Interrupt, heard_ns: int, mode: GuardMode) -> str:
        """Latch a stop, and return who is told to have stopped the robot as well; "" where that is nobody.

        `mode` is the one before the stop. A stop that is latched keeps its cause.
        """
        self._last_heard_ns = max(self._last_heard_ns, heard_ns)
        self._last = interrupt.id
        self.is_caught |= interrupt.is_caught
        if mode != "stopped":
            self.cause, self.by, self.heard_ns = interrupt.id, interrupt.by, heard_ns
        also = self._note(interrupt)
        return "" if self.lock(mode) == "none" else also

    def press(self, why: str, mode: GuardMode, now_ns: int) -> None:
        """Latch the emergency stop; one that is latched keeps its reason."""
        self._hear_nothing_before(now_ns)
        self._last = ""
        if mode != "estopped":
            self.estop, self.by = why, "estop"
            if mode != "stopped":
                self.cause, self.heard_ns = "estop", now_ns

    def rearm(self, now_ns: int) -> None:
        """Turn the emergency stop into the stop that stands below it."""
        self._hear_nothing_before(now_ns)
        self.estop = ""

    def restore(self, stoppers: Mapping[str, str]) -> None:
        """Take over whose stops stood in an earlier guard."""
        self._stoppers = dict(stoppers)

    def refusal(
        self, interrupt: Interrupt, mode: GuardMode, heard_ns: int, now_ns: int, *, is_runstopped: bool
    ) -> Refusal | None:
        """Why these words lift nothing, whoever stopped the robot; None where they may lift what is latched."""
        if mode == "estopped":
            return Refusal("estopped", "an emergency stop is only left by re-arming")
        if key_of(interrupt) == "machine":
            return Refusal("not_a_person", "only a person lifts a stop")
        if is_runstopped:
            return Refusal("runstopped", "the robot's runstop is pressed")
        if heard_ns <= self._last_heard_ns:
            return Refusal("too_early", "it was said before the stop")
        if heard_ns > now_ns + FUTURE_NS:
            return Refusal("in_the_future", "it is stamped in the future")
        if now_ns - heard_ns > GO_ON_NS:
            return Refusal("too_late", f"it was said {to_s(now_ns - heard_ns):.1f} s ago")
        if interrupt.takes_back and interrupt.takes_back != self._last:
            return Refusal("another_stop", "it takes back another stop than the last one")
        return None

    def withdraw(self, interrupt: Interrupt, mode: GuardMode, *, is_operator: bool) -> Refusal | None:
        """Lift this person's own stop; returns why the robot stays stopped all the same, or None."""
        key: Key = "operator" if is_operator else key_of(interrupt)
        if key != "operator":
            self._stoppers.pop(stopper_of(interrupt), None)
        if key in LIFTED_BY[self.lock(mode)]:
            return None
        return Refusal("another_person", f"{', '.join(sorted(self._stoppers.values()))} stopped the robot as well")

    def open(self) -> None:
        """Forget what was latched, once it is lifted."""
        self.cause, self.by, self.heard_ns = "", "", 0
        self.is_caught, self._stoppers = False, {}

    def _note(self, interrupt: Interrupt) -> str:
        """Record who stopped the robot; the name, where others had before."""
        key, by = stopper_of(interrupt), interrupt.by
        if not key or key in self._stoppers or CROWD in self._stoppers:
            return ""
        if len(self._stoppers) >= MOST_STOPPERS:
            key = by = CROWD
        is_first, self._stoppers[key] = not self._stoppers, by
        return "" if is_first else by

    def _hear_nothing_before(self, now_ns: int) -> None:
        self._last_heard_ns = max(self._last_heard_ns, now_ns)


def key_of(interrupt: Interrupt) -> Key:
    """Who asks. Without a cause whoever calls this has looked."""
    return "person" if interrupt.cause in ("person", "") else "machine"


def stopper_of(interrupt: Interrupt) -> str:
    """The key of whoever has to lift this stop; "" where any person may, since no person and no tool has made it."""
    if interrupt.person:
        return interrupt.person
    return f"{NOBODY}{interrupt.by}" if key_of(interrupt) == "person" else ""
