"""Ports bind to instances, know the newest message, and account for every message they received."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.clock import to_ns
from runtime.context import HandlerContext, current_call
from runtime.errors import GraphError, UserError
from runtime.message import Envelope, Message, Stamped
from runtime.node import Node
from runtime.ports import Publisher, Subscription
from runtime.qos import QoS
from runtime.virtual.scheduler import Scheduler, VirtualClock
from tests.support.sentences import pattern


class Reading(Message, kind="state"):
    value: int


class Word(Message):
    value: int


class Reader(Node):
    reading = Subscription(Reading, "reading")
    word = Subscription(Word, "word")
    out = Publisher(Word, "out")


class Bench:
    """One subscription on a clock that the test sets."""

    def __init__(self, message: type[Reading] | type[Word], qos: QoS, *, has_handler: bool) -> None:
        self.scheduler = Scheduler()
        self.port: Subscription[Reading | Word] = Subscription(message, "topic", qos=qos)
        self.port.clock = VirtualClock(self.scheduler)
        self.port.has_handler = has_handler
        self.seq = 0

    def push(self) -> None:
        self.seq += 1
        message = self.port.message(value=self.seq)
        self.port.push(Stamped(message, Envelope("topic", "test", self.seq, self.scheduler.now_ns)))

    def pop_all(self) -> list[int]:
        found = []
        while (stamped := self.port.pop()) is not None:
            found.append(stamped.message.value)
        return found

    def is_accounted_for(self) -> bool:
        port = self.port
        return port.received == port.delivered + sum(port.dropped.values()) + port.unread


def test_each_instance_has_ports_of_its_own() -> None:
    one, other = Reader(), Reader()
    assert one.reading is one.reading
    assert one.reading is not other.reading
    assert one.reading is not Reader.reading
    assert Reader.reading.topic == one.reading.topic == "reading"


def test_a_port_knows_nothing_before_the_first_message() -> None:
    assert Reader().reading.latest() is None
    assert Reader().reading.stamped() is None


def test_latest_is_the_newest_message_and_stays_so() -> None:
    bench = Bench(Reading, QoS(), has_handler=False)
    bench.push()
    bench.push()
    assert [bench.port.latest(), bench.port.latest()] == [Reading(value=2), Reading(value=2)]
    assert (bench.port.received, bench.port.delivered, dict(bench.port.dropped)) == (2, 1, {"overwritten": 1})


def test_a_message_past_its_lifespan_is_no_longer_known() -> None:
    bench = Bench(Reading, QoS(lifespan_s=0.2), has_handler=False)
    bench.push()
    bench.scheduler.now_ns = to_ns(0.2)
    assert bench.port.latest() == Reading(value=1)
    bench.scheduler.now_ns += 1
    assert bench.port.latest() is None
    assert not bench.port.dropped  # it had been read
    bench.push()
    bench.scheduler.now_ns += to_ns(0.3)
    assert bench.port.latest() is None
    assert dict(bench.port.dropped) == {"expired": 1}
    assert bench.is_accounted_for()


def test_of_states_for_a_handler_the_newest_wins() -> None:
    bench = Bench(Reading, QoS(), has_handler=True)
    for _ in range(3):
        bench.push()
    assert bench.pop_all() == [3]
    assert dict(bench.port.dropped) == {"overwritten": 2}


def test_events_for_a_handler_keep_their_order() -> None:
    bench = Bench(Word, QoS(), has_handler=True)
    for _ in range(3):
        bench.push()
    assert bench.port.pending == 3
    assert bench.pop_all() == [1, 2, 3]
    assert not bench.port.dropped


@pytest.mark.parametrize(("drop", "kept"), [("oldest", [3, 4]), ("newest", [1, 2])])
def test_a_full_queue_drops_at_the_end_that_it_was_told(drop: str, kept: list[int]) -> None:
    bench = Bench(Word, QoS(depth=2, drop="newest" if drop == "newest" else "oldest"), has_handler=True)
    for _ in range(4):
        bench.push()
    assert bench.pop_all() == kept
    assert dict(bench.port.dropped) == {"queue full": 2}


class Order(Message):
    value: int

    @property
    def message_is_urgent(self) -> bool:
        return self.value < 0


@pytest.mark.parametrize(("drop", "kept"), [("oldest", [-1, -5, -6]), ("newest", [-1, -5, -6])])
def test_a_full_queue_drops_what_stops_no_robot_before_what_does(drop: Any, kept: list[int]) -> None:
    port: Subscription[Order] = Subscription(Order, "topic", qos=QoS(depth=3, drop=drop))
    port.clock, port.has_handler = VirtualClock(Scheduler()), True
    for seq, value in enumerate((-1, 2, 3, 4, -5, -6), 1):
        port.push(Stamped(Order(value=value), Envelope("topic", "test", seq, 0)))
    found = iter(port.pop, None)
    assert [stamped.message.value for stamped in found if stamped] == kept
    for seq, value in enumerate((-1, -2, -3, -4), 10):
        port.push(Stamped(Order(value=value), Envelope("topic", "test", seq, 0)))
    assert [stamped.message.value for stamped in iter(port.pop, None) if stamped] == [-2, -3, -4], "of them the oldest"


def test_a_handler_never_gets_an_expired_message() -> None:
    bench = Bench(Word, QoS(lifespan_s=1), has_handler=True)
    bench.push()
    bench.scheduler.now_ns = to_ns(1.5)
    bench.push()
    assert bench.pop_all() == [2]
    assert dict(bench.port.dropped) == {"expired": 1}


def test_what_the_transport_lost_counts_as_received_and_dropped() -> None:
    bench = Bench(Word, QoS(), has_handler=True)
    bench.push()
    bench.port.lose("link", 3)
    assert (bench.port.received, dict(bench.port.dropped)) == (4, {"link": 3})
    assert bench.is_accounted_for()


@settings(deadline=None)
@given(
    message=st.sampled_from([Reading, Word]),
    depth=st.integers(0, 3),
    drop=st.sampled_from(["oldest", "newest"]),
    lifespan_s=st.sampled_from([None, 1.0]),
    has_handler=st.booleans(),
    steps=st.lists(st.sampled_from(["push", "pop", "look", "wait", "lose"]), max_size=40),
)
def test_received_is_delivered_and_dropped_and_unread_at_all_times(
    message: type[Reading], depth: int, drop: str, lifespan_s: float | None, has_handler: bool, steps: list[str]
) -> None:
    qos = QoS(depth=depth, drop="newest" if drop == "newest" else "oldest", lifespan_s=lifespan_s)
    bench = Bench(message, qos, has_handler=has_handler)
    for step in steps:
        if step == "push":
            bench.push()
        elif step == "pop":
            bench.port.pop()
        elif step == "look":
            bench.port.latest()
        elif step == "lose":
            bench.port.lose("link", 2)
        else:
            bench.scheduler.now_ns += to_ns(0.6)
        assert bench.is_accounted_for()
        assert bench.port.pending <= bench.port.qos.depth


def test_looking_hands_the_ages_to_the_call() -> None:
    bench = Bench(Reading, QoS(), has_handler=False)
    bench.port.push(Stamped(Reading(value=1), Envelope("topic", "test", 1, 9, origins={"image": 7, "plan": 5})))
    call = HandlerContext(0)
    token = current_call.set(call)
    try:
        bench.port.latest()
    finally:
        current_call.reset(token)
    assert call.origins == {"image": 7, "plan": 5}


def test_a_publisher_takes_its_own_type_only() -> None:
    reader = Reader()
    with pytest.raises(TypeError, match=re.escape("publishes on topic 'out' a Reading; expected Word")):
        reader.out.publish(Reading(value=1))  # type: ignore[arg-type]
    assert reader.out.sent == 0


def test_an_unconnected_publisher_counts_and_sends_nowhere() -> None:
    reader = Reader()
    reader.out.publish(Word(value=1))
    assert reader.out.sent == 1


@pytest.mark.parametrize("name", ["", "Head", "head//image", "/head", "head/", "1st", "head image", "a" * 121])
def test_a_topic_name_is_words_joined_by_slashes(name: str) -> None:
    with pytest.raises(GraphError, match=pattern("runtime.no_topic_name")):
        Subscription(Reading, name)


@pytest.mark.parametrize("has_handler", [True, False])
@pytest.mark.parametrize("is_read", [True, False])
def test_an_event_that_comes_late_is_handled_but_is_never_the_newest(has_handler: bool, is_read: bool) -> None:
    port: Subscription[Word] = Subscription(Word, "word")
    port.has_handler = has_handler
    later, earlier = (Stamped(Word(value=ns), Envelope("word", "mouth", ns, ns)) for ns in (2, 1))
    port.push(later)
    if is_read:
        assert port.latest() == Word(value=2)
    port.push(earlier)
    assert port.latest() == Word(value=2)
    if has_handler:
        assert [port.pop(), port.pop()] == [later, earlier]
    assert port.received == port.delivered + sum(port.dropped.values()) + port.unread == 2
    port.push(Stamped(Word(value=0), Envelope("word", "other", 1, 0)))
    assert port.latest() == Word(value=0), "the stamps of two senders are not compared"


def test_a_port_is_not_deleted_and_all_else_is() -> None:
    class Talks(Node):
        beat = Publisher(Reading, "beat")

    node = Talks()
    node.kept = 1  # type: ignore[attr-defined]
    del node.kept  # type: ignore[attr-defined]
    assert not hasattr(node, "kept")
    port = node.beat
    with pytest.raises(UserError, match=r"Talks\.beat is a port"):
        del node.beat
    assert node.beat is port
