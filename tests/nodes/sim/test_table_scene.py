from __future__ import annotations

import itertools
import math

import pytest

from nodes.sim.world.table_scene import BIN_XY_M, BIN_Z_M, is_in_bin, lay_table
from nodes.stretch import kinematics as k
from runtime.errors import UserError
from tests.support.sentences import sentence


@pytest.mark.parametrize("seed", range(20))
def test_things_stand_far_enough_apart_and_within_reach(seed: int) -> None:
    things = lay_table(seed)
    for one, other in itertools.combinations(things, 2):
        assert math.hypot(one.x_m - other.x_m, one.y_m - other.y_m) >= 0.14
    for thing in things:
        assert k.solve((thing.x_m, thing.y_m, thing.z_m), 0.0, 0.0, 0.0) is not None


def test_five_cups_of_five_colours_and_three_other_things_are_laid() -> None:
    things = lay_table(0)
    assert len({thing.colour for thing in things if thing.label == "cup"}) == 5
    assert {thing.label for thing in things} == {"cup", "ball", "block", "bottle"}
    assert len(things) == 8


def test_only_things_that_are_named_are_laid() -> None:
    things = lay_table(0, "brown_bottle blue_cup")
    assert [thing.name for thing in things] == ["blue_cup", "brown_bottle"]
    for asked, words in (
        ("blue_cup grail", sentence("sim.on_no_table", name="grail", known="blue_cup, ")),
        ("red_cup", "the blue_cup"),
    ):
        with pytest.raises(UserError, match=words):
            lay_table(0, asked)


def test_a_seed_lays_the_same_table_again_and_another_seed_another() -> None:
    assert lay_table(4) == lay_table(4)
    assert lay_table(4) != lay_table(5)


def test_only_what_lies_between_the_bin_walls_is_in_it() -> None:
    x, y = BIN_XY_M
    assert is_in_bin(x, y, 0.2)
    assert not is_in_bin(x, y, BIN_Z_M[1] + 0.1)
    assert not is_in_bin(x + 0.2, y, 0.2)
