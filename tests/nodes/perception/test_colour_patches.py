"""Colours that stand out in a picture without depth."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from nodes.perception.colour_patches import MOST, colours_in_view

Pixels = NDArray[np.uint8]


@pytest.fixture
def wall() -> Pixels:
    """A grey wall with some noise, as a webcam gives it."""
    noise = np.random.default_rng(7).integers(-12, 12, (480, 640, 3))
    return (130 + noise).astype(np.uint8)


def test_a_bare_wall_shows_nothing(wall: Pixels) -> None:
    assert colours_in_view(wall) == ()


def test_the_largest_comes_first_and_specks_do_not_count(wall: Pixels) -> None:
    wall[300:420, 100:200] = (200, 30, 30)
    wall[300:360, 400:460] = (30, 60, 200)
    wall[10:20, 10:20] = (30, 200, 30)
    assert colours_in_view(wall) == ("red", "blue")


def test_many_colours_are_cut_short(wall: Pixels) -> None:
    colours = [(200, 30, 30), (30, 60, 200), (30, 160, 30), (230, 210, 30), (120, 30, 180), (240, 130, 20)]
    for place, colour in enumerate(colours):
        wall[200:300, 100 * place : 100 * place + 90] = colour
    assert len(colours_in_view(wall)) == MOST


@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 2000, 3), (2000, 2, 3)])
def test_any_shape_will_do(shape: tuple[int, ...]) -> None:
    assert colours_in_view(np.zeros(shape, dtype=np.uint8)) == ()
