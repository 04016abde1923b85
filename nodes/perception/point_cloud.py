"""Pixels of a depth image as points in space, and which of them belong together or to the robot's own body.

Points are kept coordinate by coordinate, (3, n): several times as fast as point by point.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from nodes.perception.colors import colour_codes
from nodes.robot.products import product
from nodes.robot.protocol import Capsule

Floats = NDArray[np.float64]
Points = NDArray[np.float32]
Bools = NDArray[np.bool_]
Index = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PointSet:
    """Some pixels, counted row by row, and their points (3, n)."""

    index: Index
    points: Points

    def only(self, is_wanted: Bools) -> PointSet:
        """Some of them."""
        wanted = np.flatnonzero(is_wanted)
        return PointSet(self.index.take(wanted), self.points.take(wanted, axis=1))


@dataclass(frozen=True, slots=True)
class DepthView:
    """One image, from where it was taken."""

    points: Points  # (3, height * width)
    rgb: NDArray[np.uint8]
    depth_m: NDArray[np.float32]
    focal_px: float
    camera: Floats
    own: tuple[Capsule, ...]

    def at(self, index: Index) -> PointSet:
        """Some pixels, counted row by row."""
        return PointSet(index, self.points.take(index, axis=1))

    def pixels_of_others(self, one: PointSet, other: PointSet) -> tuple[Pixels, Pixels]:
        """Of two sets of pixels those that are not of the robot's own body, with all that is known of them."""
        both = PointSet(np.concatenate([one.index, other.index]), np.concatenate([one.points, other.points], axis=1))
        kept = np.flatnonzero(~is_own(both.points, self.own, self.camera))
        index = both.index.take(kept)
        rows, columns = np.divmod(index, self.depth_m.shape[1])
        rgb = self.rgb.reshape(-1, 1, 3).take(index, axis=0)
        hsv = np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2HSV), dtype=np.uint8)[:, 0] if len(index) else rgb[:, 0]
        pixels = Pixels(rows, columns, both.points.take(kept, axis=1), colour_codes(hsv), hsv[:, 2])
        end = int(np.searchsorted(kept, len(one.index)))
        first, second = pixels.cut_at(np.array([end, len(kept)]))
        return first, second


@dataclass(frozen=True, slots=True)
class Pixels:
    """Pixels, in the same order in each of these."""

    rows: Index
    columns: Index
    points: Points  # (3, n)
    codes: NDArray[np.int64]  # colours
    value: NDArray[np.uint8]  # lightness

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, index: Index) -> Pixels:
        """Those at these places."""
        return Pixels(
            self.rows.take(index),
            self.columns.take(index),
            self.points.take(index, axis=1),
            self.codes.take(index),
            self.value.take(index),
        )

    def cut_at(self, ends: Index) -> list[Pixels]:
        """The pixels up to each of these places; nothing is copied."""
        return [
            Pixels(
                self.rows[start:end],
                self.columns[start:end],
                self.points[:, start:end],
                self.codes[start:end],
                self.value[start:end],
            )
            for start, end in pairwise((0, *ends.tolist()))
        ]


class Clusters:
    """Some groups of pixels, one behind the other; `starts` and `lengths` say which are whose."""

    def __init__(self, groups: list[Pixels]) -> None:
        self.lengths = np.array([len(group) for group in groups])
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.rows = np.concatenate([group.rows for group in groups])
        self.columns = np.concatenate([group.columns for group in groups])
        self.points = np.concatenate([group.points for group in groups], axis=1)


class Shot(NamedTuple):
    """The depth in an image, m (height, width; 0: not known), and where its camera was."""

    depth_m: NDArray[np.float32]
    focal_px: float
    rotation: Floats
    position: Floats


def back_project(shot: Shot) -> Points:
    """Points (3, height * width) in the frame of the camera pose; meaningless where the depth is 0."""
    depth_m, focal_px, rotation, position = shot
    height, width = depth_m.shape
    right = (np.arange(width, dtype=np.float32) + 0.5 - width / 2) / np.float32(focal_px)
    down = (np.arange(height, dtype=np.float32) + 0.5 - height / 2) / np.float32(focal_px)
    planes = np.empty((3, height, width), dtype=np.float32)
    for axis, (turn, place) in enumerate(zip(rotation.astype(np.float32), position, strict=True)):
        np.add(right * turn[0], (down * turn[1] + turn[2])[:, None], out=planes[axis])
        planes[axis] *= depth_m
        planes[axis] += np.float32(place)
    return planes.reshape(3, -1)


def grouped(pixels: Pixels, cell_m: float) -> tuple[Pixels, Index]:
    """The pixels, group after group of those whose cells touch each other from above, and where each group ends."""
    order, ends = touching(pixels.points[0], pixels.points[1], cell_m)
    return (pixels.only(order) if len(ends) else pixels), ends


def touching(down: Points, across: Points, cell_m: float) -> tuple[Index, Index]:
    """The places of points (n,), group after group of those whose cells touch each other, and where each group ends."""
    none: Index = np.zeros(0, dtype=np.int64)
    if not len(down):
        return none, none
    rows = ((down - down.min()) / np.float32(cell_m)).astype(np.int32)  # not below 0: cut off is rounded down
    columns = ((across - across.min()) / np.float32(cell_m)).astype(np.int32)
    height, width = int(rows.max()) + 1, int(columns.max()) + 1
    if height * width > 4_000_000:  # a stray point far away; no kitchen is that large
        return none, none
    grid = np.zeros((height, width), dtype=np.uint8)
    cell = rows * np.int32(width) + columns
    grid.reshape(-1)[cell] = 1
    count, labels = cv2.connectedComponents(grid, connectivity=8)
    # Few groups: as 16-bit numbers they are sorted by counting.
    label = labels.reshape(-1).take(cell)
    order = np.argsort(label.astype(np.uint16) if count < 1 << 16 else label, kind="stable")
    return order, np.cumsum(np.bincount(label, minlength=count))[1:]


def is_own(points: Points, own: tuple[Capsule, ...], camera: Floats) -> Bools:
    """Which points (3, n) belong to the robot itself."""
    found = np.zeros(points.shape[1], dtype=np.bool_)
    if not own:
        return found
    start = np.array([part.start for part in own], dtype=np.float32)  # (parts, 3)
    end = np.array([part.end for part in own], dtype=np.float32)
    radius = np.array([part.radius_m for part in own], dtype=np.float32)
    lowest = (np.minimum(start, end) - radius[:, None]).min(axis=0)
    highest = (np.maximum(start, end) + radius[:, None]).max(axis=0)
    is_near = np.ones(points.shape[1], dtype=np.bool_)  # most of what is seen is far from all of the body
    for axis in range(3):
        is_near &= (points[axis] > lowest[axis]) & (points[axis] < highest[axis])
    near = np.flatnonzero(is_near)
    line = end - start
    squared = np.maximum((line * line).sum(axis=1), np.float32(1e-9))
    origin = camera.astype(np.float32)
    local = points.take(near, axis=1) - origin[:, None]  # small numbers: the differences below cancel
    start = start - origin
    along = product(line, local)  # (parts, n)
    along -= (start * line).sum(axis=1)[:, None]
    share = along / squared[:, None]
    np.maximum(share, np.float32(0.0), out=share)
    np.minimum(share, np.float32(1.0), out=share)
    away = product(start, local)
    away *= np.float32(-2.0)
    away += np.einsum("ij,ij->j", local, local)
    away += (start * start).sum(axis=1)[:, None]
    away += share * (share * squared[:, None] - 2 * along)
    found[near] = (away < (radius * radius)[:, None]).any(axis=0)
    return found
