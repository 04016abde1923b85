"""An event that comes while a row of states waits for the same node goes before the rest of the row."""

from __future__ import annotations

import asyncio

import pytest

from runtime import Message, Node, QoS, Subscription, on
from runtime.clock import SystemClock
from runtime.coordination.fence import PreemptionEpochs
from runtime.execution.bound_node import BoundNode, NodeOutput
from runtime.execution.runners import LoopRunner, ThreadRunner, WakeEvent
from runtime.message import Envelope, Stamped
from tests.support.running import eventually

ROW = 40


class Alarm(Message):
    number: int


class Level(Message, kind="state"):
    number: int


class Listener(Node):
    """Hears an alarm after every tenth level, as if it were sent just then."""

    alarm = Subscription(Alarm, "alarm", qos=QoS(depth=8))
    level = Subscription(Level, "level", qos=QoS(depth=64))

    def __init__(self, source: Socket) -> None:
        self.heard: list[tuple[str, int]] = []
        self.source = source

    @on(level)
    def see(self, level: Level) -> None:
        self.heard.append(("level", level.number))
        if level.number % 10 == 0:
            self.source.came.append(Stamped(Alarm(number=level.number), envelope("alarm", level.number // 10)))

    @on(alarm)
    def hear(self, alarm: Alarm) -> None:
        self.heard.append(("alarm", alarm.number))


class Socket(WakeEvent):
    """Events that have come, and nobody has taken in yet."""

    def __init__(self) -> None:
        super().__init__()
        self.came: list[Stamped[Alarm]] = []
        self.node: Listener | None = None

    def drain_events(self, limit: int) -> None:
        assert self.node is not None
        some, self.came = self.came[:limit], self.came[limit:]
        for stamped in some:
            self.node.alarm.push(stamped)

    def poll(self, limit: int, end_ns: int = 0) -> bool:
        has_come = bool(self.came)
        self.drain_events(limit)
        return has_come


class Silent(NodeOutput):
    """Nobody listens."""

    def send(self, envelope: Envelope, message: Message) -> None:
        return


def envelope(topic: str, number: int) -> Envelope:
    return Envelope(topic, "a", number + 1, SystemClock.now_ns())


@pytest.mark.parametrize("is_realtime", [False, True])
def test_an_event_overtakes_the_states_that_wait_in_the_node(is_realtime: bool) -> None:
    source = Socket()
    node = source.node = Listener(source)
    bound = BoundNode(node, name="listener", clock=SystemClock(), seed=0, output=Silent(), fence=PreemptionEpochs())
    (lane,) = bound.lanes
    for number in range(ROW):
        node.level.push(Stamped(Level(number=number), envelope("level", number)))
    lane.start(bound.clock.now_ns())

    def is_done() -> bool:
        return len(node.heard) == ROW + ROW // 10

    async def on_the_loop() -> None:
        runner = LoopRunner(bound, lane, bound.clock, asyncio.get_running_loop(), source=source)
        runner.start()
        while not is_done():
            await asyncio.sleep(0)
        runner.stop()

    if is_realtime:
        thread = ThreadRunner(bound, lane, bound.clock, leave=lambda wish: None, priority=0, source=source)
        thread.start()
        eventually(is_done, "all is heard")
        thread.stop()
        assert thread.join(10.0)
    else:
        asyncio.run(asyncio.wait_for(on_the_loop(), 20.0))
    for number in range(0, ROW, 10):
        after = node.heard.index(("alarm", number)) - node.heard.index(("level", number))
        assert after <= 2, node.heard  # the ports have their turns: one level may go before it
