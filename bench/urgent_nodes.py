"""Two nodes: one sends interrupts beside a flood of images from a worker thread, the other handles both."""

from __future__ import annotations

import json

import numpy as np

from bench.result import percentile
from nodes.msgs import Image
from runtime import Message, Node, Publisher, Subscription, every, on

COUNT = 150


class Alarm(Message):
    """An event that must not wait."""

    sent_ns: int


class Sender(Node):
    """Interrupts 50 times a second; its worker sends images as fast as they go."""

    realtime = True
    alarm = Publisher(Alarm, "alarm")
    image = Publisher(Image, "image")

    def __init__(self, floods: bool = True) -> None:
        self.floods = floods
        self.rgb = np.zeros((1080, 1920, 3), np.uint8)

    @every(hz=50)
    def warn(self) -> None:
        self.alarm.publish(Alarm(sent_ns=self.clock.now_ns()))

    @every(hz=200, blocking=True)
    def flood(self) -> None:
        if self.floods:
            self.image.publish(Image(camera="flood", captured_ns=self.clock.now_ns(), rgb=self.rgb))


class Receiver(Node):
    """Looks at every image, and ends the run with the ages at which it got the interrupts."""

    realtime = True
    alarm = Subscription(Alarm, "alarm")
    image = Subscription(Image, "image")

    def __init__(self) -> None:
        self.ages_ms: list[float] = []
        self.images = 0
        self.bright = 0
        self.start_ns = 0

    @on(image)
    def look(self, image: Image) -> None:
        self.images += 1
        self.bright += int(image.rgb[::16, ::16].max())

    @on(alarm)
    def hear(self, alarm: Alarm) -> None:
        now_ns = self.clock.now_ns()
        self.start_ns = self.start_ns or now_ns
        self.ages_ms.append((now_ns - alarm.sent_ns) * 1e-6)
        if len(self.ages_ms) == COUNT:
            figures = {
                "p50": percentile(self.ages_ms, 50),
                "p99": percentile(self.ages_ms, 99),
                "images_hz": self.images / max(1e-9, (now_ns - self.start_ns) * 1e-9),
            }
            self.finish(ok=True, reason=json.dumps(figures))
