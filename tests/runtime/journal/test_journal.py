"""Where a recorder listens, inputs, clock readings and outputs of each call are known; elsewhere nothing is kept."""

from __future__ import annotations

from typing import Any, ClassVar

from runtime.journal.calls import Calls
from runtime.journal.journal import Journal
from runtime.launch.graph import NodeSpec
from runtime.message import Message, Stamped
from runtime.node import Node, every, on
from runtime.ports import Publisher, Subscription
from runtime.virtual.simulation import Simulation


class Number(Message, kind="state"):
    value: int


class Order(Message):
    text: str


class Adder(Node):
    number = Subscription(Number, "number")
    order = Subscription(Order, "order")
    total = Publisher(Number, "total")

    @every(hz=2)
    def add(self) -> None:
        number = self.number.latest()
        if number is not None:
            self.clock.now_ns()
            self.total.publish(Number(value=number.value + 1))

    @on(order)
    async def obey(self, order: Order) -> None:
        await self.clock.sleep(0.25)
        self.clock.now_ns()
        self.number.latest()


class Memory(Node):
    subscribes_all: ClassVar[bool] = True

    def __init__(self) -> None:
        self.batches: list[Calls] = []

    def on_any(self, stamped: Stamped[Any]) -> None:
        if isinstance(stamped.message, Calls):
            self.batches.append(stamped.message)


def run(*nodes: Node) -> None:
    simulation = Simulation(*(NodeSpec(node.name, type(node), instance=node) for node in nodes), health_hz=1.0)
    simulation.publish("number", Number(value=4))
    simulation.run(0.6)
    simulation.publish("order", Order(text="go"))
    simulation.run(1.0)
    simulation.close()


def test_each_call_names_what_it_read_and_what_it_sent() -> None:
    memory = Memory()
    run(Adder(), memory)
    calls = [call for batch in memory.batches for call in batch.calls]
    ticks = [call for call in calls if call.handler == "add"]
    assert [call.started_ns for call in ticks] == [0, 500_000_000, 1_000_000_000, 1_500_000_000]
    assert {call.reads for call in ticks} == {("number=number:test:1",)}
    assert [call.sent for call in ticks] == [(f"total:adder:{seq}",) for seq in (1, 2, 3, 4)]


def test_an_async_call_tells_its_trigger_its_duration_and_its_clock() -> None:
    memory = Memory()
    run(Adder(), memory)
    (call,) = [call for batch in memory.batches for call in batch.calls if call.handler == "obey"]
    assert call.trigger == "order:test:2"
    assert call.took_ns == 250_000_000
    assert call.nows_ns == (250_000_000,)


def test_a_read_that_found_nothing_is_noted_as_such() -> None:
    memory = Memory()
    simulation = Simulation(Adder(), memory, health_hz=1.0)
    simulation.run(0.9)
    simulation.close()
    (call,) = [call for call in memory.batches[0].calls if call.started_ns == 0 and call.handler == "add"]
    assert call.reads == ("number=",)


def test_without_a_recorder_no_journal_is_kept() -> None:
    simulation = Simulation(Adder(), health_hz=1.0)
    assert simulation.bound_nodes["adder"].journal is None
    assert not any(topic.startswith("calls/") for topic in simulation.graph.types)
    simulation.close()


def test_a_journal_is_empty_until_a_call_ends() -> None:
    assert Journal().take("node") is None
