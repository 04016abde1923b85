"""A worker's call sees its node as it was when it began, and gives back what it set when it has ended."""

from __future__ import annotations

import random
import threading
from collections import deque
from dataclasses import dataclass

import numpy as np
import pytest

from runtime.errors import PolyrhythmError
from runtime.execution.in_process import run
from runtime.launch.graph import NodeSpec
from runtime.launch.latency import Latency
from runtime.message import Message
from runtime.node import Node, every, on
from runtime.ports import Publisher, Subscription
from runtime.snapshot import NodeSnapshot, names_used
from runtime.virtual.simulation import Simulation
from tests.support.sentences import pattern


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


class Thing:
    """An object of a user's own: with a list, and with another one of its kind."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen_at: list[int] = []
        self.near: Thing | None = None


@dataclass(frozen=True)
class Place:
    things: list[Thing]


@dataclass(slots=True)
class Score:
    points: int = 0


class Locked:
    """An object that looks after itself."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0


class World(Node):
    """Keeps values inside of others, which its timer changes and its worker looks at."""

    asked = Subscription(Number, "asked")

    def __init__(self, changes: bool = False) -> None:
        self.changes = changes
        self.is_one = False
        self.cup, self.plate = Thing("cup"), Thing("plate")
        self.cup.near, self.plate.near = self.plate, self.cup  # round and round
        self.by_name = {"cup": [self.cup], "plate": [self.plate]}
        self.places = (Place([self.cup]), Place([]))
        self.score = Score()
        self.locked = Locked()
        self.seen: tuple[object, ...] = ()

    @every(hz=10)
    def tick(self) -> None:
        self.cup.seen_at.append(len(self.cup.seen_at))
        self.by_name["cup"].append(self.plate)
        self.places[1].things.append(self.plate)
        self.score.points += 1
        self.locked.count += 1

    @on(asked, blocking=True)
    def look(self, asked: Number) -> None:
        inside = self.places[0].things[0]
        self.is_one = inside is self.cup is self.by_name["cup"][0] and inside.near is self.plate
        if self.changes:
            inside.name = "mug"
            self.plate.seen_at.append(9)
            self.by_name = {**self.by_name, "mug": [inside]}
        counts = len(self.cup.seen_at), len(self.by_name["cup"]), len(self.places[1].things), self.score.points
        self.seen = (*counts, self.locked.count)


def test_what_lies_inside_of_other_values_is_copied_too_but_for_what_is_no_data() -> None:
    node = World()
    view = NodeSnapshot(node, random.Random(0))
    node.tick()
    view.node.look(Number(value=1))
    assert view.node.seen == (0, 1, 0, 0, 1)
    assert view.commit(node) == []
    assert node.is_one  # several ways to one object are still ways to one
    node.tick()
    assert node.seen == (0, 1, 0, 0, 1)
    assert (node.cup.seen_at, len(node.by_name["cup"]), node.score.points) == ([0, 1], 3, 2)


def test_what_a_worker_changes_inside_of_others_is_written_back_into_them() -> None:
    node = World(changes=True)
    cup, plate = node.cup, node.plate
    view = NodeSnapshot(node, random.Random(0))
    view.node.look(Number(value=1))
    assert (cup.name, plate.seen_at) == ("cup", [])
    assert view.commit(node) == []
    assert (cup.name, plate.seen_at) == ("mug", [9])
    assert node.cup is cup is node.by_name["mug"][0] is node.places[0].things[0]


def test_what_both_change_inside_of_a_value_is_refused_under_its_attribute() -> None:
    node = World(changes=True)
    view = NodeSnapshot(node, random.Random(0))
    node.cup.name = "pot"
    view.node.look(Number(value=1))
    assert view.commit(node) == ["cup"]
    assert (node.cup.name, node.plate.seen_at) == ("pot", [])  # all that hangs together, or nothing of it


def test_only_what_the_code_of_a_worker_names_is_copied() -> None:
    named = names_used(World, ["look"], Node) or frozenset()
    assert {"cup", "score"} <= named
    node = World()
    view = NodeSnapshot(node, random.Random(0), named - {"score"})
    assert view.node.cup is not node.cup
    assert view.node.score is node.score


class Elsewhere(Node):
    """Methods that use the node in ways in which they do not name what they use."""

    def __init__(self) -> None:
        self.points: list[int] = []

    def by_call(self) -> int:
        return self._count()

    def _count(self) -> int:
        return len([None for _ in range(2) if self.points])

    def by_name(self) -> object:
        return getattr(self, "points")  # noqa: B009

    def given_away(self) -> list[str]:
        return sorted(map(str, [self, 1]))

    def given_away_inside(self) -> list[object]:
        return [one for one in (1, self) if one]


@pytest.mark.parametrize("method", ["by_name", "given_away", "given_away_inside"])
def test_code_that_may_use_anything_gets_copies_of_everything(method: str) -> None:
    assert names_used(Elsewhere, [method], Node) is None
    assert "points" in (names_used(Elsewhere, ["by_call"], Node) or ())


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
    with pytest.raises(
        PolyrhythmError, match=rf"both 1 {pattern('runtime.failed_times')} look.*changed self\.items in place"
    ):
        run(NodeSpec("both", Both), seconds=60)
