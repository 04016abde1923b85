"""A worker's call sees its node as it was when it began, and gives back what it set when it has ended."""

from __future__ import annotations

import random

import numpy as np
import pytest

from runtime.errors import PolyrhythmError
from runtime.execution.in_process import run
from runtime.execution.worker_view import AssignedByOthers, WorkerView
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.handler_latency import Latency
from runtime.message import Message
from runtime.node import Node, every, on
from runtime.ports import Publisher, Subscription
from runtime.virtual.simulation import Simulation
from tests.support.sentences import pattern, sentence


class Number(Message, kind="state"):
    value: int


class Counter(Node):
    asked = Subscription(Number, "asked")
    told = Publisher(Number, "told")

    def __init__(self) -> None:
        self.ticks = 0
        self.seen = -1
        self.gone = True
        self.weights = np.zeros(3)

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
    view = WorkerView(node, random.Random(0))
    node.tick()
    assert isinstance(view.node, Counter)
    view.node.look(Number(value=1))
    assert (node.seen, node.gone, view.node.seen) == (-1, True, 0)
    assert view.commit(node) == []
    assert (node.seen, node.ticks) == (0, 1)
    assert not hasattr(node, "gone")


def test_what_others_changed_meanwhile_stays_and_no_value_is_copied() -> None:
    node = Counter()
    view = WorkerView(node, random.Random(0))
    node.ticks = 5
    assert view.node.weights is node.weights
    assert view.commit(node) == []
    assert node.ticks == 5


def test_random_numbers_of_the_worker_are_its_own() -> None:
    node = Counter()
    before = node.random.getstate()
    view = WorkerView(node, random.Random(1))
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


def test_what_both_set_is_refused_also_where_one_did_so_between_two_calls_of_the_other() -> None:
    node, others = Counter(), AssignedByOthers(Counter)
    view = WorkerView(node, random.Random(0), others)
    view.node.seen, view.node.ticks = 1, 1
    node.ticks = 5
    assert view.commit(node) == ["ticks"]
    assert (node.seen, node.ticks) == (1, 5)
    node.seen = 9
    view = WorkerView(node, random.Random(0), others)
    view.node.seen = 2
    assert view.commit(node) == ["seen"]
    assert node.seen == 9


class Hidden(Node):
    """Both sides count in one attribute, in a way that no look at the source shows."""

    def __init__(self) -> None:
        self.counts = 0

    @every(hz=20, blocking=True)
    def look(self) -> None:
        setattr(self, "counts", self.counts + 1)  # noqa: B010

    @every(hz=20)
    def tick(self) -> None:
        self.counts += 1
        if self.counts == 20:
            self.finish(ok=True, reason="counted")


def test_a_lost_update_is_a_failure_of_the_worker_in_both_times() -> None:
    told = sentence("runtime.two_assign", handler="Hidden.look", names="self.counts")
    with pytest.raises(PolyrhythmError, match=told):
        Simulation(Hidden()).run(1.0)
    with pytest.raises(PolyrhythmError, match=rf"hidden \d+ {pattern('runtime.failed_times')} look.*self\.counts"):
        run(NodeSpec("hidden", Hidden), seconds=60)


class Careless(Node):
    """Takes away what the run has given it, and something of its own."""

    out = Publisher(Number, "out")

    def __init__(self) -> None:
        self.own = 1
        self.moments_s: list[float] = []

    @every(hz=5, blocking=True)
    def look(self) -> None:
        for name in ("clock", "_random", "_name", "out"):
            vars(self).pop(name)
        self.clock.now_s()
        self.random.random()

    @every(hz=10)
    def tick(self) -> None:
        self.moments_s.append(self.clock.now_s())
        if hasattr(self, "own"):
            del self.own
        self.out.publish(Number(value=len(self.moments_s)))


def test_a_handler_that_deletes_attributes_takes_nothing_of_the_runs_away_from_the_others() -> None:
    simulation = Simulation(node := Careless())
    told = simulation.record(Careless.out)
    simulation.run(1.0)
    simulation.close()
    assert [number.value for number in told] == list(range(1, 11))
    assert node.moments_s[1] - node.moments_s[0] == pytest.approx(0.1)
    assert not hasattr(node, "own")


class Both(Node):
    """One side assigns what the other takes away, in ways that no look at the source shows."""

    def __init__(self) -> None:
        self.told = 0

    @every(hz=5, blocking=True)
    def look(self) -> None:
        setattr(self, "told", 1)  # noqa: B010

    @every(hz=10)
    def tick(self) -> None:
        vars(self).pop("told", None)


def test_to_delete_an_attribute_is_to_assign_it() -> None:
    with pytest.raises(PolyrhythmError, match=sentence("runtime.two_assign", handler="Both.look", names="self.told")):
        Simulation(Both()).run(1.0)
