"""What a robot's head camera sees of a room: rays in its field of view, each ended by what it meets first.

Place, direction, range and what hides what are the camera's. That a thing is recognised is taken for granted.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from nodes.exploration.room import CELL_M, Cell, RoomThing, cell_at, is_inside, metres
from nodes.robot.products import product
from nodes.robot.protocol import Body
from runtime.msgs import RobotState

ACROSS_RAD, UP_RAD = math.radians(69.0), math.radians(55.0)
COLUMNS, ROWS = 40, 32
"""Rays: one for about 1.7 degrees."""
RANGE_M = 3.0
"""What is farther away is not made out."""
LEAST_RAYS = 4
"""So many must end on a thing."""
WIDTH_M, HEIGHT_M = CELL_M / 2, 0.5
HIGHER_M = {"cupboard": 1.8, "lamp": 1.5, "drawer": 0.9}
"""Of things that are not `HEIGHT_M` high; what is behind a high one is hidden."""


def _rays() -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """(n, 3), camera frame: right, down, forward; forward is 1."""
    across, up = math.tan(ACROSS_RAD / 2), math.tan(UP_RAD / 2)
    right, down = np.meshgrid(np.linspace(-across, across, COLUMNS), np.linspace(-up, up, ROWS))
    return np.column_stack([right.ravel(), down.ravel(), np.ones(right.size)])


RAYS = _rays()


def height_m(kind: str) -> float:
    """How high things of that kind are."""
    return HIGHER_M.get(kind, HEIGHT_M)


def in_view(body: Body, state: RobotState, began_at: Cell, things: Collection[RoomThing]) -> tuple[set[str], set[Cell]]:
    """Names of the things, and the cells in whose middle nothing stands, as the head camera sees it now.

    `things` are all of the room.
    """
    rotation, eye = body.head_camera(state)
    rays = product(RAYS, rotation.T)
    spots_m = {one.name: metres(one.at, began_at) for one in things}
    near = [one for one in things if math.dist(spots_m[one.name], eye[:2]) < RANGE_M + WIDTH_M] or [*things][:1]
    low = np.array([(*spots_m[one.name], 0.0) for one in near]) - (WIDTH_M / 2, WIDTH_M / 2, 0.0)
    high = low + [(WIDTH_M, WIDTH_M, height_m(one.kind)) for one in near]
    with np.errstate(divide="ignore", invalid="ignore"):
        first, last = ((side - eye) / rays[:, None, :] for side in (low, high))  # (ray, thing, axis)
        enters, leaves = np.minimum(first, last).max(axis=2), np.maximum(first, last).min(axis=2)
        floor = np.where(rays[:, 2] < 0.0, -eye[2] / rays[:, 2], np.inf)
    enters = np.where((leaves >= enters) & (enters > 0.0), enters, np.inf)
    nearest = enters.min(axis=1)
    is_near = np.minimum(nearest, floor) * np.linalg.norm(rays, axis=1) < RANGE_M
    is_thing = nearest < floor
    counts = np.bincount(enters.argmin(axis=1)[is_near & is_thing], minlength=len(near))
    seen = {one.name for one, count in zip(near, counts.tolist(), strict=True) if count >= LEAST_RAYS}
    is_floor = is_near & ~is_thing
    spots = (eye + rays[is_floor] * floor[is_floor, None])[:, :2]
    spots = spots[np.abs(spots - CELL_M * np.round(spots / CELL_M)).max(axis=1) < WIDTH_M / 2]
    cells = {cell_at((x, y), began_at) for x, y in spots.tolist()}
    return seen, {cell for cell in cells if is_inside(cell)}
