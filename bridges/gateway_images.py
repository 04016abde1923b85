"""Images as JPEG, and depth as PNG of whole millimetres, for the link between two hosts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.msgs import Image
from runtime.message import Message

DEEPEST_M = 65.535
MAX_PIXELS = 8192 * 8192


class SmallImage(Message, kind="state"):
    """An `Image` as it crosses a link."""

    camera: str
    captured_ns: int
    jpeg: bytes
    depth_png: bytes = b""  # 16 bit, in mm; without loss within that
    focal_px: float = 0.0


class JpegImages:
    """A `nodes.hosts.admission.LinkCodec`: makes images small and large again with OpenCV."""

    small = SmallImage

    def __init__(self) -> None:
        import cv2  # here, so that checking a graph does not need it

        self._cv2 = cv2

    def shrink(self, image: Image, quality: int) -> SmallImage:
        """The image as JPEG of that quality, 1 to 100. Raises ValueError where it cannot be."""
        if image.rgb.ndim != 3 or image.rgb.shape[2] != 3 or not image.rgb.size:
            raise ValueError(f"an image of shape {image.rgb.shape} cannot be sent; expected (height, width, 3)")
        bgr = np.ascontiguousarray(image.rgb[:, :, ::-1])
        depth_png = b""
        if image.depth_m is not None:
            millimetres = np.rint(
                np.clip(np.nan_to_num(image.depth_m, posinf=0.0, neginf=0.0), 0.0, DEEPEST_M) * 1000.0
            ).astype(np.uint16)
            depth_png = self._encoded(".png", millimetres, [self._cv2.IMWRITE_PNG_COMPRESSION, 1])
        return SmallImage(
            camera=image.camera,
            captured_ns=image.captured_ns,
            jpeg=self._encoded(".jpg", bgr, [self._cv2.IMWRITE_JPEG_QUALITY, quality]),
            depth_png=depth_png,
            focal_px=image.focal_px,
        )

    def grow(self, small: SmallImage) -> Image:
        """The image again. Raises ValueError where the bytes are none."""
        bgr = self._decoded(small.jpeg, self._cv2.IMREAD_COLOR)
        depth_m: NDArray[np.float32] | None = None
        if small.depth_png:
            depth_m = self._decoded(small.depth_png, self._cv2.IMREAD_UNCHANGED).astype(np.float32) / np.float32(1000.0)
            if depth_m.shape != bgr.shape[:2]:
                raise ValueError(f"an image of {bgr.shape[:2]} came with depth of {depth_m.shape}")
        return Image(
            camera=small.camera,
            captured_ns=small.captured_ns,
            rgb=np.ascontiguousarray(bgr[:, :, ::-1]),
            depth_m=depth_m,
            focal_px=small.focal_px,
        )

    def _encoded(self, form: str, pixels: NDArray[Any], options: list[int]) -> bytes:
        is_encoded, data = self._cv2.imencode(form, pixels, options)
        if not is_encoded:
            raise ValueError(f"pixels of shape {pixels.shape} cannot be encoded as {form}")
        encoded: bytes = data.tobytes()
        return encoded

    def _decoded(self, data: bytes, mode: int) -> NDArray[Any]:
        try:
            pixels = self._cv2.imdecode(np.frombuffer(data, np.uint8), mode)
        except self._cv2.error as problem:
            raise ValueError(f"{len(data)} bytes are no picture: {problem}") from problem
        if pixels is None or pixels.shape[0] * pixels.shape[1] > MAX_PIXELS:
            raise ValueError(f"{len(data)} bytes are no picture")
        return np.asarray(pixels)
