"""The quick part of the fault matrix, once each: real processes, killed and misled. The whole of it: make faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.faults.matrix import MATRIX, Bound, Fault
from bench.faults.run import measure
from bench.faults.table import BEGIN, END, Row, write


@pytest.mark.processes
@pytest.mark.parametrize("fault", [fault for fault in MATRIX if fault.is_quick], ids=lambda fault: fault.name)
def test_the_robot_stops_as_promised(fault: Fault) -> None:
    rows = measure(fault, 1)
    assert [row.as_markdown() + row.problem for row in rows if not row.is_passed] == []
    assert len(rows) == len(fault.bounds)


def test_names_of_faults_differ() -> None:
    assert len({fault.name for fault in MATRIX}) == len(MATRIX)


def test_a_row_passes_within_its_bound_and_what_the_machine_itself_is_late() -> None:
    bound = Bound("stop, ms", 100.0, p99=50.0)
    assert Row("f", bound, (49.0, 50.0)).is_passed
    assert not Row("f", bound, (51.0,)).is_passed
    assert Row("f", bound, (51.0,), lateness_ms=2.0).is_passed
    assert not Row("f", bound, (103.0, *[1.0] * 200), lateness_ms=2.0).is_passed
    assert not Row("f", Bound("stale", 0), (1.0,), lateness_ms=20.0).is_passed
    assert not Row("f", Bound("restarts", 3, least=3), (2.0,)).is_passed
    assert not Row("f", None, problem="it broke").is_passed
    assert Row("f", None, skipped="skipped: needs root").is_passed
    assert not Row("f", bound).is_passed


def test_the_table_replaces_what_stands_between_its_markers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write(page, "new")
    assert page.read_text() == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    page.write_text("nothing")
    with pytest.raises(ValueError, match="has no markers"):
        write(page, "new")
