"""Of all that is drawn at a pixel the nearest is seen, in whatever order and by whichever way it was drawn."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.sim.rendering.pixel_grid import NOTHING, PixelGrid, places, steps

WIDTH, HEIGHT = 5, 4
FAR = 0.05


def grid() -> PixelGrid:
    found = PixelGrid(np.linspace(-0.5, 0.5, WIDTH), np.linspace(0.4, -0.4, HEIGHT))
    found.clear(FAR)
    return found


drawing = st.tuples(
    st.integers(0, WIDTH * HEIGHT - 1), st.floats(-1.0, 1e6, width=32), st.integers(1, 2**31), st.booleans()
)


@settings(deadline=None)
@given(st.lists(drawing, max_size=30))
def test_the_nearest_is_seen_in_any_order(drawings: list[tuple[int, float, int, bool]]) -> None:
    found = grid()
    expected = [(np.float32(FAR), NOTHING)] * (WIDTH * HEIGHT)
    for pixel, nearness, number, as_window in drawings:
        near = np.array([nearness], dtype=np.float32)
        expected[pixel] = max(expected[pixel], (near[0], number))
        if as_window:
            row, column = divmod(pixel, WIDTH)
            window = (slice(row, row + 1), slice(column, column + 1))
            found.draw_window(window, near.reshape(1, 1).copy(), number)
        else:
            found.draw_pixels(np.array([pixel]), near, np.array([number]))
    assert found.nearness.reshape(-1).tolist() == [nearness for nearness, _ in expected]
    assert found.surface.reshape(-1).tolist() == [number for _, number in expected]


def test_one_pixel_drawn_twice_at_once_keeps_the_nearer() -> None:
    found = grid()
    found.draw_pixels(np.array([7, 7, 3]), np.array([2.0, 1.0, 0.5], dtype=np.float32), np.array([11, 12, 13]))
    assert found.surface.reshape(-1)[[7, 3, 0]].tolist() == [11, 13, NOTHING]


def test_clearing_forgets_all() -> None:
    found = grid()
    found.draw_pixels(np.array([0]), np.array([2.0], dtype=np.float32), np.array([9]))
    found.clear(FAR)
    assert not found.surface.any()
    assert (found.nearness == np.float32(FAR)).all()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-5, 50), st.integers(0, 6))))
def test_stretches_one_after_the_other(stretches: list[tuple[int, int]]) -> None:
    start = np.array([first for first, _ in stretches], dtype=np.int64)
    length = np.array([number for _, number in stretches], dtype=np.int64)
    assert steps(start, length).tolist() == [first + step for first, number in stretches for step in range(number)]
    assert places(length).tolist() == [place for place, (_, number) in enumerate(stretches) for _ in range(number)]
