"""Claims about `nodes/perception/people.py`; what hands do stands in the tests of those who look."""

from __future__ import annotations

import math

import pytest

from nodes.perception.hands import Face
from nodes.perception.people import PersonTrack

TURN_RAD = 0.25


@pytest.mark.parametrize(("pitches", "yaws", "gesture"), [(1, 0, "nod"), (0, 1, "shake"), (0, 0, "")])
def test_a_head_that_goes_up_and_down_nods_and_one_that_turns_shakes(pitches: int, yaws: int, gesture: str) -> None:
    person = PersonTrack()
    assert person.tell((), "", 0, lambda _: True) == ()
    for number in range(8):
        swing = TURN_RAD * (number % 2)
        pitch, yaw = swing * pitches, math.pi / 2 + swing * yaws
        line = (math.cos(pitch) * math.cos(yaw), math.cos(pitch) * math.sin(yaw), -math.sin(pitch))
        person.follow((), (Face((0.0, -1.5, 1.5), line),), number * 200_000_000, lambda _: True)
    (told,) = person.tell((), "", 1_600_000_000, lambda _: True)
    assert (told.gesture, told.x_m, told.y_m) == (gesture, 0.0, -1.5)
