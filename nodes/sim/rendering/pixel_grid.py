"""`PixelGrid`: the rays of a pinhole camera, one per pixel, and what is seen along them.

Rays are scaled to one metre along the optical axis. Shapes are met in stretches of the picture's rows, all stretches
of many shapes in one array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Slopes = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]
Keys = NDArray[np.uint64]
Window = tuple[slice, slice]

NOTHING = 0
"""The surface of a pixel whose ray meets nothing."""


class PixelGrid:
    """The slopes of all rays, and for each pixel the nearest surface that was drawn there.

    A pixel is one whole number: the bits of its nearness, one over the depth, above those of the surface's number. Bits
    of positive floats are in the order of the floats, so that the nearest of all surfaces is the `maximum`.
    """

    def __init__(self, across: Slopes, up: Slopes) -> None:
        self.across, self.up = across.astype(np.float64), up.astype(np.float64)  # of each column and each row
        self.down = -self.up
        self.width, self.height = len(self.across), len(self.up)
        flat_across, flat_up = np.broadcast_arrays(self.across, self.up[:, None])
        self.flat_across = flat_across.reshape(-1).copy()
        self.squared = (flat_across**2 + flat_up**2 + 1.0).reshape(-1)
        self._keys: Keys = np.zeros((self.height, self.width), dtype="<u8")

    def clear(self, nearness: float) -> None:
        """See nothing, that far away."""
        self._keys.fill(int(np.float32(nearness).view(np.uint32)) << 32 | NOTHING)

    @property
    def nearness(self) -> Floats:
        """One over the depth of each pixel."""
        return self._halves[..., 1].view(np.float32).copy()

    @property
    def surface(self) -> Integers:
        """The number of what each pixel sees."""
        return self._halves[..., 0].astype(np.intp)

    @property
    def _halves(self) -> NDArray[np.uint32]:
        return self._keys.view("<u4").reshape(self.height, self.width, 2)

    def draw_window(self, window: Window, nearness: Floats, number: int) -> None:
        """Put a surface before what is seen in a window; its nearness is 0 or less where it is not. Spoils it."""
        np.maximum(nearness, np.float32(0.0), out=nearness)
        keys = nearness.view(np.uint32).astype(np.uint64)
        keys <<= np.uint64(32)
        keys |= np.uint64(number)
        seen = self._keys[window]
        np.maximum(seen, keys, out=seen)

    def draw_pixels(self, pixel: Integers, nearness: Floats, number: Integers) -> None:
        """The same for surfaces that are given pixel by pixel, in any order."""
        keys = number.astype("<u8")
        np.maximum(nearness, np.float32(0.0), out=keys.view(np.float32)[1::2])
        np.maximum.at(self._keys.reshape(-1), pixel, keys)

    def pixels_of(self, row: Integers, left: Integers, length: Integers) -> Integers:
        """The pixels of some stretches of rows, one stretch after the other."""
        return steps(row * self.width + left, length)


def steps(start: Integers, length: Integers) -> Integers:
    """start, start + 1, ... of each stretch, one stretch after the other."""
    ends = length.cumsum()
    found: Integers = (start - ends + length).repeat(length)
    found += np.arange(len(found))
    return found


def places(length: Integers) -> Integers:
    """0, 0, 0, 1, 1, ...: for each step of each stretch which stretch it is of."""
    found: Integers = np.arange(len(length)).repeat(length)
    return found
