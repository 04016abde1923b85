"""Names of colours, from pixels in OpenCV's HSV (hue 0-179, saturation and value 0-255)."""

from __future__ import annotations

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
