"""Images made small for the link: what crosses it instead of an `Image`, and who makes the one out of the other."""

from __future__ import annotations

from typing import Protocol

from runtime.message import Message
from runtime.msgs import Image


class SmallImage(Message, kind="state"):
    """An `Image` as it crosses a link."""

    camera: str
    captured_ns: int
    jpeg: bytes
    depth_png: bytes = b""  # 16 bit, in mm; without loss within that
    focal_px: float = 0.0


class Shrinker(Protocol):
    """Makes images small and large again."""

    def shrink(self, image: Image, quality: int) -> SmallImage:
        """The image as JPEG of that quality, 1 to 100. Raises ValueError where it cannot be."""
        ...

    def grow(self, small: SmallImage) -> Image:
        """The image again. Raises ValueError where the bytes are none."""
        ...
