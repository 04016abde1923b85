"""What every node on a seat owes the run: `Seated` knows when it is on it, `SeatNode` also what an interrupt takes."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from runtime import LEASE_TOPIC, RELIABLE, Fence, Lease, Node, Publisher, QoS, Subscription, on
from runtime.msgs import Effect


class Seated(Node):
    """A subclass declares its `seat`, and says what becomes of it when that is given to it or to somebody else."""

    lease = Subscription(Lease, LEASE_TOPIC, qos=QoS(required=False))

    is_seated = False
    """Whether this node is on its seat, as far as it has heard."""

    def on_seat(self) -> None:
        """Called when this node is on its seat again: what it said in shadow nobody has heard."""

    def off_seat(self) -> None:
        """Called when somebody else is on its seat now."""

    @on(lease)
    def leased(self, lease: Lease) -> None:
        """Somebody was given a seat."""
        if lease.seat != type(self).seat:
            return
        self.is_seated = lease.holder == self.name
        if not lease.is_repetition:
            (self.on_seat if self.is_seated else self.off_seat)()


class SeatNode(Seated):
    """A subclass declares its `seat`; `preempted_at` are the depths of an interrupt that take its work from it.

    The runtime itself cancels its async handlers and drops what was on its way (docs/seats-and-interrupts.md).
    """

    preempted_at: ClassVar[tuple[str, ...]] = ("replan", "stop")
    effect_name: ClassVar[Literal["planner cancelled", "vlm voided", "chunk flushed"]]
    """What the record of an interrupt calls the loss of that work."""

    fence = Subscription(Fence, "fence", qos=QoS(required=False))
    effect = Publisher(Effect, "interrupt/effect", qos=RELIABLE)

    def on_preempted(self, fence: Fence) -> bool:
        """Called when an interrupt has voided what was on its way; returns whether there was any such thing."""
        raise NotImplementedError

    @on(fence)
    def fenced(self, fence: Fence) -> Any:  # None, or what an async one gives
        """An interrupt. A node whose other handlers take long overrides this by an async one, which does not wait."""
        self.preempt(fence)

    def preempt(self, fence: Fence) -> bool:
        """Void the work where the interrupt goes that deep, and tell so; returns whether it does."""
        if fence.depth not in self.preempted_at:
            return False
        was_busy = self.on_preempted(fence)
        self.effect.publish(Effect(interrupt_id=fence.interrupt_id, effect=self.effect_name, was_busy=was_busy))
        return True
