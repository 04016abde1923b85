"""`OpenQuestion`: what a robot has asked a person, how it may be answered, and how long it waits. Pure values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nodes.msgs import Reference
from nodes.planner.orders import Order

About = Literal["order", "leave", "still", "may", "instead", "deed", "place", "help", "thing"]
"""order: what is missing in an order; leave: which one is to be left alone; still: whether something is still meant;
may: before an objection; instead: which of two orders; deed: before a deed; place: where a thing goes. These two are
answered by what is seen, not by words: help: somebody is to move a thing; thing: somebody is to bring one."""

ANSWER_WITHIN_S = 30.0
"""How long a question waits for an answer."""
WAITS: dict[About, tuple[float, float]] = {
    "order": (0.0, ANSWER_WITHIN_S), "leave": (0.0, ANSWER_WITHIN_S), "still": (0.0, ANSWER_WITHIN_S),
    "instead": (0.0, ANSWER_WITHIN_S), "may": (0.0, 10.0), "deed": (20.0, 40.0), "place": (20.0, 40.0),
    "help": (0.0, 60.0), "thing": (0.0, 60.0),
}  # fmt: skip
"""After how many seconds it is asked again (0: it is not), and after how many it is left."""
CONTRADICTS_WITHIN_S = 6.0
"""Two orders for the same thing within this time are asked about, unless the second corrects the first."""
DOUBTS_WITHIN_S = 10.0
"""An order for something not seen yet is asked about, if several such things come into sight within this time."""
_ANSWERS: dict[About, Literal["", "place", "thing", "yes"]] = {
    "leave": "thing", "still": "yes", "may": "yes", "instead": "yes", "deed": "yes", "place": "place",
}  # fmt: skip
_HOLDS = frozenset({"leave", "still", "may", "instead"})


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question to a person, and what depends on the answer."""

    about: About
    text: str
    since_ns: int
    orders: tuple[Order, ...] = ()  # what is done after a yes, or with what is answered
    missing: Literal["", "place", "thing", "yes"] = ""  # of an order
    choices: tuple[Reference, ...] = ()
    spares: tuple[Reference, ...] = ()  # what is at stake, if it is not the choices
    at_m: tuple[float, float] = (0.0, 0.0)  # help: where the thing stood
    is_at_stop: bool = False  # asked beside a stop, and asked again when that is lifted
    is_held: bool = False
    is_more: bool = False  # asked beside another order, which stays
    is_turn: bool = False  # whether all that is ordered is to be done in another turn
    of: str = ""  # who alone answers it: whose the thing is, or who said that it is to be left; "": anybody
    to: tuple[str, ...] = ()  # whose yes answers it; (): everybody's
    is_view: bool = False  # from whose side it is seen: the first choice is the robot's
    times: int = 1
    is_late: bool = False  # nobody answered in time, and what is in the hand stays there until somebody does

    def may_answer(self, speaker: str) -> bool:
        """Whether this person's words answer it."""
        asked = (self.of,) if self.of else self.to if self.awaits == "yes" else ()
        return not asked or speaker.lower() in map(str.lower, asked)

    @property
    def awaits(self) -> Literal["", "place", "thing", "yes"]:
        """What words answer it; "" where only what is seen does."""
        return self.missing or _ANSWERS.get(self.about, "")

    @property
    def at_stake(self) -> tuple[Reference, ...]:
        """What is left alone where nobody answers."""
        return self.spares or (self.choices if self.about in _HOLDS else ())

    @property
    def holds(self) -> bool:
        """Whether nothing is moved before it is answered."""
        return self.is_held or self.about in _HOLDS
