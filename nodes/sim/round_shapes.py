"""Where rays meet balls, capsules and cylinders: quadratic equations, in the frame of the shape.

A ray is three arrays (its slope along each axis, scaled to one metre ahead of the camera), its start the eye in that
frame. Depths are in metres ahead; infinite where a ray misses.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

SIDE, TOP, BOTTOM = 0, 1, 2
"""Parts of a cylinder."""
_TINY = 1e-12


def meet_cylinders(
    ray: list[Doubles], start: list[Doubles], radius: Doubles, half_length: Doubles
) -> tuple[Doubles, NDArray[np.int64]]:
    """Depth and part: where the later is entered of the round body and the slab between its ends, both convex."""
    enter, leave = _tube(ray, start, radius)
    inverse = 1.0 / np.where(np.abs(ray[2]) < _TINY, _TINY, ray[2])
    middle, half = inverse * -start[2], np.abs(inverse) * half_length
    first, last = middle - half, middle + half
    depth = np.maximum(enter, first)
    is_cap = first > enter
    until = np.minimum(leave, last)
    is_hit = depth <= until
    is_inside = (depth <= 0) & (until > 0)  # the eye is in it and sees it from within
    depth = np.where(is_inside, until, depth)
    is_cap = np.where(is_inside, last < leave, is_cap)
    is_hit &= depth > 0
    cap = np.where((ray[2] < 0) != is_inside, TOP, BOTTOM)
    return np.where(is_hit, depth, np.inf), np.where(is_cap, cap, SIDE)


def meet_capsule(ray: list[Doubles], start: list[float], size: tuple[float, ...]) -> Doubles:
    """The nearest of the round body between the two ends and the balls there; the eye is outside."""
    depth, _ = _tube(ray, start, size[0])
    with np.errstate(invalid="ignore"):
        is_body = (np.abs(start[2] + depth * ray[2]) <= size[1]) & (depth > 0)
    depth = np.where(is_body, depth, np.inf)
    for end in (-size[1], size[1]):
        depth = np.minimum(depth, meet_ball(ray, [start[0], start[1], start[2] - end], size[0]))
    return depth


def meet_ball(ray: list[Doubles], start: list[float], radius: float) -> Doubles:
    """The near side of a ball; its far side where the eye is in it."""
    square = ray[0] ** 2 + ray[1] ** 2 + ray[2] ** 2
    half = ray[0] * start[0] + ray[1] * start[1] + ray[2] * start[2]
    beyond = start[0] ** 2 + start[1] ** 2 + start[2] ** 2 - radius**2
    enter, leave = _roots(square, half, beyond)
    depth = leave if beyond < 0 else enter
    return np.where(depth > 0, depth, np.inf)


def _tube(ray: list[Doubles], start: list[float] | list[Doubles], radius: float | Doubles) -> tuple[Doubles, Doubles]:
    """Where the rays enter and leave an endless cylinder along z."""
    square = ray[0] ** 2 + ray[1] ** 2 + _TINY
    return _roots(square, ray[0] * start[0] + ray[1] * start[1], start[0] ** 2 + start[1] ** 2 - radius**2)


def _roots(square: Doubles, half: Doubles, beyond: float | Doubles) -> tuple[Doubles, Doubles]:
    """Both solutions of square t^2 + 2 half t + beyond = 0; entered at infinity and left before it where none is."""
    inside = half * half - square * beyond
    root = np.sqrt(np.maximum(inside, 0.0))
    is_met = inside >= 0
    return np.where(is_met, (-half - root) / square, np.inf), np.where(is_met, (root - half) / square, -np.inf)
