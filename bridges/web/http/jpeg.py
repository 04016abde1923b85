"""JPEGs for the screen: each image is encoded once per quality, whoever looks at it; quality follows the link."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nodes.msgs import Image
from runtime.message import Stamped

QUALITIES = (30, 45, 60, 75, 88)
SLOW_MS, QUICK_MS = 250.0, 80.0
LONGEST_PAUSE_S = 1.0
FRAME_MS = 70.0
"""A way that takes a multiple of this holds as many more frames."""
MOST_UNDER_WAY = 6
LEAST_GROWS_MS = 2.0
"""By which the quickest answer known is forgotten with each one that comes."""
LONG_WAY_MS = 600.0
"""Beyond this no answer is called quick."""
NEAREST_M, FARTHEST_M = 0.2, 3.0
"""What the colours of depth span."""


class JpegCache:
    """The newest pictures of each camera, encoded."""

    def __init__(self) -> None:
        import cv2  # here, so that checking a graph does not need it

        self._cv2 = cv2
        self._kept: dict[tuple[str, int], tuple[str, bytes]] = {}

    def encode(self, stamped: Stamped[Image], quality: int) -> bytes:
        """The image as JPEG. Raises ValueError where it cannot be encoded."""
        return self._encode(stamped, stamped.envelope.topic, quality, self._bgr)

    def encode_depth(self, stamped: Stamped[Image], quality: int) -> bytes:
        """How far away everything is, in colours: red is near, blue is far, black is not known."""
        return self._encode(stamped, f"{stamped.envelope.topic} depth", quality, self._coloured)

    def _bgr(self, image: Image) -> NDArray[np.uint8]:
        return np.ascontiguousarray(image.rgb[:, :, ::-1])

    def _coloured(self, image: Image) -> NDArray[np.uint8]:
        if image.depth_m is None:
            return np.zeros_like(image.rgb)
        near = 1.0 - np.clip((image.depth_m - NEAREST_M) / (FARTHEST_M - NEAREST_M), 0.0, 1.0)
        coloured: NDArray[np.uint8] = self._cv2.applyColorMap((near * 255).astype(np.uint8), self._cv2.COLORMAP_TURBO)
        coloured[image.depth_m <= 0.0] = 0
        return coloured

    def _encode(
        self, stamped: Stamped[Image], name: str, quality: int, paint: Callable[[Image], NDArray[np.uint8]]
    ) -> bytes:
        image, ident = stamped.message, stamped.envelope.ident
        kept = self._kept.get((name, quality))
        if kept is not None and kept[0] == ident:
            return kept[1]
        try:
            is_encoded, data = self._cv2.imencode(".jpg", paint(image), [self._cv2.IMWRITE_JPEG_QUALITY, quality])
        except (self._cv2.error, IndexError) as problem:
            raise ValueError(f"an image of shape {image.rgb.shape} cannot be encoded as JPEG") from problem
        if not is_encoded:
            raise ValueError(f"an image of shape {image.rgb.shape} cannot be encoded as JPEG")
        jpeg = data.tobytes()
        self._kept[name, quality] = (ident, jpeg)
        return jpeg


class LinkPace:
    """Quality, frames under way and the pause between them for one viewer of one camera, from when its answers come.

    What counts is how much later than the quickest ones they come: a long way alone is no reason for worse pictures,
    and with several frames under way it does not cost their rate either.
    """

    def __init__(self) -> None:
        self._level = len(QUALITIES) - 2
        self._least_ms = float("inf")
        self.pause_s = 0.0

    @property
    def quality(self) -> int:
        """JPEG quality for the next frame."""
        return QUALITIES[self._level]

    @property
    def window(self) -> int:
        """How many frames may be under way at once."""
        if self._least_ms == float("inf") or self.pause_s:
            return 1
        return min(MOST_UNDER_WAY, 1 + int(self._least_ms // FRAME_MS))

    def answered(self, after_ms: float) -> None:
        """A frame has been drawn so long after it was sent."""
        self._least_ms = min(after_ms, self._least_ms + LEAST_GROWS_MS)
        late_ms = after_ms - self._least_ms if self._least_ms < LONG_WAY_MS else after_ms
        if late_ms > SLOW_MS:
            if self._level:
                self._level -= 1
            else:
                self.pause_s = min(LONGEST_PAUSE_S, self.pause_s * 1.5 + 0.05)
        elif late_ms < QUICK_MS:
            if self.pause_s:
                self.pause_s = self.pause_s / 2 if self.pause_s > 0.02 else 0.0
            else:
                self._level = min(len(QUALITIES) - 1, self._level + 1)
