"""A camera of the test's graph: small pictures of one colour."""

from __future__ import annotations

import numpy as np

from nodes.msgs import Image
from runtime import Node, Publisher, every


class Painter(Node):
    image = Publisher(Image, "head/image")

    @every(hz=10)
    def paint(self) -> None:
        rgb = np.full((12, 16, 3), (200, 30, 30), np.uint8)
        self.image.publish(Image(camera="head", captured_ns=self.clock.now_ns(), rgb=rgb, focal_px=20.0))
