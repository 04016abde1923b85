"""Each attribute of a node with a worker has one owner; what breaks that is told before the start."""

from __future__ import annotations

import heapq
import queue
import threading
from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest

from runtime.errors import PolyrhythmError
from runtime.execution.in_process import run
from runtime.launch.graph import Graph, NodeSpec
from runtime.message import Message
from runtime.node import Node, every, on
from runtime.ports import Publisher, Subscription
from runtime.virtual.simulation import Simulation
from tests.support.sentences import pattern, sentence


class Number(Message, kind="state"):
    value: int


@dataclass(frozen=True)
class Plan:
    steps: tuple[int, ...] = ()

    def with_step(self, step: int) -> Plan:
        return replace(self, steps=(*self.steps, step))

    def length(self) -> int:
        return len(self.steps)


class Model:
    __slots__ = ("weights",)

    def __init__(self) -> None:
        self.weights = np.zeros(4)

    def run(self) -> float:
        return float(self.weights.sum())


class Good(Node):
    """Everything that is right: read what others assign, own what it alone assigns, hand on by assigning."""

    number = Subscription(Number, "number")
    told = Publisher(Number, "told")
    thread_safe = ("robot",)

    def __init__(self) -> None:
        self.model = Model()  # the worker's alone
        self.robot = Model()  # looks after itself
        self.plan = Plan()
        self.history: tuple[int, ...] = ()
        self.orders: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.lock = threading.Lock()
        self.found: float | None = None
        self.calls = 0

    def on_start(self) -> None:
        self.calls = 0  # before there is a worker

    @on(number, blocking=True)
    def work(self, number: Number) -> None:
        with self.lock:
            self.robot.run()
        self._count()
        newest = self.number.latest()
        self.found = self.model.run() + self.plan.length() + len(self.history) + (newest.value if newest else 0)

    def _count(self) -> None:
        self.calls += 1
        self.model.weights[0] += 1

    @every(hz=10)
    def tick(self) -> None:
        with self.lock:
            self.robot.run()
        self.orders.put(1)
        self.plan = self.plan.with_step(1)
        self.history = (*self.history[-9:], self.calls)
        if self.model is not None and self.found is not None:
            self.told.publish(Number(value=int(self.found)))


def test_what_has_one_owner_is_right() -> None:
    assert Graph([NodeSpec("good", Good), NodeSpec("source", Source)]).problems() == []
    sim = Simulation(Good(), Source())
    told = sim.record(Good.told)
    sim.run(1.0)
    sim.close()
    assert told[-1].value > told[0].value


class Source(Node):
    number = Publisher(Number, "number")

    @every(hz=20)
    def tick(self) -> None:
        self.number.publish(Number(value=1))


class Base(Node):
    def __init__(self) -> None:
        self.count = 0
        self.points: list[int] = []
        self.near: deque[int] = deque(maxlen=3)
        self.by_name: dict[str, int] = {}
        self.grid = np.zeros(3)
        self.model = Model()
        self.told = ""

    @every(hz=10, blocking=True)
    def work(self) -> None:
        """Overridden."""


class Both(Base):
    @every(hz=10, blocking=True)
    def work(self) -> None:
        self.count += 1

    @every(hz=10)
    def tick(self) -> None:
        self.count = 0


class ByHelper(Base):
    @every(hz=10, blocking=True)
    def work(self) -> None:
        self._tell("work")

    @every(hz=10)
    def tick(self) -> None:
        self._tell("tick")

    def _tell(self, told: str) -> None:
        self.told = told


class Sub(Both):
    """The worker is a base class's, the timer its own; what takes a method's place counts in its place."""

    @every(hz=10)
    def tick(self) -> None:
        self.told = "tick"


class BySuper(Both):
    @every(hz=10)
    def tick(self) -> None:
        super().tick()


class InPlace(Base):
    @every(hz=10, blocking=True)
    def work(self) -> None:
        points, grid = self.points, self.grid
        self.told = f"{self.near[-1]} {sum(points)} {grid[0]} {self.by_name}"

    @every(hz=10)
    def tick(self) -> None:
        self.near.append(1)
        self.by_name["a"] = 1
        points = self.points
        points.append(1)
        self.grid += 1


class ByWorker(Base):
    @property
    def newest(self) -> int:
        return self.points[-1]

    @every(hz=10, blocking=True)
    def work(self) -> None:
        self.points.append(1)

    @every(hz=10)
    def tick(self) -> None:
        self.told = str(self.newest)


class Tracker:
    """An object whose method changes it."""

    def __init__(self) -> None:
        self.best = 0

    def see(self, best: int) -> None:
        self.best = best


class Tracked(Base):
    def __init__(self) -> None:
        super().__init__()
        self.tracker = Tracker()

    @every(hz=10, blocking=True)
    def work(self) -> None:
        self.tracker.see(1)

    @every(hz=10)
    def tick(self) -> None:
        self.tracker.see(2)


def problems(cls: type[Node]) -> list[str]:
    return [problem for _, problem in Graph([NodeSpec("node", cls)]).problems()]


def notes(cls: type[Node]) -> list[str]:
    return [note for _, note in Graph([NodeSpec("node", cls)]).notes()]


def place(cls: type, name: str, line: int, via: str = "") -> str:
    own = vars(cls)[name].__code__.co_firstlineno
    return f"{cls.__name__}.{name} (test_ownership.py:{own + line})" + (f", called by {via}," if via else "")


def test_what_both_sides_assign_has_two_owners() -> None:
    both = sentence("runtime.two_owners", name="count", worker=place(Both, "work", 2), other=place(Both, "tick", 2))
    assert problems(Both) == [both]
    assert problems(Sub) == []
    tell = [place(ByHelper, "_tell", 1, via) for via in ("work", "tick")]
    assert problems(ByHelper) == [sentence("runtime.two_owners", name="told", worker=tell[0], other=tell[1])]


def test_super_leads_to_the_base_class() -> None:
    both = {"name": "count", "worker": place(Both, "work", 2), "other": place(Both, "tick", 2)}
    assert problems(BySuper) == [sentence("runtime.two_owners", **both)]


def test_what_one_side_changes_in_place_the_other_does_not_use() -> None:
    by_name, grid, points = problems(InPlace)  # and not `near`: to append to a ring is one step
    for told, name, line in ((by_name, "by_name", 3), (grid, "grid", 6), (points, "points", 5)):
        assert told.startswith(sentence("runtime.two_users", name=name, changer=place(InPlace, "tick", line)))
    (by_worker,) = problems(ByWorker)
    assert by_worker.startswith(sentence("runtime.two_users", name="points", changer=place(ByWorker, "work", 2)))


def test_an_object_whose_methods_both_sides_call_is_a_note_and_no_refusal() -> None:
    assert problems(Tracked) == []
    (told,) = notes(Tracked)
    named = {"name": "tracker", "worker": place(Tracked, "work", 2), "other": place(Tracked, "tick", 2)}
    assert told.startswith(sentence("runtime.two_callers", **named))

    class Said(Tracked):
        thread_safe = ("tracker",)

    class SetAnew(Both):
        thread_safe = ("count",)  # which object it is has one owner all the same

    assert notes(Said) == []
    assert len(problems(SetAnew)) == 1


class Locked:
    """An object that brings its own lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0


class Allowed(Node):
    """What two threads may do, in ways that look like what they may not."""

    thread_safe = ("said",)

    def __init__(self) -> None:
        self.model = Model()
        self.ring: deque[int] = deque([0], maxlen=9)
        self.locked = Locked()
        self.lock = threading.Lock()
        self.under_lock: list[int] = []
        self.cached: int | None = None
        self.said = [0]
        self.kept_speed = 1.0
        self.text: str | None = None
        self.found: tuple[object, ...] = ()

    @cached_property
    def filled_once(self) -> int:
        return 7

    @property
    def speed(self) -> float:
        return self.kept_speed

    @speed.setter
    def speed(self, speed: float) -> None:
        self.kept_speed = speed

    def lazily(self) -> int:
        if self.cached is None:
            self.cached = 3
        return self.cached

    def note(self) -> None:
        self.under_lock.append(1)

    @every(hz=10, blocking=True)
    def work(self) -> None:
        newest, ring = self.ring[-1], list(self.ring)
        with self.locked.lock:
            self.locked.count += 1
        with self.lock:
            self.note()
        self.said.append(1)
        text = self.text and self.text.upper()
        self.found = (self.model.run(), newest, ring, self.lazily(), self.filled_once, self.speed, text)

    @every(hz=20)
    def tick(self) -> None:
        ring = self.ring
        ring.append(1)
        with self.locked.lock:
            self.locked.count += 1
        with self.lock:
            self.note()
        self.said.append(1)
        self.speed = self.speed + 1.0
        self.text = (self.text or "a").strip()
        self.log.debug("%s %s %s", self.lazily(), self.filled_once, self.model.run())


def test_readers_of_one_model_caches_rings_and_objects_with_a_lock_are_right() -> None:
    assert problems(Allowed) == []
    assert notes(Allowed) == []
    sim = Simulation(node := Allowed())
    sim.run(1.0)
    sim.close()
    assert (node.locked.count, len(node.under_lock), node.cached) == (30, 30, 3)


class LockedCount(Base):
    """A lock round a number that both count in."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    @every(hz=10, blocking=True)
    def work(self) -> None:
        with self.lock:
            self.count += 1

    @every(hz=10)
    def tick(self) -> None:
        with self.lock:
            self.count += 1


def test_a_lock_round_an_attribute_cannot_help_and_the_remedy_is_named() -> None:
    worker, other = place(LockedCount, "work", 3), place(LockedCount, "tick", 3)
    assert problems(LockedCount) == [sentence("runtime.locked_owners", name="count", worker=worker, other=other)]


class Looping(Base):
    """A ring that is gone through while the other side adds to it: that is no one step."""

    @every(hz=10, blocking=True)
    def work(self) -> None:
        self.told = " ".join(str(one) for one in self.near)

    @every(hz=10)
    def tick(self) -> None:
        getattr(self, "near").append(1)  # noqa: B009


class Undone(Base):
    """Both sides take an attribute away."""

    @every(hz=10, blocking=True)
    def work(self) -> None:
        del self.told

    @every(hz=10)
    def tick(self) -> None:
        self.told = ""


def test_a_loop_over_a_ring_and_a_deleted_attribute_are_found() -> None:
    (told,) = problems(Looping)
    assert told.startswith(sentence("runtime.two_users", name="near", changer=place(Looping, "tick", 2)))
    named = {"name": "told", "worker": place(Undone, "work", 2), "other": place(Undone, "tick", 2)}
    assert problems(Undone) == [sentence("runtime.two_owners", **named)]


class Unseen(Base):
    """Changes in place what the other side uses, in ways that its source does not show."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way

    @every(hz=10, blocking=True)
    def work(self) -> None:
        if self.way == "worker":
            heapq.heappush(self.points, 1)
        self.told = f"{self.grid} {self.points} {self.model.weights}"

    @every(hz=10)
    def tick(self) -> None:
        if self.way == "others":
            np.add(self.grid, 1, out=self.grid)
        elif self.way == "inside":
            np.add(self.model.weights, 1, out=self.model.weights)
        self.log.debug("%s %s", self.grid, self.points)


@pytest.mark.parametrize(
    ("way", "who", "name"),
    [
        ("worker", "Unseen.work", "points"),
        ("others", "a handler of Unseen", "grid"),
        ("inside", "a handler of Unseen", "model"),
    ],
)
def test_what_the_source_does_not_show_is_noticed_in_virtual_time(way: str, who: str, name: str) -> None:
    sim = Simulation(Unseen(way))
    with pytest.raises(PolyrhythmError, match=sentence("runtime.changed_in_place", who=who, name=name)):
        sim.run(1.0)


def test_in_real_time_it_is_a_failure_of_the_worker_and_told_from_the_second_second_on() -> None:
    told = rf"unseen \d+ {pattern('runtime.failed_times')} work.*Unseen changed self\.grid in place"
    with pytest.raises(PolyrhythmError, match=told):
        run(NodeSpec("unseen", Unseen, {"way": "others"}), seconds=4.0)
