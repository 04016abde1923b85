"""`QoS`: how much of a topic a subscription keeps, and for how long it may be used."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from runtime.errors import UserError
from runtime.message import Kind

Drop = Literal["oldest", "newest"]
LIFESPAN_S, HOLD_S = 5.0, 1.0  # of reliable events, where nothing is said


@dataclass(frozen=True, slots=True)
class QoS:
    """Quality of service of one port.

    - `depth`: the most messages that wait; 0 means 1 for state, 64 for events.
    - `drop`: which message goes when the queue is full. What stops a robot goes after all others.
    - `lifespan_s`: the age at which a message is no longer handed out.
    - `deadline_s`: the longest allowed gap between two messages. A publisher promises it. A subscription's is watched
      by its node's `@on_deadline` handler.
    - `required=False` lets the graph start without a publisher.
    - `late_join`: a subscriber that starts while the publisher is silent gets the newest state within about a second.
      The publisher offers it, the subscription asks for it.
    - `candidates` also hears those who speak for a seat that they do not hold.

    `exclusive` is for a publisher: no other node and no tool publishes on its topic. `check` refuses a second one, and
    at run time the topic is taken in from that node's process alone. `in_process` is for a subscription: the
    publisher must be a node of the same process, so that no socket lies between the two.

    `max_hz` is for a subscription to a state: it gets at most so many a second. The others are counted as `max_hz`, and
    are not sent where the state goes straight to one handler.

    `reliable` is for events, and the publisher offers it. Each process that hears them acknowledges each, and takes it
    once. Until then the event is sent again, for at most `lifespan_s` (5 s where nothing is said). Later ones wait
    `hold_s` for a missing one; with 0 they do not, and a late one comes out of order. A subscription that says
    `reliable` insists on it.

    Raises UserError for a value out of range.
    """

    depth: int = 0
    lifespan_s: float | None = None
    deadline_s: float | None = None
    drop: Drop = "oldest"
    required: bool = True
    late_join: bool = False
    candidates: bool = False
    reliable: bool = False
    hold_s: float = HOLD_S
    exclusive: bool = False
    in_process: bool = False
    max_hz: float | None = None

    def __post_init__(self) -> None:
        if type(self.depth) is not int or self.depth < 0:
            raise UserError(f"QoS depth is {self.depth!r}; expected 0 (by kind) or a positive whole number")
        for name, value in (("lifespan_s", self.lifespan_s), ("deadline_s", self.deadline_s), ("max_hz", self.max_hz)):
            if value is not None and not (is_number(value) and 0 < value < float("inf")):
                unit = "hertz" if name == "max_hz" else "seconds"
                raise UserError(f"QoS {name} is {value!r}; expected a positive number of {unit} or None")
        if not (is_number(self.hold_s) and 0 <= self.hold_s < float("inf")):
            raise UserError(f"QoS hold_s is {self.hold_s!r}; expected a number of seconds, or 0 to wait for nothing")
        for name in ("required", "late_join", "candidates", "reliable", "exclusive", "in_process"):
            if not isinstance(getattr(self, name), bool):
                raise UserError(f"QoS {name} is {getattr(self, name)!r}; expected True or False")
        if self.drop not in ("oldest", "newest"):
            raise UserError(f"QoS drop is {self.drop!r}; known: oldest, newest")

    def for_kind(self, kind: Kind) -> QoS:
        """Return the same QoS with the depth that this kind of message has by default."""
        return self if self.depth else replace(self, depth=1 if kind == "state" else 64)

    def problems(self, kind: Kind) -> list[str]:
        """Return in sentences what makes no sense for this kind of message."""
        if self.late_join and kind == "event":
            return ["late_join is for states: an old event must not happen again"]
        if self.reliable and kind == "state":
            return ["reliable is for events: of a state the newest one makes good for those that were lost"]
        if self.max_hz is not None and kind == "event":
            return ["max_hz is for states: an event that is left out never happened"]
        return []

    def mismatches(self, offered: QoS) -> list[str]:
        """Return in words what this subscription asks for and that publisher does not offer."""
        found = []
        if self.late_join and not offered.late_join:
            found.append("asks for late_join, which {publisher} does not offer; add QoS(late_join=True) there")
        if self.reliable and not offered.reliable:
            found.append("asks for reliable events, which {publisher} does not offer; add QoS(reliable=True) there")
        if self.deadline_s is not None and offered.deadline_s is not None and offered.deadline_s > self.deadline_s:
            found.append(
                f"asks for a message each {self.deadline_s:g} s, but {{publisher}} promises one each "
                f"{offered.deadline_s:g} s only"
            )
        return found


def is_number(value: object) -> bool:
    """Whether it is one, and not a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)


ALONE = QoS(exclusive=True)
"""For what only one node may say: leases, fences, the robot's own state."""
RELIABLE = QoS(reliable=True)
"""For what people and policies say to each other: nothing of it is lost, and all of it comes in order."""
SOON = QoS(reliable=True, lifespan_s=1.0)
"""For orders that set a robot moving: not worth a try after a second, when nobody expects it any more."""
URGENT = QoS(reliable=True, hold_s=0.0, lifespan_s=1.0)
"""For what stops a robot, such as an e-stop or an interrupt of yours.

It is sent again until each process has acknowledged it, for at most a second. It waits for no earlier event that is
missing (`hold_s=0`), so it may come out of order. Give it to publisher and subscription.
"""
