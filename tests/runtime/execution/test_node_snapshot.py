"""A worker's call sees its node as it was when it began, and gives back what it set when it has ended."""

from __future__ import annotations

import random
import threading
from collections import deque

import numpy as np
import pytest

from runtime.context import NodeSnapshot
from runtime.errors import PolyrhythmError
from runtime.execution.in_process import run
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


class Kept(Node):
    """A timer and a worker that keep values which change in place."""

    asked = Subscription(Number, "asked")

    def __init__(self, both: bool = False) -> None:
        self.both = both
        self.points: list[int] = []
        self.names = {"a": 1}
        self.waiting = deque([1, 2])
        self.grid = np.zeros(3)
        self.same = self.points
        self.seen: tuple[object, ...] = ()

    @every(hz=10)
    def tick(self) -> None:
        self.points.append(len(self.points))
        self.names["a"] += 1
        self.grid[0] += 1
        if self.both:
            self.waiting.append(3)

    @on(asked, blocking=True)
    def look(self, asked: Number) -> None:
        self.waiting.popleft()
        assert self.same is self.points
        self.seen = (self.points, self.names, self.grid)


def test_what_others_change_in_place_a_worker_does_not_see() -> None:
    node = Kept()
    view = NodeSnapshot(node, random.Random(0))
    node.tick()
    view.node.look(Number(value=1))
    points, names, grid = view.node.seen
    assert (points, names, grid.tolist()) == ([], {"a": 1}, [0.0, 0.0, 0.0])
    assert view.commit(node) == []
    assert (node.points, node.names, node.grid.tolist()) == ([0], {"a": 2}, [1.0, 0.0, 0.0])
    assert node.waiting == deque([2])  # changed by the worker alone


def test_what_both_change_in_place_is_refused_and_named() -> None:
    simulation = Simulation(NodeSpec("kept", Kept, {"both": True}, latency={"look": Latency(0.15, 0.15)}))
    simulation.publish("asked", Number(value=1))
    with pytest.raises(PolyrhythmError, match=r"Kept\.look changed self\.waiting in place while another"):
        simulation.run(1.0)


class Both(Node):
    """Its timer adds to a list while its worker does."""

    def __init__(self) -> None:
        self.items: list[int] = []
        self.has_begun = threading.Event()
        self.is_added = threading.Event()

    @every(hz=20, blocking=True)
    def look(self) -> None:
        if not self.is_added.is_set():
            self.has_begun.set()
            assert self.is_added.wait(60)
            self.items.append(1)

    @every(hz=20)
    def tick(self) -> None:
        if self.is_added.is_set():
            self.finish(ok=True, reason=f"{self.items}")
        elif self.has_begun.is_set():
            self.items.append(2)
            self.is_added.set()


def test_in_real_time_that_is_a_failure_of_the_handler() -> None:
    with pytest.raises(PolyrhythmError, match=r"both 1 times, the last time in look.*changed self\.items in place"):
        run(NodeSpec("both", Both), seconds=60)
