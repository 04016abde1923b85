"""What stands in front of a depth camera: things on the table and boxes beside it, from one image alone.

The table is the largest level surface well above the lowest one seen; what rises from it is grouped by where it stands,
named by its colour and its proportions. Nothing here knows the scene. Positions are in the frame of the camera pose
that the caller passes (the odometry frame). The only file that imports OpenCV.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

from nodes.colours import colour_codes, name_colour
from nodes.own_body import Capsule
from runtime.msgs import SeenObject

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LEVEL_STEP_M = 0.01
LEVEL_SLOPE_M = 0.004
"""Most height difference between neighbouring pixels of a level surface."""
TABLE_ABOVE_FLOOR_M = 0.25
TABLE_LEAST_M2, TABLE_LEAST_PX = 0.02, 60
THING_LEAST_M = 0.012
"""Lowest a thing's points may be above the table: below is the table's own noise."""
THING_MOST_M = 0.30
FLOATING_M = 0.06
"""A group whose lowest point is higher than this above the table does not stand on it."""
THING_CELL_M, BOX_CELL_M = 0.014, 0.03
THING_LEAST_PX, BOX_LEAST_PX = 8, 60
THING_WIDEST_M = 0.20
CUT_FACTOR = 0.4
"""How much less sure a thing is of which only a part is seen."""
BOX_SIDES_M = (0.15, 0.60)
BOX_LEAST_HEIGHT_M = 0.15
BOX_ABOVE_TABLE_M = 0.12
"""What reaches higher is a wall, a person or the robot."""
OWN_BODY_RADIUS_M = 0.34
"""Around the head camera, seen from above: the robot's own base and mast."""


def find_objects(
    rgb: NDArray[np.uint8],
    depth_m: NDArray[np.float32],
    focal_px: float,
    camera_rotation: Floats,
    camera_position: Floats,
    *,
    own: tuple[Capsule, ...] = (),
    table_z_m: float | None = None,
) -> tuple[SeenObject, ...]:
    """Things standing on the table, then boxes beside it, each nearest first.

    `own` is left out of the picture; `table_z_m` helps where too little of the table is seen. Empty without depth.
    """
    points = back_project(depth_m, focal_px, camera_rotation, camera_position)
    is_known = depth_m > 0.0
    floor_z, table_z, on_table = _levels(points, is_known, depth_m, focal_px)
    if table_z is None:
        table_z = table_z_m
    if table_z is None:
        return ()
    hsv = cv2.cvtColor(np.ascontiguousarray(rgb), cv2.COLOR_RGB2HSV)
    view = _View(points, depth_m, np.asarray(hsv, dtype=np.uint8), focal_px, camera_position, own)
    hull = _hull(points[on_table][:, :2])
    things = _things(view, is_known, table_z, hull)
    boxes = _boxes(view, is_known, floor_z, table_z, hull)
    return things + boxes


def back_project(
    depth_m: NDArray[np.float32], focal_px: float, camera_rotation: Floats, camera_position: Floats
) -> NDArray[np.float32]:
    """Points (height, width, 3) in the frame of the camera pose; meaningless where the depth is 0."""
    height, width = depth_m.shape
    right = (np.arange(width, dtype=np.float32) + 0.5 - width / 2) / np.float32(focal_px)
    down = (np.arange(height, dtype=np.float32) + 0.5 - height / 2) / np.float32(focal_px)
    # Coordinate by coordinate, each of them in one piece: several times as fast as point by point.
    planes = np.empty((3, height, width), dtype=np.float32)
    for axis, (turn, place) in enumerate(zip(camera_rotation.astype(np.float32), camera_position, strict=True)):
        np.add(right * turn[0], (down * turn[1] + turn[2])[:, None], out=planes[axis])
        planes[axis] *= depth_m
        planes[axis] += np.float32(place)
    points: NDArray[np.float32] = planes.transpose(1, 2, 0)
    return points


def place_is_empty(
    depth_m: NDArray[np.float32],
    focal_px: float,
    camera_rotation: Floats,
    camera_position: Floats,
    place_m: tuple[float, float, float],
    *,
    margin_m: float = 0.06,
) -> bool:
    """Whether the camera looks right through that place: the thing that was there is gone.

    False where the place is out of view or hidden by something nearer.
    """
    right, down, forward = (np.array(place_m) - camera_position) @ camera_rotation
    if forward <= 0.1:
        return False
    height, width = depth_m.shape
    column, row = int(focal_px * right / forward + width / 2), int(focal_px * down / forward + height / 2)
    if not (2 <= row < height - 2 and 2 <= column < width - 2):
        return False
    patch = depth_m[row - 1 : row + 2, column - 1 : column + 2]
    return bool(np.all((patch > forward + margin_m) | (patch == 0.0)))


@dataclass(frozen=True, slots=True)
class _View:
    points: NDArray[np.float32]  # (height, width, 3)
    depth_m: NDArray[np.float32]
    hsv: NDArray[np.uint8]
    focal_px: float
    camera: Floats
    own: tuple[Capsule, ...]

    def points_at(self, index: NDArray[np.int64]) -> NDArray[np.float32]:
        """The points (n, 3) of some pixels, counted row by row."""
        planes = self.points.transpose(2, 0, 1)
        return _taken(planes.reshape(3, -1).T, index)


def _taken(points: NDArray[np.float32], chosen: NDArray[np.int64]) -> NDArray[np.float32]:
    """Some of the points (n, 3), each coordinate in one piece as it was."""
    return points.T.take(chosen, axis=1).T


def _levels(
    points: NDArray[np.float32], is_known: Bools, depth_m: NDArray[np.float32], focal_px: float
) -> tuple[float, float | None, Bools]:
    """Heights of the floor (the lowest level surface) and the table (or None), and which pixels show the table."""
    z = points[:, :, 2]
    is_level = is_known.copy()
    is_level[0, :] = is_level[:, 0] = False  # these have no neighbour to compare with
    is_level[:, 1:] &= np.abs(z[:, 1:] - z[:, :-1]) < LEVEL_SLOPE_M
    is_level[1:, :] &= np.abs(z[1:, :] - z[:-1, :]) < LEVEL_SLOPE_M
    heights = z[is_level]
    nothing = np.zeros_like(is_known)
    if not len(heights):
        return 0.0, None, nothing
    # A pixel covers more of a level surface the farther away and the more slanted it is; slant is left out.
    area = (depth_m[is_level] / focal_px) ** 2
    lowest = float(heights.min())
    steps = ((heights - lowest) / LEVEL_STEP_M).astype(np.int64)
    histogram = np.bincount(steps, weights=area)
    # Two neighbouring steps together, so that a surface on the border between them is not halved.
    pairs = histogram + np.append(histogram[1:], 0.0)
    is_surface = pairs > TABLE_LEAST_M2
    if not is_surface.any():
        return 0.0, None, nothing
    floor_step = int(np.argmax(is_surface))
    floor_z = lowest + floor_step * LEVEL_STEP_M
    if floor_z > TABLE_ABOVE_FLOOR_M:  # no floor in view: the base stands on it at height 0
        floor_step, floor_z = 0, 0.0
    least = math.ceil((floor_z + TABLE_ABOVE_FLOOR_M - lowest) / LEVEL_STEP_M)
    pairs[: max(least, 0)] = 0.0
    best = int(np.argmax(pairs)) if len(pairs) else 0
    if not len(pairs) or pairs[best] <= TABLE_LEAST_M2:
        return floor_z, None, nothing
    middle = lowest + (best + 1) * LEVEL_STEP_M
    near = heights[np.abs(heights - middle) <= 1.5 * LEVEL_STEP_M]
    table_z = float(np.median(near))
    return floor_z, table_z, _without_specks(is_level & (np.abs(z - table_z) < LEVEL_STEP_M))


def _without_specks(mask: Bools) -> Bools:
    """The mask without its small islands: stripes of a wall, the robot's own edges."""
    _, labels, statistics, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=4)
    is_large = statistics[:, cv2.CC_STAT_AREA] >= TABLE_LEAST_PX
    is_large[0] = False
    return np.asarray(is_large[labels], dtype=np.bool_)


def _things(view: _View, is_known: Bools, table_z: float, hull: NDArray[np.float32] | None) -> tuple[SeenObject, ...]:
    z = view.points[:, :, 2]
    index = np.flatnonzero(is_known & (z > table_z + THING_LEAST_M) & (z < table_z + THING_MOST_M))
    points = view.points_at(index)
    if hull is not None:
        inside = np.flatnonzero(_is_inside(points[:, :2], hull, 0.03))
        index, points = index.take(inside), _taken(points, inside)
    pixels = _pixels(view, index[~_is_own(points, view)])
    found: list[SeenObject] = []
    for group in _groups(pixels.points, THING_CELL_M):
        for part in _by_colour(pixels.only(group)):
            seen = _thing(part, view, table_z)
            if seen is not None:
                found.append(seen)
    return _nearest_first(found, view)


@dataclass(frozen=True, slots=True)
class _Pixels:
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    points: NDArray[np.float32]  # (n, 3)
    codes: NDArray[np.int64]  # colours
    value: NDArray[np.uint8]  # lightness

    def only(self, chosen: NDArray[np.int64] | Bools) -> _Pixels:
        index = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else np.asarray(chosen, dtype=np.int64)
        return _Pixels(
            self.rows.take(index),
            self.columns.take(index),
            _taken(self.points, index),
            self.codes.take(index),
            self.value.take(index),
        )


def _pixels(view: _View, index: NDArray[np.int64]) -> _Pixels:
    rows, columns = np.divmod(index, view.depth_m.shape[1])
    hsv = view.hsv.reshape(-1, 3).take(index, axis=0)
    return _Pixels(rows, columns, view.points_at(index), colour_codes(hsv), hsv[:, 2])


def _by_colour(group: _Pixels) -> list[_Pixels]:
    """The group itself, or, where it is too wide for one thing, its parts of one colour."""
    xy = group.points[:, :2]
    if float((xy.max(axis=0) - xy.min(axis=0)).max()) < 0.12:
        return [group]
    parts = []
    for code in np.flatnonzero(np.bincount(group.codes) >= THING_LEAST_PX):
        same = group.only(group.codes == code)
        parts += [same.only(part) for part in _groups(same.points, THING_CELL_M)]
    return parts


def _thing(pixels: _Pixels, view: _View, table_z: float) -> SeenObject | None:
    """One group of pixels as a thing, or None where it is too small, too wide or not standing on the table."""
    points = pixels.points
    heights = np.sort(points[:, 2])
    if len(points) < THING_LEAST_PX or float(heights[0]) > table_z + FLOATING_M:
        return None
    top = float(heights[int(0.98 * (len(heights) - 1))])
    height = top - table_z
    centre, radius, error = _sphere(points)
    is_round = error < 0.0035 and abs(centre[2] + radius - top) < 0.012 and abs(centre[2] - radius - table_z) < 0.025
    if is_round:
        x, y, width, length = float(centre[0]), float(centre[1]), 2 * radius, 2 * radius
        height = 2 * radius
    else:
        cap = points[points[:, 2] > top - 0.007]
        x, y = _middle(cap[:, :2] if len(cap) >= 4 else points[:, :2])
        (_, sides, _) = cv2.minAreaRect(np.ascontiguousarray(points[:, :2]))
        # Pixel centres lie half a pixel inside the outline, on average.
        pixel = float(view.depth_m[pixels.rows[0], pixels.columns[0]]) / view.focal_px
        width, length = min(sides) + 0.5 * pixel, max(sides) + 0.5 * pixel
    if not 0.015 < width < THING_WIDEST_M or length > THING_WIDEST_M:
        return None
    label, confidence = _label(is_round, width, length, height)
    return SeenObject(
        label=label,
        colour=name_colour(pixels.codes, pixels.value),
        x_m=x,
        y_m=y,
        z_m=table_z + height / 2,
        width_m=width,
        height_m=height,
        u_px=float(pixels.columns.mean()),
        v_px=float(pixels.rows.mean()),
        confidence=confidence * (CUT_FACTOR if _is_cut(pixels, view) else 1.0),
    )


def _is_cut(pixels: _Pixels, view: _View) -> bool:
    """Whether the picture's border or something nearer hides a part of the thing."""
    rows, columns = pixels.rows, pixels.columns
    height, width = view.depth_m.shape
    top, bottom, left, right = int(rows.min()), int(rows.max()), int(columns.min()), int(columns.max())
    if top <= 1 or left <= 1 or bottom >= height - 2 or right >= width - 2:
        return True
    mask = np.zeros((bottom - top + 5, right - left + 5), dtype=np.uint8)
    mask[rows - top + 2, columns - left + 2] = 1
    ring = cv2.dilate(mask, np.ones((3, 3), dtype=np.uint8)) - mask
    ring_rows, ring_columns = np.nonzero(ring)
    depth = view.depth_m[np.clip(ring_rows + top - 2, 0, height - 1), np.clip(ring_columns + left - 2, 0, width - 1)]
    nearest = float(view.depth_m[rows, columns].min())
    return float(np.mean((depth > 0.0) & (depth < nearest - 0.03))) > 0.12


def _label(is_round: bool, width: float, length: float, height: float) -> tuple[str, float]:
    """The kind by proportions, and how sure that is."""
    across = (width + length) / 2
    if is_round:
        return "ball", 0.9
    if height > 0.13 or height > 2.0 * across:
        return "bottle", 0.9
    if length > 1.45 * width and length > 0.09:
        return "cup", 0.5  # lying on its side
    if height > 1.18 * across:
        return "cup", 0.9
    if height > 0.5 * across:
        return "block", 0.8
    return "bowl", 0.6


def _boxes(
    view: _View, is_known: Bools, floor_z: float, table_z: float, hull: NDArray[np.float32] | None
) -> tuple[SeenObject, ...]:
    """Large boxes that stand beside the table and end below it or a little above."""
    z = view.points[:, :, 2]
    index = np.flatnonzero(is_known & (z > floor_z + 0.12) & (z < table_z + BOX_ABOVE_TABLE_M))
    points = view.points_at(index)
    away = points[:, :2] - view.camera[:2].astype(np.float32)
    beside = np.flatnonzero(away[:, 0] * away[:, 0] + away[:, 1] * away[:, 1] > OWN_BODY_RADIUS_M**2)
    index, points = index.take(beside), _taken(points, beside)
    if hull is not None:
        beside = np.flatnonzero(~_is_inside(points[:, :2], hull, 0.025))
        index, points = index.take(beside), _taken(points, beside)
    pixels = _pixels(view, index[~_is_own(points, view)])
    found: list[SeenObject] = []
    for group in _groups(pixels.points, BOX_CELL_M):
        seen = _box(pixels.only(group), view, floor_z, table_z)
        if seen is not None:
            found.append(seen)
    return _nearest_first(found, view)


def _box(pixels: _Pixels, view: _View, floor_z: float, table_z: float) -> SeenObject | None:
    points, rows, columns = pixels.points, pixels.rows, pixels.columns
    if len(points) < BOX_LEAST_PX:
        return None
    top = float(np.sort(points[:, 2])[int(0.97 * (len(points) - 1))])
    if not floor_z + BOX_LEAST_HEIGHT_M < top < table_z + BOX_ABOVE_TABLE_M - 0.02:
        return None
    rim = points[points[:, 2] > top - 0.025]
    if len(rim) < 8:
        return None
    (x, y), sides, _ = cv2.minAreaRect(np.ascontiguousarray(rim[:, :2]))
    if not (BOX_SIDES_M[0] < min(sides) and max(sides) < BOX_SIDES_M[1]):
        return None
    height, width = view.hsv.shape[:2]
    cut = int((columns <= 1).sum() + (columns >= width - 2).sum() + (rows >= height - 2).sum() + (rows <= 1).sum())
    return SeenObject(
        label="bin",
        colour=name_colour(pixels.codes, pixels.value),
        x_m=float(x),
        y_m=float(y),
        z_m=(floor_z + top) / 2,
        width_m=float(min(sides)),
        height_m=top - floor_z,
        u_px=float(columns.mean()),
        v_px=float(rows.mean()),
        confidence=0.9 * (1.0 if cut < 4 else CUT_FACTOR),
    )


def _groups(points: NDArray[np.float32], cell_m: float) -> list[NDArray[np.int64]]:
    """Indices of points whose cells, seen from above, touch each other."""
    if not len(points):
        return []
    cells = np.floor((points[:, :2] - points[:, :2].min(axis=0)) / cell_m).astype(np.int32)
    across, along = (int(size) + 1 for size in cells.max(axis=0))
    if across * along > 4_000_000:  # a stray point far away; no kitchen is that large
        return []
    grid = np.zeros((across, along), dtype=np.uint8)
    grid[cells[:, 0], cells[:, 1]] = 1
    count, labels = cv2.connectedComponents(grid, connectivity=8)
    of_point = labels[cells[:, 0], cells[:, 1]]
    order = np.argsort(of_point, kind="stable")
    ends = np.cumsum(np.bincount(of_point, minlength=count))
    return [order[start:end] for start, end in pairwise(ends)]


def _sphere(points: NDArray[np.float32]) -> tuple[Floats, float, float]:
    """Centre, radius and root mean square error of the sphere closest to the points."""
    local = points.astype(np.float64)
    origin = local.mean(axis=0)
    local -= origin
    matrix = np.column_stack([2 * local, np.ones(len(local))])
    try:
        solution = np.linalg.solve(matrix.T @ matrix, matrix.T @ np.einsum("ij,ij->i", local, local))
    except np.linalg.LinAlgError:  # all points in one plane
        return origin, 0.0, math.inf
    centre = solution[:3]
    squared = float(solution[3] + centre @ centre)
    if not 0.0 < squared < 0.04:
        return origin, 0.0, math.inf
    radius = math.sqrt(squared)
    error = np.linalg.norm(local - centre, axis=1) - radius
    return centre + origin, radius, float(np.sqrt(np.mean(error**2)))


def _middle(points: NDArray[np.float32]) -> tuple[float, float]:
    """Half-way between the extremes, which a hidden inside does not move, averaged with the mean."""
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    x, y = (middle + points.mean(axis=0)) / 2
    return float(x), float(y)


def _hull(points: NDArray[np.float32]) -> NDArray[np.float32] | None:
    if len(points) < 20:
        return None
    outline = cv2.approxPolyDP(cv2.convexHull(np.ascontiguousarray(points)), 0.01, True)
    return np.asarray(outline[:, 0, :], dtype=np.float32) if len(outline) >= 3 else None


def _is_inside(points: NDArray[np.float32], hull: NDArray[np.float32], margin_m: float) -> Bools:
    """Which points (n, 2) lie in the convex hull or at most that far outside each of its edges."""
    start, end = hull, np.roll(hull, -1, axis=0)
    edge = end - start
    length = np.linalg.norm(edge, axis=1)
    is_edge = length > 1e-6
    start, edge = start[is_edge], edge[is_edge] / length[is_edge, None]
    outward = np.column_stack([edge[:, 1], -edge[:, 0]])
    inward = outward @ hull.mean(axis=0) - (outward * start).sum(axis=1) > 0
    outward = np.where(inward[:, None], -outward, outward).astype(np.float32)
    beyond = outward @ points.T  # (edges, n)
    beyond -= (outward * start).sum(axis=1)[:, None]
    inside: Bools = beyond.max(axis=0) < margin_m if len(points) else np.zeros(0, dtype=np.bool_)
    return inside


def _is_own(points: NDArray[np.float32], view: _View) -> Bools:
    """Which points (n, 3) belong to the robot itself."""
    if not view.own or not len(points):
        return np.zeros(len(points), dtype=np.bool_)
    start = np.array([part.start for part in view.own], dtype=np.float32)  # (parts, 3)
    line = np.array([part.end for part in view.own], dtype=np.float32) - start
    radius = np.array([part.radius_m for part in view.own], dtype=np.float32)
    squared = np.maximum((line * line).sum(axis=1), np.float32(1e-9))
    local = points - view.camera.astype(np.float32)  # small numbers: the differences below cancel
    start = start - view.camera.astype(np.float32)
    along = line @ local.T  # (parts, n)
    along -= (start * line).sum(axis=1)[:, None]
    share = np.clip(along / squared[:, None], np.float32(0.0), np.float32(1.0))
    away = start @ local.T
    away *= np.float32(-2.0)
    away += np.einsum("ij,ij->i", local, local)
    away += (start * start).sum(axis=1)[:, None]
    away += share * (share * squared[:, None] - 2 * along)
    mine: Bools = np.asarray((away < (radius * radius)[:, None]).any(axis=0))
    return mine


def _nearest_first(found: list[SeenObject], view: _View) -> tuple[SeenObject, ...]:
    return tuple(sorted(found, key=lambda seen: math.hypot(seen.x_m - view.camera[0], seen.y_m - view.camera[1])))
