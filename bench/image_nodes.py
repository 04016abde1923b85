"""Nodes that send and receive images for the benchmarks, and say what it took."""

from __future__ import annotations

import json
import time

from bench.image_peers import FRAMES, WARM_UP, frames
from nodes.msgs import Image
from runtime import Message, Node, Publisher, Subscription, every, on

SPARE = 5  # images, of those counted: a few may be lost, and none is waited for


class Taken(Message):
    """What one receiver measured."""

    name: str
    ages_us: list[float]
    cpu_us: float  # of its process, for each image


class ImageSource(Node):
    """Sends an image 30 times a second, and ends the run when all receivers have told how they fared."""

    image = Publisher(Image, "image")
    taken = Subscription(Taken, "taken")

    def __init__(self, width_px: int = 640, height_px: int = 480, receivers: int = 1, count: int = 90) -> None:
        self.frames = frames(width_px, height_px)
        self.receivers = receivers
        self.count = count
        self.sent = 0
        self.cpu_s = 0.0
        self.cpu_us = 0.0
        self.told: list[Taken] = []

    @every(hz=30)
    def send(self) -> None:
        if self.sent == WARM_UP:
            self.cpu_s = time.process_time()
        self.sent += 1
        self.image.publish(Image(camera="bench", captured_ns=self.clock.now_ns(), rgb=self.frames[self.sent % FRAMES]))
        measured = self.count - 2 * SPARE  # before the receivers have all that they wait for
        if self.sent == WARM_UP + measured:
            self.cpu_us = (time.process_time() - self.cpu_s) * 1e6 / measured

    @on(taken)
    def hear(self, taken: Taken) -> None:
        self.told.append(taken)
        if len(self.told) == self.receivers:
            assert self.cpu_us, "the sender's own share is not measured"
            ages_us = [age_us for one in self.told for age_us in one.ages_us]
            figures = {"cpu": self.cpu_us + sum(one.cpu_us for one in self.told), "ages_us": ages_us}
            self.finish(ok=True, reason=json.dumps(figures))


class RealtimeImageSource(ImageSource):
    """The same on a control loop."""

    realtime = True


class ImageSink(Node):
    """Collects how old images are when its handler gets them, and the processor time of its process."""

    image = Subscription(Image, "image")
    taken = Publisher(Taken, "taken")

    def __init__(self, count: int = 90) -> None:
        self.count = count
        self.seen = 0
        self.cpu_s = 0.0
        self.ages_us: list[float] = []

    @on(image)
    def take(self, image: Image) -> None:
        age_us = (self.clock.now_ns() - image.captured_ns) * 1e-3
        self.seen += 1
        if self.seen == WARM_UP:
            self.cpu_s = time.process_time()
        elif self.seen > WARM_UP and len(self.ages_us) < self.count - SPARE:
            self.ages_us.append(age_us)
            if len(self.ages_us) == self.count - SPARE:
                cpu_us = (time.process_time() - self.cpu_s) * 1e6 / len(self.ages_us)
                self.taken.publish(Taken(name=self.name, ages_us=self.ages_us, cpu_us=cpu_us))


class RealtimeImageSink(ImageSink):
    """The same on a control loop."""

    realtime = True
