"""The way to a spot on the floor leads past what is known to stand there, and stays the same while it is held."""

from __future__ import annotations

import math

import pytest

from bridges.web.console.driving.floor_path import PERSON_M, ROOM_M, Way
from bridges.web.http.wire import PointedPlace
from nodes.msgs import RobotState, Scene, SceneDescription, SeenObject, SeenPerson
from tests.support.standing import standing


def at(x_m: float, y_m: float) -> RobotState:
    return standing(0, pose=(x_m, y_m, 0.0))


def seen(*places: tuple[float, float]) -> SceneDescription:
    things = tuple(
        SeenObject(
            label="cup",
            colour="red",
            x_m=x,
            y_m=y,
            z_m=0.5,
            width_m=0.07,
            height_m=0.1,
            u_px=0.0,
            v_px=0.0,
            confidence=1.0,
        )
        for x, y in places
    )
    return SceneDescription(text="", subtask_id="", progress="working", objects=things)


def walked(way: Way, spot: PointedPlace, scene: SceneDescription) -> list[tuple[float, float]]:
    """Where the base goes: straight from corner to corner."""
    here, passed = (0.0, 0.0), [(0.0, 0.0)]
    for _ in range(400):
        way = Way.to(spot, at(*here), scene, None, way)
        x, y = way.corners[0]
        left = math.dist(here, (x, y))
        if left < 0.02:
            break
        step = min(0.02, left) / left
        here = (here[0] + (x - here[0]) * step, here[1] + (y - here[1]) * step)
        passed.append(here)
    return passed


def test_a_way_goes_around_a_thing_and_ends_at_the_spot() -> None:
    spot, scene = PointedPlace(x_m=2.0, y_m=0.0), seen((1.0, 0.05))
    passed = walked(Way.to(spot, at(0.0, 0.0), scene, None, None), spot, scene)
    assert math.dist(passed[-1], (2.0, 0.0)) < 0.05
    assert min(math.dist(one, (1.0, 0.05)) for one in passed) > ROOM_M - 0.06


def test_what_is_out_of_sight_still_stands_there_and_a_person_has_more_room() -> None:
    spot = PointedPlace(x_m=2.0, y_m=0.0)
    first = Way.to(spot, at(0.0, 0.0), seen((1.0, 0.05)), None, None)
    later = Way.to(PointedPlace(x_m=2.0, y_m=0.1), at(0.0, 0.0), seen(), None, first)
    assert len(later.corners) > 1
    person = Scene(people=(SeenPerson(id="Ana", x_m=1.0, y_m=0.5),))
    beside = Way.to(spot, at(0.0, 0.0), seen(), person, None)
    assert len(beside.corners) > 1
    assert PERSON_M > ROOM_M


def test_where_something_stands_is_no_place_to_go_but_where_it_stood_once_is() -> None:
    scene = seen((1.0, 0.0))
    assert "no way" in Way.to(PointedPlace(x_m=1.0, y_m=0.1), at(0.0, 0.0), scene, None, None).why_not
    kept = PointedPlace(x_m=1.0, y_m=0.35, heading_rad=0.0)
    assert Way.to(kept, at(0.0, 0.0), scene, None, None).why_not == ""
    assert Way.to(PointedPlace(x_m=1.0, y_m=0.35), at(0.0, 0.0), scene, None, None).why_not != ""


@pytest.mark.parametrize("x_m", [0.7, 0.75])
def test_a_base_that_stands_too_near_can_leave(x_m: float) -> None:
    assert Way.to(PointedPlace(x_m=-1.0, y_m=0.0), at(x_m, 0.0), seen((1.0, 0.0)), None, None).why_not == ""
