"""A node whose success its seed and a parameter decide."""

from __future__ import annotations

from nodes.hello import Beat
from runtime import Node, Publisher, every


class Lot(Node):
    """Ends after `lasts_s`; with how much luck it succeeds is a parameter."""

    beat = Publisher(Beat, "beat")

    def __init__(self, luck: float = 1.0, lasts_s: float = 1.0, breaks: bool = False) -> None:
        self.luck, self.lasts_s, self.breaks = luck, lasts_s, breaks
        self.count = 0

    def on_start(self) -> None:
        if self.breaks:
            raise RuntimeError("the gearbox is stuck")

    @every(hz=10)
    def tick(self) -> None:
        self.count += 1
        self.beat.publish(Beat(count=self.count))
        if self.count >= 10 * self.lasts_s:
            lot = self.random.random()
            self.finish(ok=lot < self.luck, reason="lucky" if lot < self.luck else f"unlucky at {self.luck:g}")
