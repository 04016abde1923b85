"""Fences: void the answers that are still on their way when a person interrupts (preemption).

An epoch counts the fences raised for a seat. A handler notes it when it starts, and its messages carry it. Every
consumer drops a message whose seat has been fenced since. So cancelling never waits for the slow side. One node of
a graph raises fences. The seats are those that the nodes declare.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from runtime.message import Envelope, Epochs, Message

FENCE_TOPIC = "fence"


class Fence(Message):
    """Voids what the fenced seats were about to say, since a person has interrupted; comes on `FENCE_TOPIC`.

    Subscribe to it to learn that an interrupt has taken effect, and how deep it goes. A node need not do so to be
    cancelled: the runtime cancels its `async` handlers and drops its late messages. `epochs` counts the fences of each
    seat, `text` is what was said, `by` who raised it. The same fence is repeated for those that start later.
    """

    epochs: Epochs
    interrupt_id: str = ""
    depth: Literal["amend", "replan", "stop", "resume", "hold", ""] = ""  # "" in repetitions
    text: str = ""
    by: str = ""


class PreemptionEpochs:
    """The fences that a process knows; epochs only grow."""

    def __init__(self) -> None:
        self.epochs: Epochs = {}
        self._causes: dict[str, str] = {}  # by seat: the event that raised its last fence

    def raise_to(self, epochs: Epochs, cause: str) -> frozenset[str]:
        """Take in epochs and the event that raised them; returns the seats that are fenced anew."""
        newer = {seat: epoch for seat, epoch in epochs.items() if epoch > self.epochs.get(seat, 0)}
        if newer:
            self._causes.update(dict.fromkeys(newer, cause))
            self.epochs = {**self.epochs, **newer}  # a new one: handlers keep the one that they started under
        return frozenset(newer)

    def is_behind(self, envelope: Envelope) -> bool:
        """Whether the seat that made this message has been fenced since."""
        return self.voids(envelope.seat, envelope.epochs, envelope.cause)

    def voids(self, seat: str, epochs: Epochs, cause: str = "") -> bool:
        """Whether a handler of that seat, started under these epochs, answers too late.

        A handler that answers the very event which raised the fence is not void: it knows what was said, only sooner
        than others.
        """
        if not seat or epochs.get(seat, 0) >= self.epochs.get(seat, 0):
            return False
        return not cause or cause != self._causes.get(seat)


def raised(epochs: Epochs, seats: Iterable[str]) -> Epochs:
    """The epochs after an interrupt that fences these seats."""
    return {**epochs, **{seat: epochs.get(seat, 0) + 1 for seat in sorted(seats)}}
