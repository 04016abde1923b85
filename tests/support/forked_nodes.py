"""Nodes that look at what their process has inherited."""

from __future__ import annotations

import atexit
import os
import random
import sys

import numpy as np

from runtime import Message, Node, Publisher, Subscription, every, on

atexit.register(lambda: print("done at the end", flush=True))
tables: list[int] = []


class Inheritance(Message):
    numbers: tuple[float, float]
    is_shared: bool
    is_session: bool


class Tells(Node):
    """Tells once what it has inherited."""

    inherited = Publisher(Inheritance, "inherited")

    @classmethod
    def preload(cls) -> None:
        tables.append(1)

    def on_start(self) -> None:
        sys.stdout.write("half a line")

    @every(hz=1)
    def tick(self) -> None:
        numbers = (random.random(), float(np.random.random()))
        is_session = os.getsid(0) == os.getpid() and os.read(0, 1) == b""
        self.inherited.publish(Inheritance(numbers=numbers, is_shared=tables == [1], is_session=is_session))


class Compares(Node):
    """Finishes the run once two have told."""

    inherited = Subscription(Inheritance, "inherited")

    def __init__(self) -> None:
        self.heard: dict[str, Inheritance] = {}

    @on(inherited)
    def hear(self, inherited: Inheritance) -> None:
        trigger = self.context.trigger
        assert trigger is not None
        self.heard[trigger.envelope.source] = inherited
        if len(self.heard) == 2:
            one, other = self.heard.values()
            differ = not set(one.numbers) & set(other.numbers)
            self.finish(
                ok=differ and one.is_shared and one.is_session and other.is_session, reason=f"{one} and {other}"
            )
