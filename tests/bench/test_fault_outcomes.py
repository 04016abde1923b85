"""Trials of the fault matrix are kept as they are made, go on where they were, and share the machine in lanes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from bench.faults import __main__ as command
from bench.faults import lanes
from bench.faults.lanes import left_s, portions, run_all
from bench.faults.matrix import MATRIX, Bound, Fault
from bench.faults.outcome import Outcome, Outcomes, fingerprint, read
from bench.faults.table import rows_of
from tests.support.sentences import sentence


def fault(name: str, **changes: Any) -> Fault:
    return Fault(name, lambda rig: {"x": 1.0}, (Bound("x", 2.0),), **changes)


def outcome(name: str, code: str = "now", x: float = 1.0, **changes: Any) -> Outcome:
    return Outcome(code=code, fault=name, figures={"x": x}, took_s=2.0, **changes)


def test_what_was_measured_is_in_the_file_at_once_and_counts_when_it_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "faults.jsonl"
    first = Outcomes(path, "now")
    first.add(outcome("a"))
    first.add(outcome("b", problem="it broke"))
    assert [one.fault for one in read(path)] == ["a", "b"]
    again = Outcomes(path, "now", goes_on=True)
    assert again.of("a") == (outcome("a"),)
    assert (again.missing("a", 3), again.missing("c", 3)) == (2, 3)
    assert again.missing("b", 3) == 0, "what has failed stays failed"
    again.add(outcome("a"))
    assert len(read(path)) == 3


def test_trials_of_other_code_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "faults.jsonl"
    Outcomes(path, "before").add(outcome("a", code="before"))
    assert Outcomes(path, "now", goes_on=True).of("a") == ()


def test_to_begin_anew_puts_the_file_aside(tmp_path: Path) -> None:
    path = tmp_path / "faults.jsonl"
    Outcomes(path, "now").add(outcome("a"))
    assert Outcomes(path, "now").of("a") == ()
    assert not path.exists()
    assert [one.fault for one in read(tmp_path / "faults.jsonl.before")] == ["a"]


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_line_that_was_cut_off_is_no_trial(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "faults.jsonl"
    outcomes = Outcomes(path, "now")
    outcomes.add(outcome("a"))
    outcomes.add(outcome("b"))
    path.write_bytes(path.read_bytes()[:-cut])
    goes_on = Outcomes(path, "now", goes_on=True)
    goes_on.add(outcome("c"))
    assert [one.fault for one in read(path)] == (["a", "b", "c"] if cut == 1 else ["a", "c"])


def test_any_change_of_the_code_is_another_code(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "a.py").write_text("x = 1\n")
    before = fingerprint(tmp_path, ["nodes"])
    (tmp_path / "nodes" / "notes.txt").write_text("words")
    assert fingerprint(tmp_path, ["nodes"]) == before
    (tmp_path / "nodes" / "a.py").write_text("x = 2\n")
    changed = fingerprint(tmp_path, ["nodes"])
    (tmp_path / "nodes" / "a.py").rename(tmp_path / "nodes" / "b.py")
    assert len({before, changed, fingerprint(tmp_path, ["nodes"])}) == 3
    assert fingerprint() == fingerprint()


def test_trials_that_need_a_graph_each_are_taken_in_portions_and_only_those_that_are_missing() -> None:
    outcomes = Outcomes(None, "now")
    for _ in range(4):
        outcomes.add(outcome("a"))
    found = portions([fault("a", is_fresh=True), fault("b", is_fresh=True)], outcomes, trials=7, size=5)
    assert [[one.name for one in portion] for portion in found] == [[*"aaa"], [*"bbbbb"], [*"bb"]]


def test_faults_that_can_share_a_graph_take_turns_in_it_and_the_graph_of_most_comes_last() -> None:
    outcomes = Outcomes(None, "now")
    outcomes.add(outcome("a"))
    other = {"planner": 'use = "x:Y"'}
    found = portions([fault("a"), fault("c", changes=other), fault("b")], outcomes, trials=3, size=4)
    assert [[one.name for one in portion] for portion in found] == [[*"ccc"], [*"abab"], ["b"]]


def test_how_long_is_left_goes_by_what_each_fault_took() -> None:
    outcomes = Outcomes(None, "now")
    outcomes.add(outcome("a"))  # 2 s
    faults = [fault("a"), fault("b"), fault("busy", is_alone=True)]
    assert left_s(faults, outcomes, trials=3, lanes=2) == pytest.approx((2 * 2 + 3 * 2) / 2 + 3 * 2)
    assert left_s(faults[:1], Outcomes(None, "now"), trials=1, lanes=1) == lanes.USUAL_S


class Attempts:
    """Stands in for trials: who was tried beside whom."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.threads: dict[str, set[str]] = {}
        self.interrupts_after = 0
        self._lock = threading.Lock()

    def __call__(self, fault: Fault, rigs: object, code: str) -> Outcome:
        with self._lock:
            self.made.append(fault.name)
            self.threads.setdefault(fault.name, set()).add(threading.current_thread().name)
        if fault.name == "broken":
            return Outcome(code=code, fault=fault.name, problem="it broke")
        return Outcome(code=code, fault=fault.name, figures={bound.figure: bound.least for bound in fault.bounds})


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> Attempts:
    made = Attempts()
    monkeypatch.setattr(lanes, "attempt", made)
    return made


def test_all_missing_trials_are_made_and_busy_faults_come_last_and_alone(attempts: Attempts) -> None:
    outcomes = Outcomes(None, "now")
    outcomes.add(outcome("a"))
    faults = [fault("busy", is_alone=True), fault("a"), fault("b")]
    run_all(faults, outcomes, 25, 2, lambda one: None)
    assert (attempts.made.count("a"), attempts.made.count("b"), attempts.made.count("busy")) == (24, 25, 25)
    assert attempts.made[-25:] == ["busy"] * 25
    assert len(attempts.threads["busy"]) == 1


def test_after_a_failure_a_fault_is_tried_no_more(attempts: Attempts) -> None:
    run_all([fault("broken"), fault("a")], Outcomes(None, "now"), 25, 1, lambda one: None)
    assert (attempts.made.count("broken"), attempts.made.count("a")) == (1, 25)


def test_ctrl_c_loses_nothing(
    attempts: Attempts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "faults.jsonl"

    def interrupted(*arguments: Any) -> None:
        outcomes = arguments[1]
        outcomes.add(outcome(MATRIX[0].name, outcomes.code))
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run_all", interrupted)
    assert command.main(["--file", str(path)]) == 130
    assert sentence("bench.interrupted_after", number=1) in capsys.readouterr().err
    assert [one.fault for one in read(path)] == [MATRIX[0].name]
    assert command.main(["--file", str(path), "--resume"]) == 130
    assert len(read(path)) == 2


def test_a_part_of_the_matrix_leaves_the_file_of_the_whole_alone(
    attempts: Attempts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "faults.jsonl"
    path.write_text("kept\n")
    assert command.main(["--only", "crash loop", "--trials", "1", "--file", str(path)]) == 0
    assert path.read_text() == "kept\n"
    assert sentence("bench.no_table") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (["--only", "no such fault"], sentence("bench.no_such_fault")),
        (["--trials", "0"], sentence("bench.at_least_one")),
        (["--lanes", "0"], sentence("bench.at_least_one")),
    ],
)
def test_wrong_asking_is_said_and_starts_nothing(
    attempts: Attempts, asked: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(asked) == 2
    assert why in capsys.readouterr().err
    assert attempts.made == []


def test_rows_hold_the_figures_of_all_trials_and_what_failed_beside_them() -> None:
    rows = rows_of(fault("a"), [outcome("a", x=1.0, late_ms=3.0), outcome("a", x=2.0), outcome("a", problem="broke")])
    assert rows[0].values == (1.0, 2.0)
    assert rows[0].lateness_ms == 3.0
    assert [row.problem for row in rows] == ["", "broke"]
    (skipped,) = rows_of(fault("a"), [outcome("a", skipped="skipped: needs root")])
    assert skipped.is_passed


def test_the_profile_tells_the_slowest_fault_first() -> None:
    outcomes = Outcomes(None, "now")
    outcomes.add(Outcome(code="now", fault="quick", took_s=1.0, rig_s=0.5, moving_s=0.25))
    outcomes.add(Outcome(code="now", fault="slow", took_s=5.0, rig_s=1.0, moving_s=1.0))
    lines = command.profile([fault("quick"), fault("slow"), fault("never")], outcomes).splitlines()[1:]
    assert [line.split() for line in lines] == [
        ["5.00", "1.00", "1.00", "3.00", "slow"],
        ["1.00", "0.50", "0.25", "0.25", "quick"],
    ]
