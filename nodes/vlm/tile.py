"""A camera image as the one tile that a vision encoder takes."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray


def tile(
    rgb: NDArray[np.uint8], size_px: int, mean: tuple[float, ...], std: tuple[float, ...], scale: float
) -> NDArray[np.float32]:
    """Pixel values (1, 1, 3, size_px, size_px): squeezed into a square, as these models see whole images.

    `scale` makes 0..255 what `mean` and `std` are of. Raises ValueError where the image is none.
    """
    if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8 or 0 in rgb.shape:
        raise ValueError(f"an image is {rgb.dtype} of shape {rgb.shape}; expected uint8 (height, width, 3)")
    shrinks = rgb.shape[0] >= size_px and rgb.shape[1] >= size_px
    square = cv2.resize(
        np.ascontiguousarray(rgb), (size_px, size_px), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC
    )
    values = (square.astype(np.float32) * scale - np.asarray(mean, np.float32)) / np.asarray(std, np.float32)
    return np.ascontiguousarray(values.transpose(2, 0, 1)[None, None], np.float32)
