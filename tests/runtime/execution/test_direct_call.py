"""A state that is handed straight to its handler is handled, counted and inherited as one that goes the common way."""

from __future__ import annotations

import random
from typing import Any

import pytest

from runtime import Message, Node, Publisher, QoS, Subscription, every, on
from runtime.coordination.fence import PreemptionEpochs
from runtime.coordination.lease import SeatHolders
from runtime.execution.bound_node import BoundNode, NodeOutput
from runtime.execution.direct_call import direct_call
from runtime.execution.runners import run_guarded
from runtime.message import Envelope, Stamped


class Level(Message, kind="state"):
    count: int


class Note(Message):
    text: str


class Answer(Message):
    count: int


class Listener(Node):
    """Answers each level, fails at some, and has a timer and another port."""

    level = Subscription(Level, "level", qos=QoS(lifespan_s=0.05))
    note = Subscription(Note, "note")
    answer = Publisher(Answer, "answer")

    def __init__(self) -> None:
        self.handled: list[tuple[str, object]] = []

    @on(level)
    def take(self, level: Level) -> None:
        self.handled.append(("level", level.count))
        if level.count % 7 == 0:
            raise ValueError("a level that nobody wants")
        self.answer.publish(Answer(count=level.count))

    @on(note)
    def read(self, note: Note) -> None:
        self.handled.append(("note", note.text))
        latest = self.level.stamped()
        self.handled.append(("latest", latest.envelope.seq if latest else None))

    @every(hz=20)
    def tick(self) -> None:
        self.handled.append(("tick", self.level.latest()))


class Steps:
    """A clock that the test moves."""

    is_virtual = False

    def __init__(self) -> None:
        self.ns = 1_000_000_000

    def now_ns(self) -> int:
        return self.ns

    def now_s(self) -> float:
        return self.ns * 1e-9

    def since_s(self, stamp_ns: int) -> float:
        return (self.ns - stamp_ns) * 1e-9


class Sent(NodeOutput):
    """Keeps what is published."""

    def __init__(self) -> None:
        self.sent: list[tuple[Envelope, Message]] = []

    def send(self, envelope: Envelope, message: Message) -> None:
        self.sent.append((envelope, message))


class Side:
    """The node, with one of the two ways to it."""

    def __init__(self, *, is_direct: bool) -> None:
        self.clock, self.sent = Steps(), Sent()
        clock: Any = self.clock
        self.fence = PreemptionEpochs()
        self.leases = SeatHolders({"policy": "a"}, {})
        self.node = Listener()
        self.bound = BoundNode(
            self.node, name="listener", clock=clock, seed=0, output=self.sent, fence=self.fence, leases=self.leases
        )
        (self.lane,) = self.bound.lanes
        self.port = self.node.level
        self.lane.start(self.clock.ns)
        handle = direct_call(self.bound, self.lane, "take", self.port, clock)
        assert handle != self.port.push
        self.take = handle if is_direct else self.port.push

    def work(self) -> None:
        while (work := self.lane.take(self.clock.ns)) is not None:
            run_guarded(self.bound, work)

    def told(self) -> dict[str, object]:
        port = self.port
        return {
            "handled": self.node.handled,
            "sent": self.sent.sent,
            "counts": (port.received, port.delivered, port.dropped, port.pending, port.newest_ns),
            "failures": (self.bound.failures.count, self.bound.failures.last),
            "ages": self.bound.ages.topics,
        }


@pytest.mark.parametrize("seed", range(20))
def test_random_traffic_leaves_the_same_behind_on_both_ways(seed: int) -> None:
    sides = [Side(is_direct=True), Side(is_direct=False)]
    chance = random.Random(seed)
    seq = 0
    for _ in range(300):
        seq += chance.choice((1, 1, 2))
        step_ns = chance.choice((0, 100_000, 3_000_000, 70_000_000))
        age_ns = chance.choice((0, 10_000, 1_500_000, 20_000_000, 80_000_000))
        kind = chance.choices(("level", "two levels", "note", "fence"), (10, 2, 3, 1))[0]
        seat, source = chance.choice((("", "a"), ("", "a"), ("policy", "a"), ("policy", "b")))
        origins = {"image": 10 + seq} if chance.random() < 0.4 else {}
        epochs = {"policy": chance.randrange(4)}
        is_busy = chance.random() < 0.2
        for side in sides:
            side.clock.ns += step_ns
            now_ns = side.clock.ns
            if kind == "fence":
                side.fence.raise_to({"policy": epochs["policy"]}, "")
            elif kind == "note":
                envelope = Envelope("note", "person", seq, now_ns)
                side.node.note.push(Stamped(Note(text=str(seq)), envelope))
            else:
                if kind == "two levels":  # one waits already
                    side.port.push(
                        Stamped(
                            Level(count=seq), Envelope("level", "c", seq, now_ns - age_ns, origins, epochs, "", "", "")
                        )
                    )
                (side.port.push if is_busy else side.take)(  # a busy thread finds it later, with others
                    Stamped(
                        Level(count=seq),
                        Envelope("level", source, seq, now_ns - age_ns, origins, epochs, "", "p", seat),
                    )
                )
            if not is_busy:
                side.work()
    for side in sides:
        side.clock.ns += 1
        side.work()
    assert sides[0].told() == sides[1].told()
    assert sides[0].port.dropped.keys() >= {"expired", "overwritten", "shadow", "epoch"}
