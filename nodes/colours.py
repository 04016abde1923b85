"""Names of colours, from pixels in OpenCV's HSV (hue 0-179, saturation and value 0-255)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

COLOURS = ("red", "orange", "brown", "yellow", "green", "teal", "blue", "purple", "pink", "white", "grey", "black")


def colour_codes(hsv: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Places in `COLOURS` of pixels (n, 3)."""
    hue, saturation, value = hsv[:, 0], hsv[:, 1], hsv[:, 2]
    codes = _HUE_CODES[hue]
    codes[(hue >= 5) & (hue < 20) & (value < 130)] = COLOURS.index("brown")
    is_pale = saturation < 60
    codes[is_pale] = np.where(value[is_pale] > 150, COLOURS.index("white"), COLOURS.index("grey"))
    codes[value < 40] = COLOURS.index("black")
    return codes


def _codes_by_hue() -> NDArray[np.int64]:
    ends = {"red": 7, "orange": 19, "yellow": 35, "green": 84, "teal": 97, "blue": 131, "purple": 158, "pink": 172}
    codes = np.full(256, COLOURS.index("red"), dtype=np.int64)
    start = 0
    for name, end in ends.items():
        codes[start:end] = COLOURS.index(name)
        start = end
    return codes


_HUE_CODES = _codes_by_hue()


def name_colour(codes: NDArray[np.int64], value: NDArray[np.uint8]) -> str:
    """The colour of a thing: what most of its lighter half is; shadows and hollows say little."""
    light = codes[value >= np.sort(value)[len(value) // 2]]
    return COLOURS[int(np.argmax(np.bincount(light)))]
