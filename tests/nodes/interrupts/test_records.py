"""Every interrupt ends in one record: who, how deep, because of what, and when each of its effects came."""

from __future__ import annotations

from nodes.interrupts.records import BOUND_S, InterruptRecords
from nodes.msgs import Effect, GuardState, Interrupt, InterruptRecord
from runtime import Simulation
from runtime.coordination.fence import Fence


class Room:
    def __init__(self) -> None:
        self.sim = Simulation(InterruptRecords())
        self.records: list[InterruptRecord] = self.sim.record_topic("interrupt/record", InterruptRecord)

    def raise_one(self, ident: str, depth: str) -> None:
        self.sim.publish("interrupt", Interrupt(id=ident, depth=depth, text="No!", by="Ann"))  # type: ignore[arg-type]

    def wait(self, seconds: float = 0.1) -> None:
        self.sim.run(seconds=seconds)


def test_an_amend_ends_as_soon_as_its_effects_have_come() -> None:
    room = Room()
    room.raise_one("a", "amend")
    room.wait()
    room.sim.publish("fence", Fence(epochs={"vlm": 1}, interrupt_id="a", depth="amend"))
    room.wait()
    assert room.records == []
    room.sim.publish("interrupt/effect", Effect(interrupt_id="a", effect="vlm voided"))
    room.wait()
    (record,) = room.records
    assert (record.id, record.depth, record.by, record.text, record.missing) == ("a", "amend", "Ann", "No!", ())
    assert record.fenced_ms is not None
    assert record.vlm_ms is not None
    assert 0 < record.fenced_ms < record.vlm_ms
    assert record.held_ms is record.planner_ms is record.policy_ms is None


def test_what_has_not_come_in_time_is_told_as_missing() -> None:
    room = Room()
    room.raise_one("r", "replan")
    room.sim.publish("interrupt/effect", Effect(interrupt_id="r", effect="planner cancelled"))
    room.wait(BOUND_S - 0.5)
    assert room.records == []
    room.wait(1.0)
    (record,) = room.records
    assert record.missing == ("fenced", "held", "policy")
    assert record.planner_ms is not None


def test_an_effect_that_comes_before_its_interrupt_counts() -> None:
    room = Room()
    room.sim.publish("interrupt/effect", Effect(interrupt_id="a", effect="vlm voided"))
    room.wait()
    room.raise_one("a", "amend")
    room.sim.publish("fence", Fence(epochs={"vlm": 1}, interrupt_id="a", depth="amend"))
    room.wait()
    assert [(record.id, record.missing) for record in room.records] == [("a", ())]


def test_a_stop_is_held_and_at_rest_by_the_guards_word() -> None:
    room = Room()
    room.raise_one("s", "stop")
    room.wait()
    for effect in ("planner cancelled", "vlm voided", "chunk flushed"):
        room.sim.publish("interrupt/effect", Effect(interrupt_id="s", effect=effect))
    room.sim.publish("fence", Fence(epochs={"planner": 1, "vlm": 1, "policy": 1}, interrupt_id="s", depth="stop"))
    now_ns = room.sim.clock.now_ns()
    stopped = {"mode": "stopped", "reason": "", "held_ns": now_ns}
    room.sim.publish("guard/state", GuardState(**stopped))  # type: ignore[arg-type]
    room.wait()
    assert room.records == [], "held, and not yet at rest"
    room.sim.publish("guard/state", GuardState(**stopped, at_rest_ns=now_ns + 50_000_000))  # type: ignore[arg-type]
    room.wait()
    (record,) = room.records
    assert record.missing == ()
    assert record.held_ms is not None
    assert record.at_rest_ms is not None
    assert record.held_ms < record.at_rest_ms


def test_a_flood_of_interrupts_keeps_no_more_open_than_it_must_and_loses_no_record() -> None:
    room = Room()
    for number in range(74):  # ten more than are kept open
        room.raise_one(f"a{number}", "amend")
    room.wait()
    assert [record.id for record in room.records] == [f"a{number}" for number in range(10)]
    room.wait(BOUND_S + 1.0)
    assert len(room.records) == 74
