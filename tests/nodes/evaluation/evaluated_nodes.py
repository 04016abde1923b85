"""A node whose success its seed and a parameter decide."""

from __future__ import annotations

import os

import numpy as np

from nodes.hello import Beat
from nodes.msgs import Image
from nodes.recording.bag.recording import Recording
from runtime import Node, Publisher, every


class Lot(Node):
    """Ends after `lasts_s`; with how much luck it succeeds is a parameter."""

    beat = Publisher(Beat, "beat")

    def __init__(
        self, luck: float = 1.0, lasts_s: float = 1.0, breaks: bool = False, prints: bool = False, hangs: bool = False
    ) -> None:
        self.luck, self.lasts_s, self.breaks, self.prints, self.hangs = luck, lasts_s, breaks, prints, hangs
        self.count = 0

    def on_start(self) -> None:
        if self.breaks:
            raise RuntimeError("the gearbox is stuck")

    @every(hz=10)
    def tick(self) -> None:
        self.count += 1
        if self.hangs:
            while True:  # no wait that the simulation could name
                pass
        if self.prints:
            os.write(1, b'\xff no text\n{"is_success": "no JSON of ours"}\n')
        self.beat.publish(Beat(count=self.count))
        if self.count >= 10 * self.lasts_s:
            lot = self.random.random()
            self.finish(ok=lot < self.luck, reason="lucky" if lot < self.luck else f"unlucky at {self.luck:g}")


class Eye(Node):
    """A camera that sees grey."""

    image = Publisher(Image, "head/image")

    @every(hz=5)
    def look(self) -> None:
        self.image.publish(
            Image(camera="head", captured_ns=self.clock.now_ns(), rgb=np.full((24, 32, 3), 128, np.uint8))
        )


def beats(recording: Recording) -> float:
    """A measure of a user's own."""
    return sum(message.topic == "beat" for message in recording)


def broken(recording: Recording) -> float:
    raise RuntimeError("no scale")
