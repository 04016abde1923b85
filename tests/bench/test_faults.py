"""The quick part of the fault matrix, once each: real processes, killed and misled. The whole of it: make faults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bench.faults import measures
from bench.faults.matrix import MATRIX, Bound, Fault
from bench.faults.run import Rigs, measure
from bench.faults.table import Row, as_markdown
from tests.support.sentences import sentence


@pytest.fixture(scope="module")
def rigs() -> Iterator[Rigs]:
    """To start the graph takes longer than most trials: they share it where they may."""
    with Rigs() as kept:
        yield kept


LONG = (
    "dropped, doubled and out of order",
    "NaN and infinite speeds",
    "16 CPU hogs: Ouch!",
    "5,000 commands a second: Ouch!",
    "policy: SIGSTOP, later SIGCONT",
    "policy: SIGKILL at 0.3 m/s",
)
"""Rows of `make faults` whose rules the tests of the guard's machine show in virtual time, too, or other rows here."""


@pytest.mark.alone
@pytest.mark.processes
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=fault.name, marks=[pytest.mark.long] if fault.name in LONG else [])
        for fault in MATRIX
        if fault.is_quick
    ],
)
def test_the_robot_stops_as_promised(fault: Fault, rigs: Rigs) -> None:
    # One trial may be the worst of a hundred: it answers to the bound of all, not to that of the other ninety-nine.
    fault = replace(fault, bounds=tuple(replace(bound, p99=None) for bound in fault.bounds))
    rows = measure(fault, 1, rigs)
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
    assert Row("f", Bound("drift, mm", 225.0), (225.0 + 10 * 0.3,), lateness_ms=10.0).is_passed
    assert not Row("f", Bound("drift, mm", 225.0), (225.0 + 11 * 0.3,), lateness_ms=10.0).is_passed
    assert not Row("f", None, problem="it broke").is_passed
    assert Row("f", None, skipped="skipped: needs root").is_passed
    assert not Row("f", bound).is_passed


def test_a_row_says_when_only_the_machines_lateness_let_it_pass() -> None:
    bound = Bound("stop, ms", 100.0, p99=50.0)
    assert not Row("f", bound, (49.0,), lateness_ms=9.0).is_widened
    late = Row("f", bound, (51.0,), lateness_ms=9.0)
    assert late.is_widened
    assert "yes, widened" in late.as_markdown()
    assert not Row("f", bound, (99.0,), lateness_ms=9.0).is_widened, "it did not pass at all"
    text = as_markdown([late, Row("f", bound, (1.0,))], took_s=60.0, load=(1.0, 2.0))
    assert sentence("bench.figures_within", within=2, figures=2) in text
    assert sentence("bench.figures_widened", number=1) in text
    assert late.as_data()["widened"]
    assert json.loads(json.dumps(late.as_data())) == late.as_data()


def test_a_fault_that_raises_anything_is_a_failed_row_and_not_the_end_of_the_matrix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(rig: object) -> dict[str, float]:
        raise ZeroDivisionError("no such thing")

    class NoRigs(Rigs):
        def for_(self, fault: Fault) -> Any:
            return SimpleNamespace(moving_s=0.0)

    fault = Fault("f", broken, (Bound("x", 1),), is_fresh=True)
    (row,) = measure(fault, 2, NoRigs())
    assert not row.is_passed
    assert "ZeroDivisionError: no such thing" in row.as_markdown()


def test_every_stop_tells_when_it_began_and_when_the_robot_stood() -> None:
    beginnings = {measures.OUCH, measures.ESTOP, measures.HELD}
    lacking = [
        fault.name
        for fault in MATRIX
        if {bound.figure for bound in fault.bounds} & beginnings
        and measures.AT_REST not in {bound.figure for bound in fault.bounds}
    ]
    assert lacking == []


def test_both_tables_have_the_plain_stops_and_those_of_a_busy_machine() -> None:
    names = {fault.name for fault in MATRIX if fault.is_by_rights}
    assert {"nothing is wrong: Ouch!", "nothing is wrong: e-stop", "estop at a terminal"} < names
    assert {name for name in names if name.endswith("CPU hogs: Ouch!")}
    assert all(not fault.is_fresh for fault in MATRIX if fault.is_by_rights)
