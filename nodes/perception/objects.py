"""What stands in front of a depth camera: things on table and floor, and boxes beside it, from one image alone.

The table is the largest level surface well above the lowest one seen; what rises from it, or from the floor beside it,
is grouped by where it stands, named by its colour and its proportions. Nothing here knows the scene. Positions are in
the frame of the camera pose that the caller passes (the odometry frame).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from nodes.msgs import SeenObject
from nodes.perception.colors import name_colour
from nodes.perception.point_cloud import (
    Bools,
    Clusters,
    DepthView,
    Index,
    Pixels,
    PointSet,
    Shot,
    back_project,
    grouped,
)
from nodes.perception.shapes import BoxShape, ShapeNames, shape_names
from nodes.perception.table_plane import Hull, find_levels
from nodes.robot.products import product
from nodes.robot.protocol import Capsule

THING_LEAST_M = 0.012
"""Lowest a thing's points may be above the table: below is the table's own noise."""
FLOATING_M = 0.06
"""A group whose lowest point is higher than this above the table does not stand on it."""
THING_CELL_M, BOX_CELL_M = 0.014, 0.03
THING_LEAST_PX, BOX_LEAST_PX = 8, 60
ONE_THING_M = 0.12
"""A group wider than this may be several things that touch."""
BALL_ERROR_M = 0.0035
CAP_M, CAP_LEAST_PX = 0.007, 4
"""What is at most this far below a thing's top is its upper end."""
CUT_FACTOR = 0.4
"""How much less sure a thing is of which only a part is seen."""
CUT_BEHIND_M, CUT_SHARE = 0.03, 0.12
"""A part is hidden where this share of the pixels around it is this much nearer."""
BOX_ABOVE_TABLE_M, BOX_ABOVE_FLOOR_M = 0.12, 0.12
"""Where boxes are looked for; what reaches higher is a wall, a person or the robot."""
FLOOR_LEAST_M = 0.025
"""The same for the floor, which is farther away, and of which only a step of height is known."""
FOOT_M = 0.02
"""How far beside a box its own foot may seem to stand."""
OWN_BODY_RADIUS_M = 0.34
"""Around the head camera, seen from above: the robot's own base and mast."""


def find_objects(
    rgb: NDArray[np.uint8],
    shot: Shot,
    *,
    own: tuple[Capsule, ...] = (),
    table_z_m: float | None = None,
    names: ShapeNames | None = None,
) -> tuple[SeenObject, ...]:
    """Things on the table, then things on the floor, then boxes beside the table, each nearest first.

    `own` is left out of the picture; `table_z_m` helps where too little of the table is seen; `names` are what shapes
    are called. Empty without depth.
    """
    names = names or shape_names()
    points = back_project(shot)
    is_known = shot.depth_m > 0.0
    levels = find_levels(points, is_known, shot.depth_m, shot.focal_px)
    table_z = levels.table_z if levels.table_z is not None else table_z_m
    if table_z is None:
        return ()
    view = DepthView(points, rgb, shot.depth_m, shot.focal_px, shot.position, own)
    is_known = is_known.reshape(-1)
    above = _above_table(view, is_known, table_z, levels.hull, names.tallest_m)
    beside = _beside_table(view, is_known, levels.floor_z, table_z, levels.hull)
    on_table, on_floor = view.pixels_of_others(above, beside)
    boxes = _boxes(on_floor, view, levels.floor_z, table_z, names.box)
    fallen = _fallen(on_floor, view, levels.floor_z, boxes, names)
    return _things(_by_colour(*grouped(on_table, THING_CELL_M)), view, table_z, names) + fallen + boxes


def place_is_empty(shot: Shot, place_m: tuple[float, float, float], *, margin_m: float = 0.06) -> bool:
    """Whether the camera looks right through that place: the thing that was there is gone.

    False where the place is out of view or hidden by something nearer.
    """
    depth_m, focal_px, rotation, position = shot
    right, down, forward = product(np.array(place_m) - position, rotation)
    if forward <= 0.1:
        return False
    height, width = depth_m.shape
    column, row = int(focal_px * right / forward + width / 2), int(focal_px * down / forward + height / 2)
    if not (2 <= row < height - 2 and 2 <= column < width - 2):
        return False
    patch = depth_m[row - 1 : row + 2, column - 1 : column + 2]
    return bool(np.all((patch > forward + margin_m) | (patch == 0.0)))


def _above_table(view: DepthView, is_known: Bools, table_z: float, hull: Hull | None, most_m: float) -> PointSet:
    """What rises from the table."""
    z = view.points[2]
    spots = view.at(np.flatnonzero(is_known & (z > table_z + THING_LEAST_M) & (z < table_z + most_m)))
    return spots if hull is None else spots.only(hull.has(spots.points, 0.03))


def _beside_table(view: DepthView, is_known: Bools, floor_z: float, table_z: float, hull: Hull | None) -> PointSet:
    """What stands on the floor and ends below the table or a little above, without the robot's own base and mast."""
    z = view.points[2]
    spots = view.at(np.flatnonzero(is_known & (z > floor_z + FLOOR_LEAST_M) & (z < table_z + BOX_ABOVE_TABLE_M)))
    points = spots.points
    camera_x, camera_y = view.camera[:2].astype(np.float32)
    away_x, away_y = points[0] - camera_x, points[1] - camera_y
    is_beside: Bools = np.greater(away_x * away_x + away_y * away_y, np.float32(OWN_BODY_RADIUS_M**2))
    if hull is not None:
        is_beside &= ~hull.has(points, 0.025)
    return spots.only(is_beside)


def _things(groups: list[Pixels], view: DepthView, level_z: float, names: ShapeNames) -> tuple[SeenObject, ...]:
    if not groups:
        return ()
    together = Clusters(groups)
    of_each = zip(groups, _outlines(together), _balls(together), strict=True)
    found = (_thing(group, outline, ball, view, level_z, names) for group, outline, ball in of_each)
    return _nearest_first([seen for seen in found if seen is not None], view)


def _fallen(
    pixels: Pixels, view: DepthView, floor_z: float, boxes: tuple[SeenObject, ...], names: ShapeNames
) -> tuple[SeenObject, ...]:
    """What lies on the floor: no foot of anything taller, which the picture's border may cut, and in no box."""
    height, width = view.depth_m.shape
    pixels, ends = grouped(pixels, THING_CELL_M)
    groups = [
        group
        for group in pixels.cut_at(ends)
        if len(group) >= THING_LEAST_PX
        and float(group.points[2].max()) < floor_z + names.tallest_m
        and 1 < int(group.rows.min()) <= int(group.rows.max()) < height - 2
        and 1 < int(group.columns.min()) <= int(group.columns.max()) < width - 2
    ]
    return tuple(
        one
        for one in _things(groups, view, floor_z, names)
        if one.width_m > FLOOR_LEAST_M and not any(is_at_foot(one, box) for box in boxes)
    )


def is_at_foot(thing: SeenObject, box: SeenObject) -> bool:
    """Whether it stands so near to a box that it may be a corner of the box itself."""
    return math.hypot(thing.x_m - box.x_m, thing.y_m - box.y_m) < box.width_m * math.sqrt(0.5) + FOOT_M


def _by_colour(pixels: Pixels, ends: Index) -> list[Pixels]:
    """The groups large enough for a thing; where one is too wide for a single thing, its parts of one colour."""
    if not len(ends):
        return []
    starts = np.concatenate([[0], ends[:-1]])
    extent = np.maximum.reduceat(pixels.points[:2], starts, axis=1)
    extent -= np.minimum.reduceat(pixels.points[:2], starts, axis=1)
    parts: list[Pixels] = []
    for group, width in zip(pixels.cut_at(ends), extent.max(axis=0).tolist(), strict=True):
        if len(group) < THING_LEAST_PX:
            continue
        if width < ONE_THING_M:
            parts.append(group)
            continue
        for code in np.flatnonzero(np.bincount(group.codes) >= THING_LEAST_PX):
            same = group.only(np.flatnonzero(group.codes == code))
            one_colour, same_ends = grouped(same, THING_CELL_M)
            parts += [part for part in one_colour.cut_at(same_ends) if len(part) >= THING_LEAST_PX]
    return parts


@dataclass(frozen=True, slots=True)
class _Outline:
    """How far a group of pixels reaches in the picture and upward, and the middle of its upper end."""

    top_px: int
    bottom_px: int
    left_px: int
    right_px: int
    v_px: float
    u_px: float
    lowest_z: float
    top_z: float
    x: float
    y: float


def _outlines(together: Clusters) -> list[_Outline]:
    """Of all groups at once, for each is small."""
    starts, lengths, z = together.starts, together.lengths, together.points[2]
    places = np.stack([together.rows, together.columns])
    least, most = np.minimum.reduceat(places, starts, axis=1), np.maximum.reduceat(places, starts, axis=1)
    middle = np.add.reduceat(places, starts, axis=1) / lengths
    heights = [np.sort(part) for part in np.split(z, starts[1:])]
    tops = np.array([float(height[int(0.98 * (len(height) - 1))]) for height in heights])
    is_cap = z > np.repeat((tops - CAP_M).astype(np.float32), lengths)
    # Of fewer pixels there is no middle: then the whole group's.
    is_cap |= np.repeat(np.add.reduceat(is_cap, starts, dtype=np.int64) < CAP_LEAST_PX, lengths)
    cap = together.points[:2].take(np.flatnonzero(is_cap), axis=1)
    numbers = np.add.reduceat(is_cap, starts, dtype=np.int64)
    first = np.cumsum(numbers) - numbers
    # Half-way between the extremes, which a hidden inside does not move, averaged with the mean.
    between = np.minimum.reduceat(cap, first, axis=1).astype(np.float64)
    between += np.maximum.reduceat(cap, first, axis=1)
    between /= 2
    between += np.add.reduceat(cap, first, axis=1).astype(np.float64) / numbers
    between /= 2
    (top, left), (bottom, right), (v, u), (x, y) = (
        (one.tolist() for one in part) for part in (least, most, middle, between)
    )
    lowest = [float(height[0]) for height in heights]
    return [
        _Outline(*values) for values in zip(top, bottom, left, right, v, u, lowest, tops.tolist(), x, y, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Ball:
    """The sphere closest to some points; the error is a root mean square, infinite where there is none."""

    x: float
    y: float
    z: float
    radius: float
    error: float


def _balls(together: Clusters) -> list[_Ball]:
    """For each group of points the sphere closest to it; all groups at once, for each is small."""
    lengths, starts = together.lengths, together.starts
    local = together.points.astype(np.float64)
    origin = np.add.reduceat(local, starts, axis=1) / lengths
    local -= np.repeat(origin, lengths, axis=1)
    x, y, z = local
    squared = x * x + y * y + z * z
    moments = np.array([x * x, y * y, z * z, x * y, x * z, y * z, x * squared, y * squared, z * squared, squared])
    xx, yy, zz, xy, xz, yz, xs, ys, zs, s = np.add.reduceat(moments, starts, axis=1)
    # Around their own mean: matrix * centre = right / 2, by Cramer's rule.
    a, b, c = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
    determinant = xx * a + xy * b + xz * c
    is_solid = determinant > 1e-9 * (xx + yy + zz) ** 3 / 27  # or all points are in one plane
    half = 0.5 / np.where(is_solid, determinant, 1.0)
    d, e, f = xx * zz - xz * xz, xy * xz - xx * yz, xx * yy - xy * xy
    centre = np.array([a * xs + b * ys + c * zs, b * xs + d * ys + e * zs, c * xs + e * ys + f * zs]) * half
    radius_squared = s / lengths + (centre * centre).sum(axis=0)
    is_solid &= (radius_squared > 0.0) & (radius_squared < 0.04)
    radius = np.sqrt(np.where(is_solid, radius_squared, 0.0))
    away = local - np.repeat(centre, lengths, axis=1)
    away *= away
    off = np.sqrt(away[0] + away[1] + away[2]) - np.repeat(radius, lengths)
    error = np.where(is_solid, np.sqrt(np.add.reduceat(off * off, starts) / lengths), np.inf)
    return [_Ball(*ball) for ball in zip(*(centre + origin).tolist(), radius.tolist(), error.tolist(), strict=True)]


def _thing(
    pixels: Pixels, outline: _Outline, ball: _Ball, view: DepthView, level_z: float, names: ShapeNames
) -> SeenObject | None:
    """One group of pixels as a thing, or None where it is too wide or not standing on that level."""
    if outline.lowest_z > level_z + FLOATING_M:
        return None
    top = outline.top_z
    height = top - level_z
    is_round = (
        ball.error < BALL_ERROR_M
        and abs(ball.z + ball.radius - top) < 0.012
        and abs(ball.z - ball.radius - level_z) < 0.025
    )
    if is_round:
        x, y, width, length = ball.x, ball.y, 2 * ball.radius, 2 * ball.radius
        height = 2 * ball.radius
    else:
        x, y = outline.x, outline.y
        (_, sides, _) = cv2.minAreaRect(np.ascontiguousarray(pixels.points[:2].T))
        # Pixel centres lie half a pixel inside the outline, on average.
        pixel = float(view.depth_m[pixels.rows[0], pixels.columns[0]]) / view.focal_px
        width, length = min(sides) + 0.5 * pixel, max(sides) + 0.5 * pixel
    if not 0.015 < width < names.widest_m or length > names.widest_m:
        return None
    label, confidence = names.name(width, length, height, is_round=is_round)
    return SeenObject(
        label=label,
        colour=name_colour(pixels.codes, pixels.value),
        x_m=x,
        y_m=y,
        z_m=level_z + height / 2,
        width_m=width,
        height_m=height,
        u_px=outline.u_px,
        v_px=outline.v_px,
        confidence=confidence * (CUT_FACTOR if _is_cut(pixels, outline, view) else 1.0),
    )


def _is_cut(pixels: Pixels, outline: _Outline, view: DepthView) -> bool:
    """Whether the picture's border or something nearer hides a part of the thing."""
    rows, columns = pixels.rows, pixels.columns
    height, width = view.depth_m.shape
    top, bottom, left, right = outline.top_px, outline.bottom_px, outline.left_px, outline.right_px
    if top <= 1 or left <= 1 or bottom >= height - 2 or right >= width - 2:
        return True
    nearest = float(view.depth_m[rows, columns].min())
    around = view.depth_m[top - 1 : bottom + 2, left - 1 : right + 2]
    is_before = (around > 0.0) & (around < nearest - CUT_BEHIND_M)
    if not is_before.any():
        return False
    mask = np.zeros(around.shape, dtype=np.uint8)
    mask[rows - (top - 1), columns - (left - 1)] = 1
    ring = cv2.dilate(mask, np.ones((3, 3), dtype=np.uint8)) - mask
    return bool(np.count_nonzero(is_before & (ring > 0)) > CUT_SHARE * np.count_nonzero(ring))


def _boxes(pixels: Pixels, view: DepthView, floor_z: float, table_z: float, shape: BoxShape) -> tuple[SeenObject, ...]:
    """Large boxes that stand beside the table."""
    high = np.flatnonzero(pixels.points[2] > floor_z + BOX_ABOVE_FLOOR_M)
    pixels, ends = grouped(pixels.only(high), BOX_CELL_M)
    groups = (group for group in pixels.cut_at(ends) if len(group) >= BOX_LEAST_PX)
    found = (_box(group, view, floor_z, table_z, shape) for group in groups)
    return _nearest_first([seen for seen in found if seen is not None], view)


def _box(pixels: Pixels, view: DepthView, floor_z: float, table_z: float, shape: BoxShape) -> SeenObject | None:
    z, rows, columns = pixels.points[2], pixels.rows, pixels.columns
    place = int(0.97 * (len(z) - 1))
    top = float(np.partition(z, place)[place])
    if not floor_z + shape.least_height_m < top < table_z + BOX_ABOVE_TABLE_M - 0.02:
        return None
    rim = np.flatnonzero(z > top - 0.025)
    if len(rim) < 8:
        return None
    (x, y), sides, _ = cv2.minAreaRect(np.ascontiguousarray(pixels.points[:2].take(rim, axis=1).T))
    if not (shape.sides_m[0] < min(sides) and max(sides) < shape.sides_m[1]):
        return None
    height, width = view.depth_m.shape
    cut = int((columns <= 1).sum() + (columns >= width - 2).sum() + (rows >= height - 2).sum() + (rows <= 1).sum())
    return SeenObject(
        label=shape.label,
        is_place=True,
        colour=name_colour(pixels.codes, pixels.value),
        x_m=float(x),
        y_m=float(y),
        z_m=(floor_z + top) / 2,
        width_m=float(min(sides)),
        height_m=top - floor_z,
        u_px=int(columns.sum()) / len(pixels),
        v_px=int(rows.sum()) / len(pixels),
        confidence=0.9 * (1.0 if cut < 4 else CUT_FACTOR),
    )


def _nearest_first(found: list[SeenObject], view: DepthView) -> tuple[SeenObject, ...]:
    camera_x, camera_y = float(view.camera[0]), float(view.camera[1])
    return tuple(sorted(found, key=lambda seen: math.hypot(seen.x_m - camera_x, seen.y_m - camera_y)))
