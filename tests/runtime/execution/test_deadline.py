"""A deadline tells once of each silence; late joiners and mismatches of QoS, in words."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest

from runtime import Message, Node, Publisher, QoS, Simulation, Subscription, every, on, on_deadline
from runtime.errors import GraphError, UserError
from runtime.launch.graph import Graph, NodeSpec
from runtime.message import Envelope, Stamped
from runtime.node import handlers_of
from runtime.transport.zeromq import PublisherSockets, Reader
from tests.support.running import eventually
from tests.support.sentences import pattern


class Level(Message, kind="state"):
    value: int


class Pump(Node):
    """Sends every 100 ms for a second, is silent for a second, and so on."""

    level = Publisher(Level, "level")

    def __init__(self) -> None:
        self.value = 0

    @every(hz=10)
    def tick(self) -> None:
        self.value += 1
        if (self.value - 1) // 10 % 2 == 0:
            self.level.publish(Level(value=self.value))


class Watcher(Node):
    level = Subscription(Level, "level", qos=QoS(deadline_s=0.25))

    def __init__(self) -> None:
        self.silences_s: list[float] = []

    @on(level)
    def take(self, level: Level) -> None:
        pass

    @on_deadline(level)
    def silent(self) -> None:
        self.silences_s.append(self.clock.now_ns() * 1e-9)


def test_each_silence_is_told_once_and_on_time() -> None:
    watcher = Watcher()
    Simulation(Pump(), watcher).run(seconds=6.0)
    assert watcher.silences_s == pytest.approx([1.15, 3.15, 5.15])
    assert watcher.level.deadlines_missed == 3


def test_silence_from_the_start_is_told() -> None:
    watcher = Watcher()
    Simulation(watcher).run(seconds=2.0)
    assert watcher.silences_s == pytest.approx([0.25])


def test_a_deadline_that_nobody_watches_is_refused_in_words() -> None:
    class Careless(Node):
        level = Subscription(Level, "level", qos=QoS(deadline_s=0.25))

    with pytest.raises(UserError, match=r"Careless\.level has a deadline that nobody watches"):
        handlers_of(Careless)


def test_a_watch_without_a_deadline_is_refused_in_words() -> None:
    class Confused(Node):
        level = Subscription(Level, "level")

        @on_deadline(level)
        def silent(self) -> None:
            pass

    with pytest.raises(UserError, match=pattern("runtime.no_deadline")):
        handlers_of(Confused)


class Asking(Node):
    level = Subscription(Level, "level", qos=QoS(late_join=True))


def test_asking_for_what_is_not_offered_is_an_error_at_the_start() -> None:
    with pytest.raises(GraphError, match="asking asks for late_join, which pump does not offer"):
        Graph([NodeSpec("pump", Pump), NodeSpec("asking", Asking)]).check()


class SlowPump(Node):
    level = Publisher(Level, "level", qos=QoS(deadline_s=1.0))


def test_a_promise_that_is_too_weak_is_an_error_at_the_start() -> None:
    with pytest.raises(
        GraphError, match=pattern("runtime.deadline_not_offered", asked_s=r"0\.25", publisher="pump", offered_s=1)
    ):
        Graph([NodeSpec("pump", SlowPump), NodeSpec("watcher", Watcher)]).check()


@pytest.mark.processes
def test_a_late_joiner_gets_the_newest_state_and_the_others_hear_it_once() -> None:
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        folder = Path(name)
        outlet = PublisherSockets(folder, "pump")
        outlet.kept["level"] = ()
        first: list[Stamped[Level]] = []
        late: list[Stamped[Level]] = []
        readers = []
        try:
            for heard in (first, late):
                reader = Reader({"level": Level}, heard.append, lambda topic, reason, number, why: None)
                reader.connect(folder, ["pump"])
                readers.append(reader)
                if heard is first:
                    assert asyncio.run(outlet.await_subscribers({"level": 1}, 5.0, asyncio.Event())) == []
                    for seq in (1, 2, 3):
                        outlet.publish(Envelope("level", "pump", seq, seq), Level(value=seq))
                    eventually(lambda: readers[0].poll(64) >= 0 and len(first) == 3, "the first one hears all")

            def has_joined() -> bool:
                outlet.send_late_join()
                return sum(reader.poll(64) for reader in readers) >= 0 and bool(late)

            eventually(has_joined, "the late one gets the newest")
            assert [stamped.message.value for stamped in late] == [3]
            readers[0].poll(64)
            assert [stamped.message.value for stamped in first] == [1, 2, 3]
        finally:
            for reader in readers:
                reader.close()
            outlet.close()
