"""Which seen thing some words mean."""

from __future__ import annotations

import pytest

from nodes.msgs import SeenObject
from nodes.vlm.room.grounding import ground, is_named


def thing(id_: str, label: str, colour: str, u_px: float, *state: str) -> SeenObject:
    return SeenObject(
        id=id_, label=label, colour=colour, x_m=u_px / 400, y_m=0.0, z_m=0.5, width_m=0.07, height_m=0.1, u_px=u_px,
        v_px=100.0, state=state,
    )  # fmt: skip


THINGS = (
    thing("mug-1", "mug", "red", 50),
    thing("mug-2", "mug", "blue", 200, "dirty"),
    thing("glass-3", "glass", "", 300, "half full"),
    thing("bowl-4", "bowl", "white", 120),
    thing("mug-5", "mug", "orange", 350),
    thing("orange-6", "orange", "orange", 400),
)
PLACES = {one.id: "table" for one in THINGS} | {"mug-2": "sink"}


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("the red cup", "mug-1"), ("the dirty mug", "mug-2"), ("the tumbler", "glass-3"), ("the orange mug", "mug-5"),
        ("the orange", "orange-6"), ("the mug left of the bowl", "mug-1"), ("the cup in the sink", "mug-2"),
        ("the white tureen", "bowl-4"), ("the navy tankard", "mug-2"), ("a piece of fruit", "orange-6"),
        ("the see-through goblet", "glass-3"), ("the orange orange", "orange-6"),
    ],
)  # fmt: skip
def test_words_find_the_one_that_they_mean(words: str, meant: str) -> None:
    assert [one.id for one in ground(words, THINGS, PLACES)] == [meant]


@pytest.mark.parametrize(
    ("words", "is_sure"),
    [
        ("the red cup", True),
        ("the crimson teacup", True),
        ("the tankard", False),
        ("the blue mug", False),
        ("it", False),
    ],
)
def test_only_words_of_its_kind_and_colour_name_a_thing(words: str, is_sure: bool) -> None:
    assert is_named(words, THINGS[0]) == is_sure


def test_of_things_that_look_alike_the_likelier_one_is_meant() -> None:
    unknown = [thing("thing-1", "thing", "red", 50), thing("thing-2", "thing", "red", 90)]
    likely = {"thing-1": {"mug": 0.4}, "thing-2": {"mug": 0.1, "bowl": 0.4}}
    assert [one.id for one in ground("the red mug", unknown, {}, likely)] == ["thing-1"]


def test_words_that_fit_several_find_several() -> None:
    assert {one.id for one in ground("a mug", THINGS, PLACES)} == {"mug-1", "mug-2", "mug-5"}


def test_words_for_what_is_not_there_find_nothing() -> None:
    assert ground("the yellow sponge", THINGS, PLACES) == []
