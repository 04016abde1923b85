"""Twelve seconds of a corridor, at once: both come through, and never both at a time."""

from pathlib import Path

import pytest
from carts import DOOR_M, HALF_WIDTH_M, Position

from runtime import Simulation
from runtime.launch.file import load


@pytest.mark.parametrize("seed", range(5))
def test_both_pass_the_door_and_never_at_a_time(seed: int) -> None:
    sim = Simulation(*load(Path("carts.toml")).graph.nodes.values(), seed=seed)
    left, right = (sim.record_topic(f"{name}/position", Position) for name in ("left_cart", "right_cart"))
    sim.run(seconds=12.0)
    sim.close()
    assert (left[-1].x_m > 9.0, right[-1].x_m < 1.0) == (True, True)
    for here, there in zip(left, right, strict=True):
        assert max(abs(here.x_m - DOOR_M), abs(there.x_m - DOOR_M)) >= HALF_WIDTH_M - 1e-6
