"""Nodes for the test of the urgent lane: a flood of large images, and alarms through the same processes."""

from __future__ import annotations

import json
import zlib

import numpy as np

from nodes.msgs import Image
from runtime import Message, Node, Publisher, QoS, Subscription, every, on

ALARMS = 20


class Alarm(Message):
    """What must not wait, and how many images had been sent when it was."""

    images_before: int
    relay: tuple[int, int] = (0, 0)  # what the relay told of it, as `Slow.told` does


class Flood(Node):
    """Sends numbered images as fast as they go, and an alarm after every 25th."""

    image = Publisher(Image, "image")
    alarm = Publisher(Alarm, "alarm")

    def __init__(self) -> None:
        self.rgb = np.random.default_rng(0).integers(0, 256, (1080, 1920, 3), np.uint8)
        self.sent = 0

    @every(hz=500, blocking=True)
    def flood(self) -> None:
        self.sent += 1
        self.image.publish(Image(camera="flood", captured_ns=self.sent, rgb=self.rgb))
        if self.sent % 25 == 0:
            self.alarm.publish(Alarm(images_before=self.sent))


class Slow(Node):
    """Works on each image for longer than the next one takes to come, with a long queue of them."""

    image = Subscription(Image, "image", qos=QoS(depth=64))

    def __init__(self) -> None:
        self.handled: list[int] = []

    def work(self, image: Image) -> None:
        for _ in range(6):
            zlib.crc32(image.rgb.data)
        self.handled.append(image.captured_ns)

    def told(self, alarm: Alarm) -> tuple[int, int]:
        """How many images sent after the alarm were handled before it; how many sent before it still were to come."""
        newest = max(self.handled, default=0)
        return sum(number > alarm.images_before for number in self.handled), max(0, alarm.images_before - newest)


class Relay(Slow):
    """Hands alarms on, and says what they overtook."""

    alarm = Subscription(Alarm, "alarm")
    relayed = Publisher(Alarm, "relayed")
    image = Subscription(Image, "image", qos=QoS(depth=64))

    @on(image)
    def look(self, image: Image) -> None:
        self.work(image)

    @on(alarm)
    def hand_on(self, alarm: Alarm) -> None:
        self.relayed.publish(Alarm(images_before=alarm.images_before, relay=self.told(alarm)))


class Judge(Slow):
    """Ends the run with what each alarm overtook and what overtook it, at the relay and here."""

    realtime = True
    alarm = Subscription(Alarm, "alarm")
    relayed = Subscription(Alarm, "relayed")
    image = Subscription(Image, "image", qos=QoS(depth=64))

    def __init__(self) -> None:
        super().__init__()
        self.here: list[tuple[int, int]] = []
        self.relay: list[tuple[int, int]] = []

    @on(image)
    def look(self, image: Image) -> None:
        self.work(image)

    @on(alarm)
    def hear(self, alarm: Alarm) -> None:
        self.here.append(self.told(alarm))

    @on(relayed)
    def hear_relayed(self, alarm: Alarm) -> None:
        self.relay.append(alarm.relay)
        if len(self.relay) >= ALARMS:
            lost = {port.topic: dict(port.dropped) for port in (self.alarm, self.relayed)}
            self.finish(ok=True, reason=json.dumps({"judge": self.here, "relay": self.relay, "lost": str(lost)}))
