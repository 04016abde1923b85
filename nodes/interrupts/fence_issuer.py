"""`FenceIssuer`: the one who issues the fences of a graph, and which seats an interrupt of each depth fences; pure.

One node of a graph holds one and publishes on `fence` alone: in a robot's graph the guard, in an episode the moderator,
elsewhere the coordinator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nodes.msgs import PREEMPTS, Interrupt
from runtime.coordination.fence import Fence, raised
from runtime.message import Epochs

OTHERWISE = ("replan", "stop")
"""Interrupts that preempt a seat other than planner, VLM and policy, where the launch file's table names none."""


class FenceIssuer:
    """Counts the epochs of the seats. They never go back."""

    def __init__(
        self, preempted_by: Mapping[str, Iterable[str] | None] | None = None, seats: Iterable[str] = ()
    ) -> None:
        """`preempted_by` is what the launch file says, by seat; `seats` are those that nodes of the graph declare."""
        self.epochs: Epochs = {}
        self.last = Fence(epochs=self.epochs)
        self.preempts: dict[str, set[str]] = {depth: set(fenced) for depth, fenced in PREEMPTS.items()}
        said = preempted_by or {}
        robots = set[str]().union(*PREEMPTS.values())
        for seat in {*said, *seats}:
            depths = said.get(seat)
            if depths is None and seat not in robots:
                depths = OTHERWISE
            for depth, fenced in self.preempts.items() if depths is not None else ():
                (fenced.add if depths and depth in depths else fenced.discard)(seat)

    @classmethod
    def of(cls, seats: Mapping[str, Mapping[str, Any]], node_seats: Iterable[str]) -> FenceIssuer:
        """For the seats of a run, as its nodes are told of them (`run_info`)."""
        return cls({seat: table.get("preempted_by") for seat, table in seats.items()}, node_seats)

    def fence(self, interrupt: Interrupt) -> Fence:
        """The fence that this interrupt raises: what the fenced seats had begun before it is void."""
        self.epochs = raised(self.epochs, self.preempts[interrupt.depth])
        self.last = Fence(
            epochs=self.epochs, interrupt_id=interrupt.id, depth=interrupt.depth, text=interrupt.text, by=interrupt.by
        )
        return self.last

    def go_on_from(self, epochs: Epochs) -> None:
        """Continue from the epochs of an earlier one."""
        self.epochs = {
            seat: max(epochs.get(seat, 0), self.epochs.get(seat, 0)) for seat in sorted({*epochs, *self.epochs})
        }
        self.last = Fence(epochs=self.epochs)
