"""Where rays meet balls, capsules and cylinders: quadratic equations, many shapes at once.

All is computed in the frame of the camera: for a shape with centre c and axis a, what its equations ask of a ray r are
products like r . a, which are linear in the picture. Depths are in metres ahead; a ray that misses has no root, which
makes it NaN, and no comparison with that is true.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodes.robot.products import product
from nodes.sim.rendering.pixel_grid import Doubles, Floats, Integers, PixelGrid, places, steps

SIDE, TOP, BOTTOM = 0, 1, 2
"""Parts of a cylinder."""
_NEAR_M = 1e-4
_TINY = 1e-12
_CORNERS = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
_EDGES = np.array([(a, b) for a in range(8) for b in range(a + 1, 8) if bin(a ^ b).count("1") == 1])


@dataclass(frozen=True, slots=True)
class VisiblePart:
    """What may be seen of some shapes, pixel by pixel."""

    pixel: Integers
    nearness: Floats  # one over the depth; 0 where the ray misses
    which: Integers  # of the shapes
    part: Integers


class RoundShapes:
    """Capsules, which are balls where they have no length, and after them cylinders."""

    def __init__(self, grid: PixelGrid, radius: Doubles, half_length: Doubles, number_of_capsules: int) -> None:
        self._grid = grid
        self._capsules = number_of_capsules
        self._form = np.column_stack([radius**2, half_length])
        along = half_length + np.where(np.arange(len(radius)) < number_of_capsules, radius, 0.0)
        self._extent = np.column_stack([radius, radius, along])
        self._corners = _CORNERS * self._extent[:, None]

    def see(self, wanted: Integers, centre: Doubles, turn: Doubles) -> VisiblePart | None:
        """The wanted ones of the shapes: their centres, and the turns of their frames, in the frame of the camera.

        None where the picture shows none of them.
        """
        left, right, top, bottom = self._rectangles(wanted, centre, turn)
        height = np.maximum(bottom - top, 0)  # of nothing that is ahead of the eye, less than none
        of_row, row = places(height), steps(top, height)
        length = (right - left).take(of_row)
        pixel = self._grid.pixels_of(row, left.take(of_row), length)
        if not len(pixel):
            return None
        rays = _Rays(
            self._grid.flat_across.take(pixel), self._grid.squared.take(pixel), self._grid.up.take(row), length, of_row
        )
        axis = turn[:, :, 2]
        square, half_length = self._form.take(wanted, axis=0).T
        middle = (centre * axis).sum(axis=1)  # where along the axis the eye is, backward
        beside = centre - middle[:, None] * axis
        along = rays.times(axis)
        enter, leave = rays.enter_and_leave(rays.squared - along * along + _TINY, beside, square)
        # Along its axis a ray is between the two ends from here to there.
        inverse = 1.0 / np.where(np.abs(along) < _TINY, _TINY, along)
        half = rays.spread(half_length)
        half *= np.abs(inverse)
        inverse *= rays.spread(middle)
        first, last = inverse - half, inverse + half
        capsules = int(wanted.searchsorted(self._capsules))
        their_rows = int(of_row.searchsorted(capsules))
        ends = int(length[:their_rows].sum())  # of their pixels
        depth, part = _meet_cylinders(enter[ends:], leave[ends:], first[ends:], last[ends:], along[ends:])
        if ends:
            is_body = (enter[:ends] >= first[:ends]) & (enter[:ends] <= last[:ends]) & (enter[:ends] > 0)
            near = np.where(is_body, enter[:ends], np.inf)
            beyond = half_length[:capsules, None] * axis[:capsules]
            balls = rays.first(their_rows, ends)
            for way in (1.0, -1.0):
                near = np.minimum(near, balls.meet_balls(centre[:capsules] + way * beyond, square[:capsules]))
            depth = np.concatenate([near, depth])
            part = np.concatenate([np.full(ends, SIDE), part])
        return VisiblePart(pixel, (1.0 / depth).astype(np.float32), wanted.take(of_row).repeat(length), part)

    def _rectangles(
        self, wanted: Integers, centre: Doubles, turn: Doubles
    ) -> tuple[Integers, Integers, Integers, Integers]:
        """The columns and rows, from and to, that the box around each shape covers."""
        corners = product(self._corners.take(wanted, axis=0), turn.transpose(0, 2, 1))
        corners += centre[:, None]
        ahead = -corners[..., 2]
        slopes = corners[..., :2] / np.maximum(ahead, _NEAR_M)[..., None]
        ends = np.array([slopes.min(axis=1), slopes.max(axis=1)])
        for which in np.flatnonzero(ahead.min(axis=1) <= _NEAR_M).tolist():
            eye = np.abs(product(centre[which], turn[which]))
            is_inside = bool((eye <= self._extent[wanted[which]] * 1.001 + 1e-6).all())
            ends[:, which] = [[-np.inf], [np.inf]] if is_inside else _ends_of_cut(corners[which], ahead[which])
        left, right = self._grid.across.searchsorted(ends[..., 0])
        bottom, top = self._grid.down.searchsorted(-ends[..., 1])  # rows go down while `up` falls
        return left, right, top, bottom


def _meet_cylinders(
    enter: Doubles, leave: Doubles, first: Doubles, last: Doubles, along: Doubles
) -> tuple[Doubles, Integers]:
    """Depth and part: where the later is entered of the round body and the slab between its ends, both convex."""
    depth = np.maximum(enter, first)
    until = np.minimum(leave, last)
    is_cap = first > enter
    is_inside = (depth <= 0) & (until > 0)  # the eye is in it and sees it from within
    is_hit = depth <= until
    if is_inside.any():
        depth = np.where(is_inside, until, depth)
        is_cap = np.where(is_inside, last < leave, is_cap)
    is_hit &= depth > 0
    part = np.where(is_cap, np.where((along < 0) != is_inside, TOP, BOTTOM), SIDE)
    return np.where(is_hit, depth, np.inf), part


@dataclass(frozen=True, slots=True)
class _Rays:
    """The rays of the pixels of some stretches of rows."""

    across: Doubles  # of each pixel
    squared: Doubles  # of each pixel: its ray times itself
    up: Doubles  # of each stretch
    length: Integers  # of each stretch, in pixels
    of_row: Integers  # the shape of each stretch

    def first(self, stretches: int, pixels: int) -> _Rays:
        """The first ones of these."""
        return _Rays(
            self.across[:pixels],
            self.squared[:pixels],
            self.up[:stretches],
            self.length[:stretches],
            self.of_row[:stretches],
        )

    def times(self, vectors: Doubles) -> Doubles:
        """Each ray times the vector of its shape."""
        right, upward, backward = vectors.take(self.of_row, axis=0).T
        product: Doubles = right.repeat(self.length)
        product *= self.across
        product += (upward * self.up - backward).repeat(self.length)
        return product

    def spread(self, values: Doubles) -> Doubles:
        """The value of its shape for each ray."""
        spread: Doubles = values.take(self.of_row).repeat(self.length)
        return spread

    def enter_and_leave(self, squared: Doubles, centre: Doubles, radius_squared: Doubles) -> tuple[Doubles, Doubles]:
        """Both solutions of squared t^2 - 2 (r . centre) t + centre . centre - radius^2 = 0; NaN where none is."""
        half = self.times(centre)
        root = self.spread((centre * centre).sum(axis=1) - radius_squared)
        root *= squared
        np.subtract(half * half, root, out=root)
        np.sqrt(root, out=root)
        return (half - root) / squared, (half + root) / squared

    def meet_balls(self, centre: Doubles, radius_squared: Doubles) -> Doubles:
        """The near side of a ball; its far side where the eye is in it."""
        enter, leave = self.enter_and_leave(self.squared, centre, radius_squared)
        return np.where(enter > 0, enter, np.where(leave > 0, leave, np.inf))


def _ends_of_cut(corners: Doubles, ahead: Doubles) -> Doubles:
    """Least and greatest slopes of the part of a box that is ahead; the wrong way round where nothing of it is."""
    is_ahead = ahead > _NEAR_M
    if not is_ahead.any():
        return np.array([[np.inf, np.inf], [-np.inf, -np.inf]])
    first, second = _EDGES[is_ahead[_EDGES[:, 0]] != is_ahead[_EDGES[:, 1]]].T
    share = (_NEAR_M - ahead[first]) / (ahead[second] - ahead[first])  # where its edges come from behind
    cuts = corners[first, :2] + share[:, None] * (corners[second, :2] - corners[first, :2])
    slopes = np.concatenate([corners[is_ahead, :2] / ahead[is_ahead, None], cuts / _NEAR_M])
    return np.array([slopes.min(axis=0), slopes.max(axis=0)])
