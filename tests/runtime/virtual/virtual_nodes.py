"""Nodes for tests of virtual time: a source that counts, a node that passes on, and what they publish when."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from runtime import Message, Node, Publisher, Simulation, Stamped, Subscription, every, on
from runtime.launch.graph import NodeSpec


class Number(Message):
    value: float


class Level(Message, kind="state"):
    value: int


@contextmanager
def simulated(*nodes: Node | NodeSpec, seed: int = 0, health_hz: float = 0.0) -> Iterator[Simulation]:
    simulation = Simulation(*nodes, seed=seed, health_hz=health_hz)
    try:
        yield simulation
    finally:
        simulation.close()


class Source(Node):
    """Publishes a level at 10 Hz."""

    level = Publisher(Level, "level")

    def __init__(self) -> None:
        self.count = 0

    @every(hz=10)
    def tick(self) -> None:
        self.count += 1
        self.level.publish(Level(value=self.count))


class Plain(Node):
    level = Subscription(Level, "level")
    number = Publisher(Number, "number")

    @on(level)
    def take(self, level: Level) -> None:
        self.number.publish(Number(value=level.value))


def arrivals(simulation: Simulation, topic: str) -> list[tuple[float, float]]:
    """(seconds, value) of each message on the topic from now on."""
    found: list[tuple[float, float]] = []

    def observe(stamped: Stamped[Number]) -> None:
        if stamped.envelope.topic == topic:
            found.append((round(simulation.clock.now_ns() * 1e-9, 6), stamped.message.value))

    simulation.observe(observe)
    return found
