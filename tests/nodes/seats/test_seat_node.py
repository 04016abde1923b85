"""What a node on a seat owes the run, once for all of them."""

from __future__ import annotations

from typing import Literal

from nodes.seats.seat_node import SeatNode
from runtime import Fence, Lease, Simulation


class Worker(SeatNode):
    seat = "planner"
    effect_name = "planner cancelled"

    def __init__(self) -> None:
        self.is_busy = True
        self.times_seated = 0

    def on_preempted(self, fence: Fence) -> bool:
        was_busy, self.is_busy = self.is_busy, False
        return was_busy

    def on_seat(self) -> None:
        self.times_seated += 1


def test_an_interrupt_that_goes_deep_enough_voids_the_work_and_is_answered() -> None:
    sim = Simulation(Worker())
    effects = sim.record(Worker.effect)
    depths: tuple[Literal["amend", "replan", "stop"], ...] = ("amend", "replan", "stop")
    for number, depth in enumerate(depths):
        sim.publish("fence", Fence(interrupt_id=f"reflex:{number}", depth=depth, epochs={}))
    sim.run(seconds=0.1)
    told = [(one.interrupt_id, one.effect, one.was_busy) for one in effects]
    assert told == [("reflex:1", "planner cancelled", True), ("reflex:2", "planner cancelled", False)]


def test_a_node_that_is_put_on_its_seat_is_told_so_once() -> None:
    worker = Worker()
    sim = Simulation(worker)
    told = (
        ("planner", "other", False),
        ("planner", "worker", False),
        ("planner", "worker", True),
        ("vlm", "worker", False),
    )
    for number, (seat, holder, is_repetition) in enumerate(told, 1):
        sim.publish("lease", Lease(seat=seat, holder=holder, number=number, is_repetition=is_repetition))
    sim.run(seconds=0.1)
    assert worker.times_seated == 1
