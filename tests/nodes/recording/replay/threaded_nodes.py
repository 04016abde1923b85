"""A node whose control loop and worker thread live on what the other one has set."""

from __future__ import annotations

import threading

from runtime.message import Message
from runtime.node import Node, every, on
from runtime.ports import Publisher, Subscription


class Level(Message, kind="state"):
    value: float


class Answer(Message, kind="state"):
    value: float
    looks: int


class Look(Message):
    value: float


class Source(Node):
    level = Publisher(Level, "level")

    @every(hz=60)
    def tick(self) -> None:
        self.level.publish(Level(value=self.random.random()))


class Racer(Node):
    """Ticks at 100 Hz on what its worker saw last; the worker takes 3 to 12 ms, and looks at what the tick wanted."""

    realtime = True

    level = Subscription(Level, "level")
    answer = Publisher(Answer, "answer")
    look = Publisher(Look, "look")

    def __init__(self, ticks: int = 200, gain: float = 1.0) -> None:
        self.ticks = ticks
        self.gain = gain
        self.wanted = 0
        self.looks = 0
        self.seen = 0.0
        self.pause = threading.Event()

    @every(hz=100)
    def tick(self) -> None:
        self.wanted += 1
        level = self.level.latest()
        self.answer.publish(Answer(value=self.seen * self.gain + (level.value if level else 0.0), looks=self.looks))
        if self.wanted == self.ticks:
            self.finish(ok=True, reason=f"{self.wanted} ticks")

    @on(level, blocking=True)
    def see(self, level: Level) -> None:
        self.looks += 1
        self.seen = level.value + self.wanted + self.random.random()
        if not self.clock.is_virtual:
            self.pause.wait(0.003 + 0.009 * level.value)
        self.seen -= self.wanted / 2
        self.look.publish(Look(value=self.seen))
