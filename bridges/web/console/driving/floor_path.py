"""`Way`: the corners of the way to a spot on the floor, past the things and people that are known to stand there."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bridges.web.http.wire import PointedPlace
from nodes.msgs import RobotState, Scene, SceneDescription
from nodes.robot.route import PointM, find_route

ROOM_M = 0.42
"""The middle of the base keeps so far from a thing, for what it stands on is wider than itself."""
PERSON_M = 0.60
NEAREST_M, MOST_KNOWN = 0.28, 64
PASSED_M = 0.12
"""A corner this near is passed; the last one is the spot itself."""
MOVED_M = 0.10
"""A way is looked for again once something stands this far from where it stood."""
Circle = tuple[float, float, float]


class Around:
    """The floor around these circles (x, y, radius), as a `Floor`."""

    def __init__(self, circles: tuple[Circle, ...]) -> None:
        self._circles = circles

    def is_free(self, at: PointM) -> bool:
        """Whether the base may stand there."""
        return all(math.dist(at, (x, y)) >= radius for x, y, radius in self._circles)


@dataclass(frozen=True, slots=True)
class Way:
    """What is left of a way."""

    spot: PointedPlace
    corners: tuple[PointM, ...]
    circles: tuple[Circle, ...] = ()
    why_not: str = ""

    @classmethod
    def to(
        cls,
        spot: PointedPlace,
        state: RobotState,
        scene: SceneDescription | None,
        believed: Scene | None,
        before: Way | None,
    ) -> Way:
        """The way there; what is left of the one `before` where that still holds."""
        here, there = (state.base_x_m, state.base_y_m), (spot.x_m, spot.y_m)
        known = before.circles if before is not None else ()
        circles = _circles(scene, believed, known)
        if before is not None and before.spot == spot and not before.why_not and _are_alike(circles, known):
            corners = before.corners
        else:
            stood = (here,) if spot.heading_rad is None else (here, there)  # where it has stood already
            found = find_route(Around(tuple(_shrunk(one, stood) for one in circles)), here, there)
            if found is None:
                return cls(spot, (), circles, "there is no way to that place: something stands there, or all around it")
            corners = tuple(found)
        while len(corners) > 1 and math.dist(here, corners[0]) < PASSED_M:
            corners = corners[1:]
        return cls(spot, corners, circles)


def _circles(scene: SceneDescription | None, believed: Scene | None, known: tuple[Circle, ...]) -> tuple[Circle, ...]:
    """What is seen now, and what was known before: what is out of sight still stands there."""
    things = ((one.x_m, one.y_m, ROOM_M) for one in (scene.objects if scene is not None else ()))
    people = ((one.x_m, one.y_m, PERSON_M) for one in (believed.people if believed is not None else ()))
    now = (*things, *people)
    return (*now, *(one for one in known if not _is_among(one, now)))[:MOST_KNOWN]


def _is_among(one: Circle, others: tuple[Circle, ...]) -> bool:
    return any(math.dist(one[:2], other[:2]) < MOVED_M for other in others)


def _are_alike(now: tuple[Circle, ...], before: tuple[Circle, ...]) -> bool:
    return all(_is_among(one, before) for one in now)


def _shrunk(circle: Circle, stood: tuple[PointM, ...]) -> Circle:
    """No wider than the base's own distance from it where it stands, so that it can leave and come back."""
    x, y, radius = circle
    return x, y, min(radius, max(NEAREST_M, min(math.dist((x, y), at) for at in stood) - 0.01))
