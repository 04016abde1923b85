"""What is published at once is as many messages as were given: numbered, in order, each counted, on every way."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from nodes.msgs.interrupt import PREEMPTS
from runtime import Message, Node, Publisher, Simulation, Subscription, every, on
from runtime.clock import SystemClock
from runtime.coordination.fence import Fence, PreemptionEpochs, raised
from runtime.execution.bound_node import BoundNode, NodeOutput
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.handler_latency import Latency
from runtime.message import Envelope, Stamped
from runtime.virtual.trace import MessageTrace

SAMPLES = 10


class Sample(Message):
    number: int


class Tick(Message):
    number: int


class Sight(Message, kind="state", origin="image"):
    captured_ns: int


class Sensor(Node):
    """Reads a device that hands over its samples ten at a time."""

    tick = Subscription(Tick, "tick")
    sample = Publisher(Sample, "sample")
    sight = Publisher(Sight, "sight")

    def __init__(self, is_at_once: bool) -> None:
        self.is_at_once = is_at_once

    @on(tick)
    def read(self, tick: Tick) -> None:
        samples = [Sample(number=tick.number * SAMPLES + place) for place in range(SAMPLES)]
        sights = [Sight(captured_ns=tick.number + place) for place in range(1, 3)]
        if self.is_at_once:
            self.sample.publish_all(samples)
            self.sight.publish_all(sights)
        else:
            for sample in samples:
                self.sample.publish(sample)
            for sight in sights:
                self.sight.publish(sight)


class Clockwork(Node):
    tick = Publisher(Tick, "tick")

    def __init__(self) -> None:
        self.number = 0

    @every(hz=5)
    def beat(self) -> None:
        self.tick.publish(Tick(number=self.number))
        self.number += 1


class Filter(Node):
    sample = Subscription(Sample, "sample")
    total = Publisher(Tick, "total")

    def __init__(self) -> None:
        self.numbers: list[int] = []

    @on(sample)
    def add(self, sample: Sample) -> None:
        self.numbers.append(sample.number)
        if len(self.numbers) % SAMPLES == 0:
            self.total.publish(Tick(number=sum(self.numbers)))


def run(is_at_once: bool) -> tuple[list[str], list[int], list[Stamped[Sample]]]:
    """Every message of two seconds, the numbers that a node heard, and the samples with their envelopes."""
    trace, heard, found = MessageTrace(keep=True), Filter(), list[Stamped[Sample]]()
    simulation = Simulation(
        *(NodeSpec("sensor", Sensor, {"is_at_once": is_at_once}), Clockwork(), heard), health_hz=0.0, trace=trace
    )
    simulation.observe(lambda stamped: found.append(stamped) if stamped.envelope.topic == "sample" else None)
    simulation.run(seconds=2.0)
    simulation.close()
    assert trace.lines is not None
    return trace.lines, heard.numbers, found


def test_a_run_is_the_same_whether_messages_are_published_at_once_or_one_by_one() -> None:
    assert run(is_at_once=True) == run(is_at_once=False)


def test_each_has_a_number_of_its_own_and_all_have_one_moment_and_one_cause() -> None:
    _, numbers, found = run(is_at_once=True)
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= SAMPLES * 10
    assert [stamped.envelope.seq for stamped in found] == list(range(1, len(found) + 1))
    first = {(stamped.envelope.published_ns, stamped.envelope.cause) for stamped in found[:SAMPLES]}
    assert first == {(found[0].envelope.published_ns, "tick:clockwork:1")}


def test_another_type_among_them_is_refused_before_any_is_sent() -> None:
    sensor = Sensor(is_at_once=True)
    sent: list[Message] = []
    sensor.sample.sink_all = lambda port, messages, _: sent.extend(messages)
    refusal = "publishes on topic 'sample' a Tick; expected Sample"
    with pytest.raises(TypeError, match=re.escape(refusal)):
        sensor.sample.publish_all([Sample(number=1), Tick(number=2)])  # type: ignore[list-item]
    assert not sent


def test_a_port_that_a_test_listens_at_hears_each_of_them() -> None:
    sensor = Sensor(is_at_once=True)
    heard: list[Message] = []
    sensor.sample.sink = lambda port, message, _: heard.append(message)
    sensor.sample.publish_all(Sample(number=number) for number in range(3))
    assert heard == [Sample(number=number) for number in range(3)]


def test_nothing_at_once_is_nothing_and_a_port_that_is_not_connected_counts() -> None:
    sensor = Sensor(is_at_once=True)
    sensor.sample.publish_all([])
    sensor.sample.publish_all(Sample(number=number) for number in range(3))
    assert sensor.sample.sent == 3


class Patch(Message):
    newtons: NDArray[np.float64]


class Touched(Message):
    patch: Patch


class Skin(Node):
    touched = Publisher(Touched, "touched")


def test_arrays_however_deep_inside_go_one_by_one() -> None:
    alone: list[int] = []
    together: list[Message] = []

    class Ends(NodeOutput):
        def send(self, envelope: Envelope, message: Message) -> None:
            alone.append(envelope.seq)

        def send_all(self, envelope: Envelope, messages: Sequence[Message]) -> None:
            together.extend(messages)

    skin = Skin()
    BoundNode(
        skin,
        name="skin",
        clock=SystemClock(),
        seed=0,
        output=Ends(),
        fence=PreemptionEpochs(),
    )
    skin.touched.publish_all([Touched(patch=Patch(newtons=np.arange(3.0))) for _ in range(3)])
    assert (alone, together) == ([1, 2, 3], [])


class Thinker(Node):
    """Answers with many words after two seconds."""

    seat = "planner"
    tick = Subscription(Tick, "tick")
    sample = Publisher(Sample, "sample")

    @on(tick)
    async def think(self, tick: Tick) -> None:
        try:
            await asyncio.sleep(2.0)
        except asyncio.CancelledError:
            self.sample.publish_all([Sample(number=number) for number in range(SAMPLES)])  # its last words, too late


def test_what_is_published_after_a_fence_is_void_and_each_of_it_is_counted() -> None:
    thinker, heard = Thinker(), Filter()
    simulation = Simulation(thinker, heard)
    simulation.publish("tick", Tick(number=1))
    simulation.run(seconds=1.0)
    simulation.publish("fence", Fence(epochs=raised({}, PREEMPTS["stop"])))
    simulation.run(seconds=3.0)
    assert heard.numbers == []
    assert thinker.sample.sent == SAMPLES


def test_a_handler_that_takes_long_publishes_all_of_it_at_its_end() -> None:
    latency = {"read": Latency.parse({"p50": 0.05, "p99": 0.05}, "sensor")}
    simulation = Simulation(
        *(NodeSpec("sensor", Sensor, {"is_at_once": True}, latency=latency), Clockwork()), health_hz=0.0
    )
    found: list[int] = []
    simulation.observe(
        lambda stamped: found.append(stamped.envelope.published_ns) if stamped.envelope.topic == "sample" else None
    )
    simulation.run(seconds=0.1)
    simulation.close()
    assert found == [50_000_000] * SAMPLES
