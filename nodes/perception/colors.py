"""Names of colours, from pixels in OpenCV's HSV (hue 0-179, saturation and value 0-255)."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

COLOURS = ("red", "orange", "brown", "yellow", "green", "teal", "blue", "purple", "pink", "white", "grey", "black")


_VALUE_STEPS = (40, 130, 151)
"""Lightness from which a pixel is not black, not brown any more, and white where it is pale."""
_PALE_BELOW = 60


def colour_codes(hsv: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Places in `COLOURS` of pixels (n, 3)."""
    place = _HUE_PLACES.take(hsv[:, 0])
    place += _SATURATION_PLACES.take(hsv[:, 1])
    place += _VALUE_PLACES.take(hsv[:, 2])
    return _CODES.take(place)


def _codes() -> NDArray[np.int64]:
    """The colour of each hue, pale or not, and step of lightness."""
    ends = {"red": 7, "orange": 19, "yellow": 35, "green": 84, "teal": 97, "blue": 131, "purple": 158, "pink": 172}
    by_hue = np.full(256, COLOURS.index("red"), dtype=np.int64)
    start = 0
    for name, end in ends.items():
        by_hue[start:end] = COLOURS.index(name)
        start = end
    codes = np.empty((256, 2, 4), dtype=np.int64)
    codes[:] = by_hue[:, None, None]
    codes[5:20, :, :2] = COLOURS.index("brown")
    codes[:, 1, :3], codes[:, 1, 3] = COLOURS.index("grey"), COLOURS.index("white")
    codes[:, :, 0] = COLOURS.index("black")
    return codes.reshape(-1)


_CODES = _codes()
_HUE_PLACES = np.arange(256) * 8
_SATURATION_PLACES = np.where(np.arange(256) < _PALE_BELOW, 4, 0)
_VALUE_PLACES = np.searchsorted(_VALUE_STEPS, np.arange(256), side="right")


def name_colour(codes: NDArray[np.int64], value: NDArray[np.uint8]) -> str:
    """The colour of a thing: what most of its lighter half is; shadows and hollows say little."""
    light = codes[value >= np.sort(value)[len(value) // 2]]
    return COLOURS[int(np.argmax(np.bincount(light)))]


def is_skin(rgb: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which pixels (n, 3) have the hue of skin, light or dark: the ratios of its channels vary little."""
    red, green, blue = (rgb[:, channel].astype(np.float32) + 1.0 for channel in range(3))
    first, second = green / red, blue / red
    return (red > 60) & (first > 0.66) & (first < 0.84) & (second > 0.50) & (second < 0.72) & (second < first - 0.08)


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
