"""A camera, a model that takes half a second, and a controller that never waits for it."""

import time

import numpy as np
from numpy.typing import NDArray

from runtime import Message, Node, Publisher, QoS, Subscription, every, on


class Picture(Message, kind="state", origin="image"):
    pixels: NDArray[np.uint8]  # (height, width)


class Detection(Message, kind="state"):
    """Where the brightest column is, from -1 (left) to 1 (right)."""

    bearing: float


class Turn(Message, kind="state"):
    rate_radps: float


class Camera(Node):
    """Pictures with a bright column that wanders."""

    picture = Publisher(Picture, "picture")

    def __init__(self) -> None:
        self.column = 20

    @every(hz=20)
    def take(self) -> None:
        self.column = (self.column + self.random.choice((-1, 0, 1))) % 64
        pixels = np.zeros((48, 64), np.uint8)
        pixels[:, self.column] = 255
        self.picture.publish(Picture(pixels=pixels))


class Detector(Node):
    """The slow part: put your model here. `takes_s` is how long it computes in real time."""

    picture = Subscription(Picture, "picture")
    detection = Publisher(Detection, "detection")

    def __init__(self, takes_s: float = 0.5) -> None:
        self.takes_s = takes_s

    @on(picture, blocking=True)
    def look(self, picture: Picture) -> None:
        if not self.clock.is_virtual:
            time.sleep(self.takes_s)
        column = int(np.argmax(picture.pixels.sum(axis=0, dtype=np.int64)))
        self.detection.publish(Detection(bearing=column / 31.5 - 1.0))


class Steering(Node):
    """Turns towards what was found, and stops when that is too old."""

    detection = Subscription(Detection, "detection", qos=QoS(lifespan_s=0.8))
    turn = Publisher(Turn, "turn")

    @every(hz=20)
    def steer(self) -> None:
        found = self.detection.latest()
        self.turn.publish(Turn(rate_radps=0.0 if found is None else -0.5 * found.bearing))
