"""`Reflex`: what is heard and felt becomes an interrupt within one hop, before any model has looked at it."""

from __future__ import annotations

from typing import Literal

from nodes.understanding import understand
from runtime import Node, Publisher, QoS, Subscription, on
from runtime.msgs import GuardState, Interrupt, RobotState, Utterance

Depth = Literal["amend", "replan", "stop", "resume"]


def depths_of(text: str, *, is_stopped: bool) -> tuple[Depth, ...]:
    """The interrupts that an utterance raises, in the order they are to be sent.

    "Go on" resumes only a robot that was stopped. A new order to a stopped robot also lifts the stop.
    """
    wants = understand(text).wants
    if wants == "stop":
        return ("stop",)
    if wants == "resume":
        return ("resume",) if is_stopped else ()
    if wants == "order":
        return ("replan", "resume") if is_stopped else ("replan",)
    return ("amend",) if wants == "amend" else ()


class Reflex(Node):
    """Listens to people and to the robot's contact sensing.

    On a thread of its own: what blocks the event loop of its process must not stand before a stop.
    """

    realtime = True

    heard = Subscription(Utterance, "heard", qos=QoS(required=False))
    state = Subscription(RobotState, "robot/state", qos=QoS(required=False))
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))
    interrupt = Publisher(Interrupt, "interrupt")

    def __init__(self) -> None:
        self.count = 0
        self.touching: frozenset[str] = frozenset()
        self.is_stopped = False

    def on_start(self) -> None:
        understand("stop")  # reads the tables, so that the first stop does not wait for it

    @on(heard)
    def listen(self, utterance: Utterance) -> None:
        for depth in depths_of(utterance.text, is_stopped=self.is_stopped):
            self._raise(depth, utterance.text, utterance.speaker)

    @on(state)
    def feel(self, state: RobotState) -> None:
        """Contact stops once, when it begins; a thing that goes on touching is the guard's affair."""
        touching = frozenset(state.contact)
        new = sorted(touching - self.touching)
        self.touching = touching
        if new:
            self._raise("stop", f"contact: {', '.join(new)}", "contact")

    @on(guard)
    def follow(self, state: GuardState) -> None:
        """A stop by anyone, or the end of one, as the guard sees it."""
        self.is_stopped = state.mode == "stopped"

    def _raise(self, depth: Depth, text: str, by: str) -> None:
        self.count += 1
        if depth in ("stop", "resume"):
            self.is_stopped = depth == "stop"
        self.interrupt.publish(Interrupt(id=f"{self.name}-{self.count}", depth=depth, text=text, by=by))
