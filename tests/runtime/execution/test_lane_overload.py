"""A handler that takes longer than its period leaves its node time for what it is told."""

from __future__ import annotations

import pytest

from nodes.hello import Beat
from runtime import Node, Publisher, QoS, Simulation, Subscription, every, on
from runtime.execution.lane import Lane
from runtime.execution.timers import TimerState
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.handler_latency import Latency
from runtime.message import Envelope, Stamped
from runtime.node import Timer

PERIOD_NS = 100_000_000


class Slow(Node):
    """Ticks ten times a second, and each takes two seconds."""

    beat = Subscription(Beat, "beat", qos=QoS(depth=4))
    heard = Publisher(Beat, "heard")
    ticked = Publisher(Beat, "ticked")

    @every(hz=10)
    def tick(self) -> None:
        self.ticked.publish(Beat(count=0))

    @on(beat)
    def listen(self, beat: Beat) -> None:
        self.heard.publish(beat)


def test_a_node_whose_ticks_take_too_long_still_hears() -> None:
    """As a model that looks five times a second and thinks for one."""
    sim = Simulation(NodeSpec("slow", Slow, latency={"tick": Latency.parse(2.0, "slow")}))
    heard, ticked = sim.record(Slow.heard), sim.record(Slow.ticked)
    sim.run(seconds=1.0)
    for number in range(3):
        sim.publish("beat", Beat(count=number))
    sim.run(seconds=9.0)
    assert [beat.count for beat in heard] == [0, 1, 2]
    assert len(ticked) == 4


def lane_of(*timers: TimerState, port: Subscription[Beat]) -> Lane:
    lane = Lane("plain", "plain")
    lane.timers.extend(timers)
    lane.listen("listen", port)
    lane.start(0)
    return lane


def message(number: int) -> Stamped[Beat]:
    return Stamped(Beat(count=number), Envelope("beat", "talker", number, number))


@pytest.fixture
def port() -> Subscription[Beat]:
    port = Subscription(Beat, "beat", qos=QoS(depth=8))
    port.has_handler = True
    return port


def taken(lane: Lane, at_ns: list[int]) -> list[str | None]:
    """What runs at each of these times."""
    return [None if (work := lane.take(now_ns)) is None else work.handler for now_ns in at_ns]


def test_a_timer_in_time_goes_before_messages(port: Subscription[Beat]) -> None:
    lane = lane_of(TimerState(Timer("tick", "plain", 10), 10), port=port)
    port.push(message(1))
    port.push(message(2))
    assert taken(lane, [0, 1, 2, 3, PERIOD_NS]) == ["tick", "listen", "listen", None, "tick"]


def test_a_timer_that_is_due_again_lets_those_messages_go_before_it_that_wait(port: Subscription[Beat]) -> None:
    lane = lane_of(TimerState(Timer("tick", "plain", 10), 10), port=port)
    for number in range(2):
        port.push(message(number))
    assert taken(lane, [0, 5 * PERIOD_NS]) == ["tick", "listen"]  # every handler takes five periods
    port.push(message(2))  # it came after the tick was due, and has its turn after it
    late = [turn * 5 * PERIOD_NS for turn in range(2, 7)]
    assert taken(lane, late) == ["listen", "tick", "listen", "tick", "tick"]


def test_of_two_timers_that_are_late_each_has_its_turn_and_so_have_messages(port: Subscription[Beat]) -> None:
    timers = (TimerState(Timer(name, "plain", 10), 10) for name in ("one", "two"))
    lane = lane_of(*timers, port=port)
    for number in range(2):
        port.push(message(number))
    late = [turn * 5 * PERIOD_NS for turn in range(7)]  # every handler takes five periods
    assert taken(lane, late) == ["one", "two", "listen", "listen", "one", "two", "one"]
    assert taken(lane, [35 * PERIOD_NS]) == ["two"]


def test_messages_that_are_too_old_do_not_cost_a_tick(port: Subscription[Beat]) -> None:
    lane = lane_of(TimerState(Timer("tick", "plain", 10), 10), port=port)
    port.qos = QoS(depth=8, lifespan_s=1.0).for_kind("event")
    port.push(message(1))  # published long ago by the machine's clock
    assert taken(lane, [0, 5 * PERIOD_NS, 10 * PERIOD_NS]) == ["tick", "tick", "tick"]
    assert port.dropped == {"expired": 1}
