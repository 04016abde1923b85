"""Finds a way around obstacles on the floor: the shortest one over a grid of free points, straightened. Pure."""

from __future__ import annotations

import heapq
import math
from typing import Protocol

STEP_M = 0.08
MOST_CELLS = 6000
PointM = tuple[float, float]
Cell = tuple[int, int]


class Floor(Protocol):
    """Says where the centre of the base may be."""

    def is_free(self, at: PointM) -> bool:
        """Whether the base may stand at this point, m, with any heading."""
        ...


def find_route(floor: Floor, start: PointM, end: PointM) -> list[PointM] | None:
    """The corners of the way from start to end, m, the end last; None where there is no way.

    The start may be too close to an obstacle: the way then leads out from there.
    """
    if not floor.is_free(end):
        return None
    if is_clear(floor, start, end):
        return [end]
    cells = _cells(floor, _cell(start), _cell(end))
    if cells is None:
        return None
    return _straightened(floor, start, [*(_point(cell) for cell in cells[1:-1]), end])


def is_clear(floor: Floor, start: PointM, end: PointM) -> bool:
    """Whether the straight way between two points, m, is free."""
    steps = max(1, math.ceil(math.dist(start, end) / (STEP_M / 2)))
    ways = ((start[0] + (end[0] - start[0]) * n / steps, start[1] + (end[1] - start[1]) * n / steps)
            for n in range(1, steps + 1))  # fmt: skip
    return all(floor.is_free(at) for at in ways)


def _cell(at: PointM) -> Cell:
    return round(at[0] / STEP_M), round(at[1] / STEP_M)


def _point(cell: Cell) -> PointM:
    return cell[0] * STEP_M, cell[1] * STEP_M


def _cells(floor: Floor, start: Cell, end: Cell) -> list[Cell] | None:
    """A* over the eight neighbours."""
    open_cells: list[tuple[float, Cell]] = [(0.0, start)]
    cost: dict[Cell, float] = {start: 0.0}
    before: dict[Cell, Cell] = {}
    while open_cells and len(cost) < MOST_CELLS:
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
                if after != end and not floor.is_free(_point(after)):
                    continue
                cost[after], before[after] = total, cell
                heapq.heappush(open_cells, (total + math.dist(after, end), after))
    return None


def _straightened(floor: Floor, start: PointM, points: list[PointM]) -> list[PointM]:
    found, here, left = [], start, points
    while left:
        number = next((n for n in range(len(left) - 1, 0, -1) if is_clear(floor, here, left[n])), 0)
        here, left = left[number], left[number + 1 :]
        found.append(here)
    return found
