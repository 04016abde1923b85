"""A way through the room: the shortest one over a grid of free points, straightened."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from nodes.kitchen.world import Kitchen

STEP_M = 0.08
PointM = tuple[float, float]
Circle = tuple[float, float, float]
"""x, y and radius of something that stands in the room, m."""
Cell = tuple[int, int]


def find_route(kitchen: Kitchen, start: PointM, end: PointM, circles: Sequence[Circle] = ()) -> list[PointM] | None:
    """The corners of the way from start to end, the end last; None where there is no way.

    The start itself may be too near to something: from there the way leads out.
    """
    room = FreeSpace(kitchen, circles)
    if not room.is_free(end):
        return None
    if room.is_clear(start, end):
        return [end]
    cells = _cells(room, _cell(start), _cell(end))
    if cells is None:
        return None
    return _straightened(room, start, [*(_point(cell) for cell in cells[1:-1]), end])


class FreeSpace:
    """Where the middle of the base may be."""

    def __init__(self, kitchen: Kitchen, circles: Sequence[Circle]) -> None:
        self._kitchen, self._circles = kitchen, circles
        self._radius_m = kitchen.room.robot_radius_m

    def is_free(self, at: PointM) -> bool:
        """Whether the base may stand there, turned as it likes."""
        (west, east), (south, north) = self._kitchen.room.x_m, self._kitchen.room.y_m
        x, y, r = *at, self._radius_m
        if not (west + r < x < east - r and south + r < y < north - r):
            return False
        if any(math.dist(at, (cx, cy)) < r + radius for cx, cy, radius in self._circles):
            return False
        for place in self._kitchen.places.values():
            dx = max(place.x_m[0] - x, 0.0, x - place.x_m[1])
            dy = max(place.y_m[0] - y, 0.0, y - place.y_m[1])
            if math.hypot(dx, dy) < r:
                return False
        return True

    def is_clear(self, start: PointM, end: PointM) -> bool:
        """Whether the straight way is free."""
        steps = max(1, math.ceil(math.dist(start, end) / (STEP_M / 2)))
        ways = ((start[0] + (end[0] - start[0]) * n / steps, start[1] + (end[1] - start[1]) * n / steps)
                for n in range(1, steps + 1))  # fmt: skip
        return all(self.is_free(at) for at in ways)


def _cell(at: PointM) -> Cell:
    return round(at[0] / STEP_M), round(at[1] / STEP_M)


def _point(cell: Cell) -> PointM:
    return cell[0] * STEP_M, cell[1] * STEP_M


def _cells(room: FreeSpace, start: Cell, end: Cell) -> list[Cell] | None:
    """A* over the eight neighbours."""
    open_cells: list[tuple[float, Cell]] = [(0.0, start)]
    cost: dict[Cell, float] = {start: 0.0}
    before: dict[Cell, Cell] = {}
    while open_cells:
        _, cell = heapq.heappop(open_cells)
        if cell == end:
            way = [cell]
            while way[-1] != start:
                way.append(before[way[-1]])
            return way[::-1]
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                after = cell[0] + dx, cell[1] + dy
                total = cost[cell] + math.hypot(dx, dy)
                if after == cell or total >= cost.get(after, math.inf):
                    continue
                if after != end and not room.is_free(_point(after)):
                    continue
                cost[after], before[after] = total, cell
                heapq.heappush(open_cells, (total + math.dist(after, end), after))
    return None


def _straightened(room: FreeSpace, start: PointM, points: list[PointM]) -> list[PointM]:
    found, here, left = [], start, points
    while left:
        number = next((n for n in range(len(left) - 1, 0, -1) if room.is_clear(here, left[n])), 0)
        here, left = left[number], left[number + 1 :]
        found.append(here)
    return found
