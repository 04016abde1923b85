"""What every figure of the bus rests on: nodes of real processes, started by a graph, that end with their figures."""

import pytest

from bench.images import median_round
from bench.measure import LOOP, PLAIN, PYTHON, run_nodes


@pytest.mark.processes
def test_each_way_of_measuring_starts_its_graph_and_loses_nothing() -> None:
    for way in (PLAIN, PYTHON, LOOP):
        size = {"count": 3000, "window": 1000}
        figures = run_nodes(
            {
                "flood": {"use": f"bench.load_nodes:{way.prefix}Flood", "params": {**size, "size_bytes": 64}},
                "tally": {"use": f"bench.load_nodes:{way.prefix}Tally", "params": size},
            },
            way,
        )
        assert figures["lost"] == 0, way.name
        assert figures["hz"] > 0, way.name


def test_the_median_round_is_a_pair_that_was_measured_together() -> None:
    assert median_round([900.0, 300.0, 620.0], [600.0, 300.0, 400.0]) == (900.0, 600.0)
    assert median_round([640.0], [500.0]) == (640.0, 500.0)
