"""From a pixel that a model points at to a thing in the odometry frame, by depth and the camera's pose."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from nodes.msgs import SeenObject
from nodes.robot.products import product

PATCH_PX = 2
SAME_M, SAME_BOX_M = 0.10, 0.30
"""A shape this near the point is the thing pointed at; a box this near."""

GUESSED = 0.3
"""How sure a place is that was pointed at and not measured: it moves nothing that was, as behind the robot's arm."""


def point_at(
    u_px: float,
    v_px: float,
    depth_m: NDArray[np.float32],
    focal_px: float,
    rotation: NDArray[np.float64],
    position: NDArray[np.float64],
) -> tuple[float, float, float] | None:
    """The surface point behind a pixel, in the frame of the camera pose; None where the depth is not known there."""
    height, width = depth_m.shape
    row, column = int(v_px), int(u_px)
    if not (0 <= row < height and 0 <= column < width) or focal_px <= 0.0:
        return None
    patch = depth_m[max(0, row - PATCH_PX) : row + PATCH_PX + 1, max(0, column - PATCH_PX) : column + PATCH_PX + 1]
    known = patch[np.isfinite(patch) & (patch > 0.0)]
    if not known.size:
        return None
    ahead = float(np.median(known))
    ray = np.array([(u_px - width / 2) / focal_px * ahead, (v_px - height / 2) / focal_px * ahead, ahead])
    x, y, z = product(rotation, ray) + position
    return float(x), float(y), float(z)


def place_thing(
    label: str,
    colour: str,
    u_px: float,
    v_px: float,
    point_m: tuple[float, float, float],
    camera_m: tuple[float, float, float],
    size_m: tuple[float, float],
    shapes: Sequence[SeenObject],
    places: Sequence[str] = (),
) -> SeenObject:
    """The thing at that surface point: with the measured shape there, where there is one, else of its usual size.

    The model gives the names, geometry the place: `shapes` are what the depth image shows, under any name.
    """
    is_place = label in places
    same_m = SAME_BOX_M if is_place else SAME_M
    near = [
        (math.dist((shape.x_m, shape.y_m), point_m[:2]), index)
        for index, shape in enumerate(shapes)
        if shape.is_place == is_place
    ]
    distance, index = min(near, default=(math.inf, -1))
    if distance < same_m:
        named: SeenObject = msgspec.structs.replace(
            shapes[index], label=label, is_place=is_place, colour=colour, u_px=u_px, v_px=v_px
        )  # type: ignore[type-var]  # a Struct, but not to type checkers
        return named
    width_m, height_m = size_m
    # The point is on the near side; the middle is half a width farther from the camera, unless it is flat.
    away_x, away_y = point_m[0] - camera_m[0], point_m[1] - camera_m[1]
    scale = (width_m / 2 if height_m else 0.0) / max(math.hypot(away_x, away_y), 1e-6)
    return SeenObject(
        label=label,
        colour=colour,
        x_m=point_m[0] + away_x * scale,
        y_m=point_m[1] + away_y * scale,
        z_m=point_m[2],
        width_m=width_m,
        height_m=height_m,
        u_px=u_px,
        v_px=v_px,
        confidence=GUESSED,
        is_place=is_place,
    )
