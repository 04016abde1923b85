"""Nodes for graphs of many: each sends on a topic of its own and hears its neighbour's; one has a hundred topics."""

from __future__ import annotations

from runtime import Message, Node, Publisher, Subscription, every, on


class Mark(Message, kind="state"):
    """A small state."""

    number: int
    text: str


class Member(Node):
    """Sends ten times a second, and handles what its neighbour sends."""

    own = Publisher(Mark, "own")
    other = Subscription(Mark, "other")

    def __init__(self) -> None:
        self.number = 0

    @every(hz=10)
    def send(self) -> None:
        self.number += 1
        self.own.publish(Mark(number=self.number, text="x" * 40))

    @on(other)
    def hear(self, mark: Mark) -> None:
        self.number = max(self.number, mark.number)


class Wide(Node):
    """Sends on a hundred topics once a second."""

    for _index in range(100):
        locals()[f"mark_{_index}"] = Publisher(Mark, f"mark_{_index}")

    @every(hz=1)
    def send(self) -> None:
        for index in range(100):
            getattr(self, f"mark_{index}").publish(Mark(number=index, text="x" * 40))
