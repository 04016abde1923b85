"""In virtual time a lane runs one handler at a time, for as long as that declares, and counts what it missed."""

from __future__ import annotations

import pytest

from runtime import Node, Publisher, Subscription, every, on
from runtime.clock import to_ns
from runtime.coordination.health import Health
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.handler_latency import Latency
from tests.runtime.virtual.virtual_nodes import Level, Number, Plain, Source, arrivals, simulated


class Async(Node):
    level = Subscription(Level, "level")
    number = Publisher(Number, "number")

    @on(level)
    async def take(self, level: Level) -> None:
        await self.clock.sleep(0.26)
        self.number.publish(Number(value=level.value))


class Blocking(Node):
    level = Subscription(Level, "level")
    number = Publisher(Number, "number")

    @on(level, blocking=True)
    def take(self, level: Level) -> None:
        self.number.publish(Number(value=level.value))


def test_ticks_run_at_the_start_and_every_period_after_it() -> None:
    with simulated(Source()) as simulation:
        found = arrivals(simulation, "level")
        simulation.run(0.3)
        assert found == [(0.0, 1), (0.1, 2), (0.2, 3)]
        simulation.run(0.1)
        assert found[3:] == [(0.3, 4)]
        assert simulation.clock.now_ns() == to_ns(0.4)


def test_a_plain_handler_answers_at_the_same_instant() -> None:
    with simulated(Source(), Plain()) as simulation:
        found = arrivals(simulation, "number")
        simulation.run(0.25)
        assert found == [(0.0, 1), (0.1, 2), (0.2, 3)]


def test_an_async_handler_never_overlaps_itself_and_takes_the_newest_state() -> None:
    node = Async()
    with simulated(Source(), node) as simulation:
        found = arrivals(simulation, "number")
        simulation.run(0.8)
        assert found == [(0.26, 1), (0.52, 3), (0.78, 6)]
        assert dict(node.level.dropped) == {"overwritten": 4}


def test_a_blocking_handler_answers_after_its_declared_latency_with_the_newest_state() -> None:
    slow = NodeSpec("slow", Blocking, latency={"take": Latency.parse(0.26, "slow")})
    with simulated(Source(), slow) as simulation:
        found = arrivals(simulation, "number")
        simulation.run(0.8)
        assert found == [(0.26, 1), (0.52, 3), (0.78, 6)]


def test_a_plain_handler_with_a_latency_keeps_its_lane_busy() -> None:
    slow = NodeSpec("slow", Plain, latency={"take": Latency.parse(0.26, "slow")})
    with simulated(Source(), slow) as simulation:
        found = arrivals(simulation, "number")
        simulation.run(0.8)
        assert found == [(0.26, 1), (0.52, 3), (0.78, 6)]


class Quick(Node):
    level = Subscription(Level, "level")
    number = Publisher(Number, "number")

    @on(level)
    async def take(self, level: Level) -> None:
        self.number.publish(Number(value=level.value))


def test_an_async_handler_with_a_latency_keeps_its_lane_busy() -> None:
    slow = NodeSpec("slow", Quick, latency={"take": Latency.parse(0.26, "slow")})
    with simulated(Source(), slow) as simulation:
        found = arrivals(simulation, "number")
        simulation.run(0.8)
        assert found == [(0.26, 1), (0.52, 3), (0.78, 6)]


def test_ticks_missed_in_a_busy_lane_are_overruns() -> None:
    slow = NodeSpec("slow", Source, latency={"tick": Latency.parse(0.25, "slow")})
    with simulated(slow, health_hz=1) as simulation:
        health = simulation.record_topic("health/slow", Health)
        simulation.run(1.05)
        (timer,) = health[-1].timers
        assert (timer.ticks, timer.overruns) == (5, 6)  # at 0, 0.25, 0.5, 0.75 and 1 instead of 0, 0.1, ... 1
        assert timer.lateness_max_ms == pytest.approx(50)


class Two(Node):
    """A slow blocking handler beside a plain tick."""

    level = Subscription(Level, "level")
    number = Publisher(Number, "number")

    @on(level, blocking=True)
    def look(self, level: Level) -> None:
        """Takes as long as its latency says."""

    @every(hz=20)
    def tick(self) -> None:
        self.number.publish(Number(value=0))


def test_a_slow_blocking_handler_leaves_the_nodes_ticks_alone() -> None:
    slow = NodeSpec("slow", Two, latency={"look": Latency.parse(5, "slow")})
    with simulated(Source(), slow) as simulation:
        found = arrivals(simulation, "number")
        simulation.run(1)
        assert [time for time, _ in found] == [round(tick * 0.05, 6) for tick in range(20)]
