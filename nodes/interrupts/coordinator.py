"""`Coordinator`: issues the fences of a graph without a robot, so that "Stop!" cancels what its seats are about."""

from __future__ import annotations

from nodes.interrupts.fence_issuer import FenceIssuer
from nodes.msgs import Interrupt
from runtime import ALONE, FENCE_TOPIC, Fence, Node, Publisher, QoS, Subscription, every, on

REPEATED_HZ = 2


class Coordinator(Node):
    """Raises a fence for each interrupt: async handlers of the fenced seats are cancelled, and their messages void.

    A graph has one node that issues fences. With a robot it is the guard, in an episode the moderator. There is nothing
    here to resume: a stop ends what was begun, and what is said after it is heard as ever.
    """

    realtime = True
    believes = "lifter"
    fixed = frozenset({"interrupt", "fence", "repeat"})

    interrupts = Subscription(Interrupt, "interrupt", qos=QoS(required=False))
    fence = Publisher(Fence, FENCE_TOPIC, qos=ALONE)

    def __init__(self) -> None:
        self.issuer = FenceIssuer()

    def on_start(self) -> None:
        """Learn which seats there are, and what preempts them."""
        self.issuer = FenceIssuer.of(self.run_info.seats, self.run_info.node_seats)

    @on(interrupts)
    def interrupted(self, interrupt: Interrupt) -> None:
        """Fence the seats that an interrupt of its depth preempts."""
        if self.issuer.preempts[interrupt.depth]:
            self.fence.publish(self.issuer.fence(interrupt))

    @every(hz=REPEATED_HZ)
    def repeat(self) -> None:
        """Tell the epochs again, for readers that joined late."""
        if self.issuer.epochs:
            self.fence.publish(Fence(epochs=self.issuer.epochs))
