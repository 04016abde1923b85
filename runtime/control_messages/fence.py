"""Fences: what voids the answers that are still on their way when a person interrupts.

The epoch vector counts the fences raised for each seat. A handler latches it when it starts, its messages carry it, and
every consumer drops a message whose seat has been fenced since. Cancelling therefore never waits for the slow side. In
a graph with a robot the guard alone raises fences; in one without, the moderator.
"""

from __future__ import annotations

from typing import Literal

from runtime.message import Envelope, Epochs, Message

Seat = Literal["planner", "vlm", "policy"]

SEATS: tuple[Seat, ...] = ("planner", "vlm", "policy")
FENCE_TOPIC = "fence"

RAISES: dict[str, tuple[Seat, ...]] = {
    "amend": ("vlm",),
    "replan": ("planner", "policy"),
    "stop": ("planner", "vlm", "policy"),
    "resume": (),
    "hold": (),
}
"""Which seats an interrupt of each depth fences."""


class Fence(Message):
    """The epoch vector from now on, and the interrupt that raised it; repeated at a low rate for late joiners."""

    epochs: Epochs
    interrupt_id: str = ""
    depth: Literal["amend", "replan", "stop", "resume", "hold", ""] = ""  # "" in repetitions
    text: str = ""
    by: str = ""


class PreemptionEpochs:
    """The fences that a process knows of. Epochs only grow."""

    def __init__(self) -> None:
        self.epochs: Epochs = (0, 0, 0)
        self._causes = ["", "", ""]  # by seat: the event that raised its last fence

    def raise_to(self, epochs: Epochs, cause: str = "") -> frozenset[Seat]:
        """Take in a vector and the event that raised it; the seats that it fences anew."""
        raised = frozenset(seat for seat, old, new in zip(SEATS, self.epochs, epochs, strict=True) if new > old)
        for seat in raised:
            self._causes[SEATS.index(seat)] = cause
        planner, vlm, policy = (max(old, new) for old, new in zip(self.epochs, epochs, strict=True))
        self.epochs = (planner, vlm, policy)
        return raised

    def is_behind(self, envelope: Envelope) -> bool:
        """Whether the seat that made this message has been fenced since."""
        return self.voids(envelope.seat, envelope.epochs, envelope.cause)

    def voids(self, seat: int, epochs: Epochs, cause: str = "") -> bool:
        """Whether a handler of that seat that started under these epochs speaks too late.

        Not so where it answers the very event that raised the fence: it knows what was said, only sooner than others.
        """
        if seat < 0 or epochs[seat] >= self.epochs[seat]:
            return False
        return not cause or cause != self._causes[seat]


def raised(epochs: Epochs, depth: str) -> Epochs:
    """The vector after an interrupt of that depth."""
    planner, vlm, policy = (epoch + (seat in RAISES[depth]) for seat, epoch in zip(SEATS, epochs, strict=True))
    return (planner, vlm, policy)


def seat_index(seat: str) -> int:
    """Its place in the epoch vector; -1 for a node on no seat."""
    return SEATS.index(seat) if seat in SEATS else -1
