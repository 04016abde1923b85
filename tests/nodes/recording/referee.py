"""A node that ends a run after five beats, for tests with real processes."""

from nodes.hello import Beat
from runtime import Node, Subscription, on


class Referee(Node):
    beat = Subscription(Beat, "beat")

    @on(beat)
    def count(self, beat: Beat) -> None:
        if beat.count == 5:
            self.finish(ok=True, reason="heard 5 beats")
