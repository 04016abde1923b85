"""A talker that falls silent after a known number of beats, for tests with real processes."""

from nodes.hello import Beat
from runtime import Node, Publisher, every


class CountedTalker(Node):
    beat = Publisher(Beat, "beat")

    def __init__(self, beats: int) -> None:
        self.beats = beats
        self.count = 0

    @every(hz=50)
    def tick(self) -> None:
        if self.count < self.beats:
            self.count += 1
            self.beat.publish(Beat(count=self.count))
