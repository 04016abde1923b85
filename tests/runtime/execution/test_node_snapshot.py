"""A worker's call sees its node as it was when it began, and gives back what it set when it has ended."""

from __future__ import annotations

import random

import pytest

from runtime.context import NodeSnapshot
from runtime.launch.graph import NodeSpec
from runtime.launch.latency import Latency
from runtime.message import Message
from runtime.node import Node, every, on
from runtime.ports import Publisher, Subscription
from runtime.virtual.simulation import Simulation


class Number(Message, kind="state"):
    value: int


class Counter(Node):
    asked = Subscription(Number, "asked")
    told = Publisher(Number, "told")

    def __init__(self) -> None:
        self.ticks = 0
        self.seen = -1
        self.gone = True

    @every(hz=10)
    def tick(self) -> None:
        self.ticks += 1
        self.told.publish(Number(value=self.seen))

    @on(asked, blocking=True)
    def look(self, asked: Number) -> None:
        self.seen = self.ticks
        del self.gone


def test_what_a_worker_sets_and_deletes_shows_at_its_end_only() -> None:
    node = Counter()
    view = NodeSnapshot(node, random.Random(0))
    node.tick()
    assert isinstance(view.node, Counter)
    view.node.look(Number(value=1))
    assert (node.seen, node.gone, view.node.seen) == (-1, True, 0)
    view.commit(node)
    assert (node.seen, node.ticks) == (0, 1)
    assert not hasattr(node, "gone")


def test_what_others_changed_meanwhile_stays() -> None:
    node = Counter()
    view = NodeSnapshot(node, random.Random(0))
    node.ticks = 5
    view.commit(node)
    assert node.ticks == 5


def test_random_numbers_of_the_worker_are_its_own() -> None:
    node = Counter()
    before = node.random.getstate()
    view = NodeSnapshot(node, random.Random(1))
    view.node.random.random()
    view.commit(node)
    assert node.random.getstate() == before


@pytest.mark.parametrize(("latency_s", "expected"), [(0.0, [-1, -1, 2, 2, 2]), (0.15, [-1, -1, -1, 2, 2])])
def test_in_virtual_time_it_shows_after_the_declared_latency(latency_s: float, expected: list[int]) -> None:
    latency = {"look": Latency.parse(latency_s, "counter.look")} if latency_s else {}
    simulation = Simulation(NodeSpec("counter", Counter, latency=latency))
    told = simulation.record(Counter.told)
    simulation.run(0.15)
    simulation.publish("asked", Number(value=1))
    simulation.run(0.35)
    simulation.close()
    assert [number.value for number in told] == expected
