"""Base classes of nodes on a seat: `Seated` knows when it holds the seat, `SeatNode` also what an interrupt voids."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from nodes.msgs import Effect
from runtime import LEASE_TOPIC, RELIABLE, Fence, Lease, Node, Publisher, QoS, Subscription, on


class Seated(Node):
    """A node that may hold the seat which its class names as `seat`; override `on_seat` and `off_seat`."""

    lease = Subscription(Lease, LEASE_TOPIC, qos=QoS(required=False))

    is_seated = False
    """Whether this node holds its seat, by the last lease that it received."""

    def on_seat(self) -> None:
        """Called when this node receives its seat; nobody acted on what it published in shadow."""

    def off_seat(self) -> None:
        """Called when somebody else receives its seat."""

    @on(lease)
    def leased(self, lease: Lease) -> None:
        """Note a new lease, and call `on_seat` or `off_seat`."""
        if lease.seat != type(self).seat:
            return
        self.is_seated = lease.holder == self.name
        if not lease.is_repetition:
            (self.on_seat if self.is_seated else self.off_seat)()


class SeatNode(Seated):
    """A node on a seat whose work an interrupt voids; `preempted_at` names the depths of interrupt that do.

    The runtime itself cancels its async handlers and drops its messages in flight (docs/seats-and-interrupts.md).
    """

    preempted_at: ClassVar[tuple[str, ...]] = ("replan", "stop")
    effect_name: ClassVar[Literal["planner cancelled", "vlm voided", "chunk flushed"]]
    """What the record of an interrupt calls the loss of this node's work."""

    fence = Subscription(Fence, "fence", qos=QoS(required=False))
    effect = Publisher(Effect, "interrupt/effect", qos=RELIABLE)

    def on_preempted(self, fence: Fence) -> bool:
        """Called when an interrupt has voided this node's work; override it to return whether there was any."""
        raise NotImplementedError

    @on(fence)
    def fenced(self, fence: Fence) -> Any:  # None, or what an async one gives
        """Handle an interrupt. A node with slow handlers overrides this by an async one, which need not wait."""
        self.preempt(fence)

    def preempt(self, fence: Fence) -> bool:
        """Void the work where the interrupt goes that deep, and publish the effect; returns whether it does."""
        if fence.depth not in self.preempted_at:
            return False
        was_busy = self.on_preempted(fence)
        self.effect.publish(Effect(interrupt_id=fence.interrupt_id, effect=self.effect_name, was_busy=was_busy))
        return True
