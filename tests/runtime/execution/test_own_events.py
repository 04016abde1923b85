"""Events that a plain node's loop takes in by itself: in order, none lost while it keeps up, and bounded."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime import Message, Node, QoS, Subscription, every, on
from runtime.clock import SystemClock
from runtime.coordination.fence import PreemptionEpochs
from runtime.execution.bound_node import BoundNode, NodeOutput
from runtime.execution.direct_call import direct_call
from runtime.execution.runners import OVERLOADED_NS, LoopRunner
from runtime.message import Envelope
from runtime.transport.zeromq import PublisherSockets, Reader

pytestmark = pytest.mark.processes


class Word(Message):
    number: int


class Level(Message, kind="state"):
    number: int


class Listener(Node):
    """Notes what it hears, and fails now and then."""

    word = Subscription(Word, "word", qos=QoS(depth=8))
    level = Subscription(Level, "level")

    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []
        self.causes: list[str] = []
        self.ticks = 0

    @on(word)
    def hear(self, word: Word) -> None:
        self.heard.append(("word", word.number))
        assert self.context.trigger is not None
        self.causes.append(self.context.cause)
        if word.number % 50 == 7:
            raise ValueError("a word that nobody likes")

    @on(level)
    def see(self, level: Level) -> None:
        self.heard.append(("level", level.number))

    @every(hz=100)
    def tick(self) -> None:
        self.ticks += 1


class Wire:
    """A publisher in this process, and a node whose lane the loop drives."""

    def __init__(self, folder: Path) -> None:
        self.outlet = PublisherSockets(folder, "source")
        self.node = Listener()
        self.bound = BoundNode(
            self.node, name="listener", clock=SystemClock(), seed=0, output=Silent(), fence=PreemptionEpochs()
        )
        (self.lane,) = self.bound.lanes
        ports: dict[str, Subscription[Any]] = {"word": self.node.word, "level": self.node.level}
        types: dict[str, type[Message]] = {"word": Word, "level": Level}
        self.reader = Reader(types, lambda stamped: ports[stamped.envelope.topic].push(stamped), lambda *_: None)
        self.reader.connect(folder, ["source"])
        self.reader.use(
            {
                port.topic: direct_call(self.bound, self.lane, handler, port, self.bound.clock)
                for handler, port in self.lane.listeners
            }
        )

    async def run(self, numbers: int, age_ns: int = 0, chance: random.Random | None = None) -> None:
        """Publish so many words at once, in bundles now and then, and drive the node until it has done with them."""
        missing = await self.outlet.await_subscribers({"word": 1, "level": 1}, 20.0, asyncio.Event())
        assert missing == []
        loop, clock = asyncio.get_running_loop(), SystemClock()
        write = self.outlet.writer("word", Word)
        number = 0
        while number < numbers:
            envelope = Envelope("word", "a", number + 1, clock.now_ns() - age_ns)
            some = chance.choice((1, 1, 1, 5)) if chance else 1
            if some == 1:
                write(envelope, Word(number=number))
            else:
                self.outlet.publish_all(envelope, [Word(number=number + later) for later in range(some)])
            number += some
            if chance and chance.random() < 0.01:
                self.outlet.publish(Envelope("level", "a", number, clock.now_ns()), Level(number=number))
        await asyncio.sleep(0)
        self.lane.start(clock.now_ns())
        runner = LoopRunner(self.bound, self.lane, clock, loop, source=self.reader)
        runner.start()
        end_ns = clock.now_ns() + 20_000_000_000
        port = self.node.word
        while port.delivered + sum(port.dropped.values()) < numbers and clock.now_ns() < end_ns:
            await asyncio.sleep(0.002)
        runner.stop()

    def close(self) -> None:
        self.reader.close()
        self.outlet.close()


class Silent(NodeOutput):
    """Nobody listens."""

    def send(self, envelope: Envelope, message: Message) -> None:
        return


@pytest.fixture
def wire() -> Iterator[Wire]:
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        wire = Wire(Path(name))
        yield wire
        wire.close()


def test_many_more_than_the_queue_holds_are_all_handled_in_order(wire: Wire) -> None:
    # Published in the future: on a machine so busy that they wait for half a second none is to count as old.
    asyncio.run(wire.run(1500, age_ns=-60_000_000_000, chance=random.Random(3)))
    words = [number for kind, number in wire.node.heard if kind == "word"]
    assert words == list(range(len(words)))
    assert len(words) >= 1500
    port = wire.node.word
    assert (port.received, port.delivered, sum(port.dropped.values())) == (len(words), len(words), 0)
    assert wire.node.causes == [f"word:a:{number + 1}" for number in words]
    assert wire.bound.failures.count == len([number for number in words if number % 50 == 7])
    assert wire.node.ticks > 0
    assert any(kind == "level" for kind, _ in wire.node.heard)


def test_what_has_waited_for_too_long_is_taken_in_at_once_and_the_depth_says_what_is_kept(wire: Wire) -> None:
    asyncio.run(wire.run(600, age_ns=OVERLOADED_NS + 1))
    words = [number for _, number in wire.node.heard]
    assert words == sorted(words)
    assert len(words) < 100
    assert words[-8:] == list(range(592, 600))
    assert wire.node.word.dropped["queue full"] == 600 - len(words)
