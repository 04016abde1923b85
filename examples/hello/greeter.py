"""Hello, world: one node counts aloud, another listens."""

from runtime import Message, Node, Publisher, Subscription, every, on


class Beat(Message):
    count: int


class Talker(Node):
    beat = Publisher(Beat, "beat")

    def __init__(self, start: int = 0) -> None:
        self.count = start

    @every(hz=2)
    def tick(self) -> None:
        self.count += 1
        self.beat.publish(Beat(count=self.count))


class Listener(Node):
    beat = Subscription(Beat, "beat")

    @on(beat)
    def heard(self, beat: Beat) -> None:
        self.log.info("heard beat %d", beat.count)
