"""Patches of strong colour in a picture without depth: all that the simplest eyes see."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from nodes.perception.colors import COLOURS, colour_codes

WIDTH_PX, MOST_HEIGHT_PX = 160, 4 * 160
LEAST_SATURATION, LEAST_VALUE = 110, 60  # what stands out; of 255
LEAST_SHARE = 0.01
"""A patch of at least that part of the picture is a thing; smaller ones are its noise."""
MOST = 5


def colours_in_view(rgb: NDArray[np.uint8]) -> tuple[str, ...]:
    """Names of the colours of large, strongly coloured patches, the largest first."""
    height, width = rgb.shape[:2]
    size = (WIDTH_PX, min(max(1, round(height * WIDTH_PX / width)), MOST_HEIGHT_PX))
    small = cv2.resize(np.ascontiguousarray(rgb), size, interpolation=cv2.INTER_AREA)
    hsv = np.asarray(cv2.cvtColor(small, cv2.COLOR_RGB2HSV), dtype=np.uint8)
    stands_out = (hsv[:, :, 1] >= LEAST_SATURATION) & (hsv[:, :, 2] >= LEAST_VALUE)
    codes = colour_codes(hsv.reshape(-1, 3)).reshape(stands_out.shape)
    largest = {}
    for code in np.unique(codes[stands_out]):
        mask = (stands_out & (codes == code)).astype(np.uint8)
        _, _, statistics, _ = cv2.connectedComponentsWithStats(mask, connectivity=4)
        pixels = int(statistics[1:, cv2.CC_STAT_AREA].max())
        if pixels >= LEAST_SHARE * mask.size:
            largest[COLOURS[int(code)]] = pixels
    return tuple(sorted(largest, key=lambda name: -largest[name])[:MOST])
