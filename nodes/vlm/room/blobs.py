"""What stands out in one image with depth: groups of points above the furniture that a map knows, and people's parts.

Geometry alone, in the frame of the camera's pose (the odometry frame). What a group is, `crops` tells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from nodes.perception.colors import is_skin
from nodes.perception.hands import LEAST_SKIN_PX, Face, HandPose, faces_in, hands_in
from nodes.perception.point_cloud import Shot, back_project, is_own, touching
from nodes.robot.products import least_squares
from nodes.robot.protocol import Capsule
from nodes.sim.world.world_file import WorldFile

Floats = NDArray[np.float64]
Points = NDArray[np.float32]
Bools = NDArray[np.bool_]
Index = NDArray[np.int64]

CELL_M = 0.016
LEAST_PX = 14
RISES_M = 0.008
"""What is lower above a surface is the surface."""
HIGHEST_M = 0.34
WALL_M = 0.03
CAP_M = 0.008
"""What is at most this far below a group's top is its upper end."""
STAIN, STAIN_SHARE = 0.10, 0.004


@dataclass(frozen=True, slots=True)
class Surface:
    """Something that things stand on, or in: a name, its extent, and the height of what stands there; m."""

    name: str
    x_m: tuple[float, float]
    y_m: tuple[float, float]
    z_m: float
    rim_z_m: float  # of a box; else as z_m

    @property
    def is_box(self) -> bool:
        """Whether walls are around it."""
        return self.rim_z_m > self.z_m


@dataclass(frozen=True, slots=True)
class RoomMap:
    """What is known of a room before looking: surfaces, other solid boxes (x, y, z from and to), and the walls."""

    surfaces: tuple[Surface, ...]
    solids: tuple[tuple[float, float, float, float, float, float], ...]
    x_m: tuple[float, float]
    y_m: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Blob:
    """One group of pixels and where it is."""

    pixels: Index  # counted row by row
    box: tuple[int, int, int, int]  # columns and rows: left, top, right, bottom; the last ones are not in it
    points: Points  # (3, n)
    surface: str  # on or in which it stands; "floor"; "" in the air
    x_m: float
    y_m: float
    bottom_m: float
    top_m: float
    width_m: float  # the smaller side of its upper end
    length_m: float
    is_cut: bool  # by the edge of the image

    @property
    def size_m(self) -> tuple[float, float, float, float]:
        """Width, length, height, and its largest extent, for who tells what it is."""
        low, high = self.points.min(axis=1), self.points.max(axis=1)
        return self.width_m, self.length_m, self.top_m - self.bottom_m, float((high - low)[:2].max())


@dataclass(frozen=True, slots=True)
class ImageGeometry:
    """All that one image shows."""

    blobs: tuple[Blob, ...]
    hands: tuple[HandPose, ...]
    faces: tuple[Face, ...]
    stains: dict[str, bool]  # of surfaces of which enough is seen


def map_of(kitchen: WorldFile) -> RoomMap:
    """The map of a kitchen, with machines and taps."""
    surfaces, solids = [], []
    for name, place in kitchen.places.items():
        is_box = place.form == "box"
        surfaces.append(Surface(name, place.x_m, place.y_m, place.floor_z_m if is_box else place.z_m, place.z_m))
        x, _ = place.centre_m
        if place.fills:
            solids.append((*place.x_m, place.y_m[0], place.y_m[1] + 0.2, place.z_m + 0.2, 1.0))
            solids.append((*place.x_m, place.y_m[1], place.y_m[1] + 0.2, 0.0, 1.0))
        if place.washes:
            solids.append((x - 0.03, x + 0.03, place.y_m[1] - 0.05, place.y_m[1] + 0.02, 0.0, 1.0))
    return RoomMap(tuple(surfaces), tuple(solids), kitchen.room.x_m, kitchen.room.y_m)


def look(rgb: NDArray[np.uint8], shot: Shot, room: RoomMap, own: tuple[Capsule, ...] = ()) -> ImageGeometry:
    """What stands out; `own` are parts of the robot. Empty where nothing is ahead."""
    points = back_project(shot)
    known = shot.depth_m.reshape(-1) > 0.0
    free = np.flatnonzero(known & _is_free(points, room, shot.position))
    free = free[~is_own(points.take(free, axis=1), own, shot.position)]
    skin = is_skin(rgb.reshape(-1, 3).take(free, axis=0))
    blobs: list[Blob] = []
    hands: list[HandPose] = []
    faces: list[Face] = []
    shape = shot.depth_m.shape
    for group in _groups(points.take(free, axis=1), shot.position):
        mine, is_mine_skin = free.take(group), skin.take(group)
        at = points.take(mine, axis=1)
        if int(is_mine_skin.sum()) >= LEAST_SKIN_PX and _is_beside_furniture(at, room):
            hands += hands_in(at, is_mine_skin)
            faces += faces_in(at, is_mine_skin)
            rest = mine[~_near_skin(mine, mine[is_mine_skin], shape)]
            others = _groups(points.take(rest, axis=1), shot.position)
            blobs += [b for one in others if (b := _blob(rest.take(one), points, room, shape)) and _is_whole(b)]
        elif (blob := _blob(mine, points, room, shape)) is not None and blob.surface:
            blobs.append(blob)
    grown: NDArray[np.uint8] = np.zeros(shape, dtype=np.uint8)
    grown.reshape(-1)[free] = 1
    stains = _stains(rgb, points, known, cv2.dilate(grown, np.ones((7, 7), np.uint8)).reshape(-1) > 0, room)
    return ImageGeometry(tuple(blobs), tuple(hands), tuple(faces), stains)


def _is_free(points: Points, room: RoomMap, camera: Floats) -> Bools:
    """Which points are in the air: not of the room, nor of its furniture, nor of the robot's base and mast."""
    x, y, z = points
    found = (z > 0.02) & (z < 1.75)
    for value, (low, high) in ((x, room.x_m), (y, room.y_m)):
        found &= (value > low + WALL_M) & (value < high - WALL_M)
    found &= np.hypot(x - np.float32(camera[0]), y - np.float32(camera[1])) > 0.34
    for one in room.surfaces:
        inner = 0.014 if one.is_box else 0.0
        around = (x > one.x_m[0] - 0.02) & (x < one.x_m[1] + 0.02)
        around &= (y > one.y_m[0] - 0.02) & (y < one.y_m[1] + 0.02)
        inside = (x > one.x_m[0] + inner) & (x < one.x_m[1] - inner) & (y > one.y_m[0] + inner)
        inside &= (y < one.y_m[1] - inner) & (z > one.z_m + RISES_M)
        found &= ~around | inside | (z > one.rim_z_m + RISES_M)
    for left, right, low, high, bottom, top in room.solids:
        found &= ~((x > left) & (x < right) & (y > low) & (y < high) & (z > bottom) & (z < top))
    return np.asarray(found, np.bool_)


def _groups(points: Points, camera: Floats) -> list[Index]:
    """Places in `points` (3, n) of those whose cells touch each other from above; near the camera cells are smaller."""
    found = []
    for one in _touching(points, 2 * CELL_M):
        away = float(np.median(np.linalg.norm(points[:, one] - camera.astype(np.float32)[:, None], axis=0)))
        found += [one.take(part) for part in _touching(points[:, one], max(CELL_M / 2, CELL_M * away / 2))]
    return [one for one in found if len(one) >= LEAST_PX]


def _touching(points: Points, cell_m: float) -> list[Index]:
    order, ends = touching(points[1], points[0], cell_m)
    return np.split(order, ends[:-1]) if len(ends) else []


def _is_beside_furniture(points: Points, room: RoomMap) -> bool:
    """Whether a part of it is above no surface, and high: of somebody, or of something that somebody holds."""
    x, y, z = points
    is_over = np.zeros(len(x), dtype=np.bool_)
    for one in room.surfaces:
        is_over |= (x > one.x_m[0]) & (x < one.x_m[1]) & (y > one.y_m[0]) & (y < one.y_m[1])
    return int((~is_over & (z > 0.3)).sum()) >= LEAST_PX


def _near_skin(pixels: Index, skin: Index, shape: tuple[int, ...]) -> Bools:
    """Which pixels are skin, or of its edge."""
    mask: NDArray[np.uint8] = np.zeros(shape, dtype=np.uint8)
    mask.reshape(-1)[skin] = 1
    return np.asarray(cv2.dilate(mask, np.ones((3, 3), np.uint8)).reshape(-1)[pixels] > 0)


def _is_whole(blob: Blob) -> bool:
    """Whether it is a thing at hand and no sleeve: it does not reach far, and it is not high up in the air."""
    return blob.size_m[3] < 0.24 and blob.top_m < 1.2


def _blob(pixels: Index, points: Points, room: RoomMap, shape: tuple[int, ...]) -> Blob | None:
    at = points.take(pixels, axis=1)
    bottom, top = float(at[2].min()), float(np.partition(at[2], -2)[-2])
    cap = at[:2, at[2] > top - CAP_M]
    low, high = cap.min(axis=1), cap.max(axis=1)
    x, y = ((low + high) / 2).tolist()
    sides = sorted((high - low).tolist())
    ball = _ball(at) if sides[1] < 0.05 else None
    if ball is not None:
        x, y, radius = ball
        sides = [2 * radius, 2 * radius]
    surface = ""
    for one in room.surfaces:
        if one.x_m[0] - 0.02 < x < one.x_m[1] + 0.02 and one.y_m[0] - 0.02 < y < one.y_m[1] + 0.02:
            stands = bottom < one.z_m + (0.08 if one.is_box else 0.035)
            if stands and top < one.z_m + HIGHEST_M:
                surface, bottom = one.name, one.z_m
    if not surface and bottom < 0.06 and top < 0.25:
        surface, bottom = "floor", 0.0
    rows, columns = np.divmod(pixels, shape[1])
    box = (int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1)
    is_cut = box[0] == 0 or box[1] == 0 or box[2] == shape[1] or box[3] == shape[0]
    if max(box[2] - box[0], box[3] - box[1]) < 4:
        return None
    return Blob(pixels, box, at, surface, x, y, bottom, top, sides[0], sides[1], is_cut)


def _ball(points: Points) -> tuple[float, float, float] | None:
    """Middle and radius of a ball through most of the points; None where they are on none."""
    middle = points.mean(axis=1)
    local = (points - middle[:, None]).astype(np.float64)
    matrix = np.vstack([2 * local, np.ones(local.shape[1])]).T
    solution = least_squares(matrix, (local * local).sum(axis=0))
    radius = math.sqrt(max(float(solution[3] + (solution[:3] ** 2).sum()), 0.0))
    off = np.abs(np.linalg.norm(local - solution[:3, None], axis=0) - radius)
    if not 0.02 < radius < 0.08 or float(np.median(off)) > 0.003:
        return None
    return float(middle[0] + solution[0]), float(middle[1] + solution[1]), radius


def _stains(rgb: NDArray[np.uint8], points: Points, known: Bools, is_hidden: Bools, room: RoomMap) -> dict[str, bool]:
    """Of which surfaces enough is seen, and whether spots of another colour are on them."""
    found = {}
    x, y, z = points
    for one in room.surfaces:
        on = known & (np.abs(z - one.z_m) < 0.004) & (x > one.x_m[0] + 0.02) & (x < one.x_m[1] - 0.02)
        on &= (y > one.y_m[0] + 0.02) & (y < one.y_m[1] - 0.02) & ~is_hidden
        seen = np.flatnonzero(on)
        if len(seen) < 800:
            continue
        colours = rgb.reshape(-1, 3).take(seen, axis=0).astype(np.float32) / 255
        off = np.abs(colours - np.median(colours, axis=0)).max(axis=1)
        found[one.name] = float((off > STAIN).mean()) > STAIN_SHARE
    return found
