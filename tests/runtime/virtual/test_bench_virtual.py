"""Where the time of a virtual run goes, as it is measured."""

import pytest

from bench.virtual import REST, shares, speed


def test_the_shipped_graph_is_measured_as_it_runs_and_every_handler_has_its_share() -> None:
    measured = speed(parts=1, part_s=0.5)
    assert measured.calls["driver.control"] == pytest.approx(25, abs=1)  # 50 Hz, by the simulated clock
    assert 0 < sum(measured.used_s.values()) <= measured.total_s * 1.05  # two accounts of the same processor
    assert "driver.control" in shares(measured)
    assert REST in shares(measured)
