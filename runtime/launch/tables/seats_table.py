"""[seats.*] of a launch file: who holds each seat, who may, and what happens when the holder is silent."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

import msgspec

from runtime.abilities import believes
from runtime.coordination.lease import Kind
from runtime.errors import UserError, choices
from runtime.launch.graph import NodeSpec
from runtime.node import ports_of
from runtime.ports import Publisher, Subscription
from runtime.serialization.toml_errors import Seconds, Table, convert

Depth = Literal["amend", "replan", "stop"]
KINDS: tuple[Kind, ...] = ("model", "person", "script", "replay")


class Rung(Table, frozen=True):
    """One step of a degradation ladder: what to do once the holder has been silent for this long.

    "say" only tells. "hand_over" gives the seat to the candidate `to`. "hold" stops the robot until a person says go
    on; with `after_subtask`, only after the present subtask.
    """

    silent_s: Seconds
    do: Literal["say", "hand_over", "hold"] = "say"
    text: str = ""
    to: str = ""
    after_subtask: bool = False


class WrittenSeat(Table, frozen=True):
    """One [seats.NAME], as written."""

    holder: str
    shadows: tuple[str, ...] = ()
    ladder: tuple[Rung, ...] = ()
    preempted_by: tuple[Depth, ...] | None = None  # the interrupts that fence it; None: as the guard has it

    def __post_init__(self) -> None:
        silences = [rung.silent_s for rung in self.ladder]
        if silences != sorted(silences):
            raise ValueError(f"ladder has silent_s {silences}; expected positive seconds that grow from rung to rung")
        for rung in self.ladder:
            if rung.do == "say" and not rung.text.strip():
                raise ValueError(
                    f"ladder has a rung at {rung.silent_s:g} s that does nothing; give it a text to say, or a do"
                )
            if rung.do == "hand_over" and rung.to not in self.shadows:
                raise ValueError(f"ladder hands over to {rung.to!r}; expected one of shadows: {choices(self.shadows)}")


class SeatTable(WrittenSeat, frozen=True):
    """One [seats.NAME], checked."""

    kinds: dict[str, Kind] = msgspec.field(default_factory=dict)  # by node, from what the nodes say of themselves

    @property
    def candidates(self) -> tuple[str, ...]:
        """All nodes of the graph that may hold it."""
        return (self.holder, *self.shadows)


def parse_seats(tables: object, specs: Mapping[str, NodeSpec]) -> dict[str, SeatTable]:
    """The seats of a launch file. Raises UserError with the first thing that does not fit."""
    seats = {spec.cls.seat for spec in specs.values()} - {""}
    for seat in tables if isinstance(tables, dict) else ():
        if seat not in seats:
            raise UserError(f"[seats.{seat}] is a seat that no node is on; seats of the nodes: {choices(seats)}")
    found = convert(tables, dict[str, WrittenSeat], table="seats")
    return {seat: _seated(seat, SeatTable(**msgspec.structs.asdict(table)), specs) for seat, table in found.items()}


def _seated(seat: str, table: SeatTable, specs: Mapping[str, NodeSpec]) -> SeatTable:
    on_seat = [name for name, spec in specs.items() if spec.cls.seat == seat]
    for name in table.candidates:
        if name not in on_seat:
            raise UserError(f"[seats.{seat}] {name!r} is no node on this seat; nodes on it: {choices(on_seat)}")
    for name in on_seat:
        if name not in table.candidates:
            raise UserError(f"[seats.{seat}] node {name!r} is on this seat; name it as holder or among shadows")
    return msgspec.structs.replace(table, kinds={name: kind_of(specs[name]) for name in table.candidates})


def kind_of(spec: NodeSpec) -> Kind:
    """What kind of holder a node is, from its provenance "KIND:NAME"."""
    kind = spec.cls.provenance.partition(":")[0]
    return next((known for known in KINDS if known == kind), "script")


def holders_of(seats: Mapping[str, SeatTable]) -> dict[str, str]:
    """The holder of each seat at the start."""
    return {seat: table.holder for seat, table in seats.items()}


def topics_of(seats: Collection[str], specs: Mapping[str, NodeSpec]) -> dict[str, str]:
    """The topics that only the nodes of one seat publish: whoever publishes there speaks for that seat.

    So a tool that publishes there counts only while it holds the seat. Topics heard by a node that has a role itself,
    and believes another one, belong to no seat: otherwise whoever holds it could keep people from being heard.
    """
    heard = {
        spec.topic_of(port)
        for spec in specs.values()
        if getattr(spec.cls, "role", "") and believes(spec.cls)
        for port in ports_of(spec.cls, Subscription).values()
    }
    owners: dict[str, set[str]] = {}
    for spec in specs.values():
        for port in ports_of(spec.cls, Publisher).values():
            owners.setdefault(spec.topic_of(port), set()).add(spec.cls.seat)
    return {
        topic: seat
        for topic, found in owners.items()
        if len(found) == 1 and topic not in heard and (seat := next(iter(found))) in seats
    }


def as_data(seats: Mapping[str, SeatTable]) -> dict[str, Any]:
    """The seats as plain data, for `run_info`."""
    data: dict[str, Any] = msgspec.to_builtins(dict(seats))
    return data
