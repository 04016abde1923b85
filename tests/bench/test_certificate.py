"""The certificate: each requirement names code and tests that exist, and what is not shown is told in a sentence."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench import certificate
from bench.certificate import Figure, Measured, Requirement, figure_problems, page, read, read_table, static_problems
from bench.faults.matrix import MATRIX
from bench.mutants import Count, Module
from tests.support.sentences import sentence

GOOD = Requirement(
    "X-1",
    "it stops",
    ("bench/certificate.py:Requirement",),
    ("tests/bench/test_certificate.py::test_an_id_is_given_once",),
    ("H1",),
)
ROW = Figure("a fault", "held, ms")


def test_every_requirement_names_code_and_tests_that_exist() -> None:
    assert list(static_problems(read())) == []


def test_every_figure_of_a_requirement_is_a_bound_of_the_fault_matrix() -> None:
    known = {(fault.name, bound.figure) for fault in MATRIX for bound in fault.bounds}
    named = {(figure.fault, figure.figure) for one in read() for figure in one.figures}
    assert named - known == set()


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"tests": ()}, "X-1: no test"),
        ({"code": ()}, "X-1: no code"),
        ({"hazards": ()}, "X-1: it stands against nothing"),
        ({"hazards": ("H99",)}, "H99"),
        ({"code": ("bench/certificate.py:Nothing",)}, "bench/certificate.py:Nothing"),
        ({"code": ("bench/nowhere.py:main",)}, "bench/nowhere.py:main"),
        ({"tests": ("tests/bench/test_certificate.py::test_of_nothing",)}, "test_of_nothing"),
        ({"tests": ("bench/certificate.py::main",)}, "bench/certificate.py::main"),
    ],
)
def test_what_a_requirement_lacks_is_told_with_its_id(changes: dict[str, tuple[str, ...]], names: str) -> None:
    [problem] = static_problems([msgspec.structs.replace(GOOD, **changes)])
    assert problem.startswith("X-1: ")
    assert names in problem


def test_an_id_is_given_once() -> None:
    assert list(static_problems([GOOD])) == []
    assert len(list(static_problems([GOOD, GOOD]))) == 1


def test_a_figure_that_is_missing_or_out_of_its_bound_is_told(tmp_path: Path) -> None:
    path = tmp_path / "faults.md"
    assert read_table(path) == {}
    path.write_text(
        "| fault | figure | trials | worst | p99 | bound | late | passed |\n|---|---|---|---|---|---|---|---|\n"
        "| a fault | held, ms | 5 | 12.5 | 12 | 250, p99 100 | 1.2 | yes |\n"
        "| a fault | moved, mm | 5 | 4 | 4 | 0 | | **NO** |\n"
        "| another | it broke | 3 | | | | | **FAILED** |\n"
    )
    table = read_table(path)
    assert table["a fault", "held, ms"] == Measured("12.5", "250, p99 100", is_within=True)
    wanted = [
        Requirement("X-1", "a", (), (), (), (ROW, Figure("a fault", "moved, mm"), Figure("another", "held, ms"))),
        Requirement("X-2", "b", (), (), (), (ROW,)),
    ]
    ordinary = {("a fault", "held, ms"): Measured("300", "250", is_within=False)}
    found = list(figure_problems(wanted, table, ordinary))
    assert [problem.partition(":")[0] for problem in found] == ["X-1", "X-1", "X-1", "X-2"]
    assert sentence("bench.out_of_its_bound", figure="held, ms", fault="a fault", worst=300, bound=250) in found[0]
    assert "'moved, mm'" in found[1]
    assert "'another'" in found[2]


def test_a_table_that_was_never_made_is_told_where_a_figure_needs_it() -> None:
    table = {("a fault", "held, ms"): Measured("12.5", "250", is_within=True)}
    wanted = Requirement("X-1", "a", (), (), (), (ROW,))
    assert list(figure_problems([wanted], table, table)) == []
    (told,) = figure_problems([wanted], table, {})
    assert told.startswith(sentence("bench.nothing_without_rights"))
    assert list(figure_problems([GOOD], table, {})) == []


def test_the_page_leads_from_the_requirement_to_code_test_mutants_and_figures() -> None:
    wanted = Requirement("X-1", "it stops", ("a/b.py:C.d", "a/e.py:f"), ("tests/a/test_b.py::test_c",), ("H1",), (ROW,))
    count = Count("t", "abc", "2026-01-01", 1.0, 0, (Module("a.b", 10, 8, 6, 0, 1),), ())
    rows = [{("a fault", "held, ms"): Measured(worst, "250", is_within=True)} for worst in ("12.5", "13")]
    tables = dict(zip(certificate.MATRICES, rows, strict=True))
    [line] = [
        line for line in page([wanted], tables, [count], ["X-9: a sentence"]).splitlines() if line.startswith("| <a")
    ]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[1:] == [
        "it stops (H1)",
        "`a/b.py:C.d`<br>`a/e.py:f`",
        "`test_b.py::test_c`",
        "6 of 7, of older code<br>not counted",
        "a fault: held, ms **12.5 / 13** (250)",
    ]
    assert "held, ms **12.5** (250)" in page([wanted], {**tables, "without": {}}, [count], [])
    assert "- **Not shown**: X-9: a sentence" in page([wanted], tables, [count], ["X-9: a sentence"])


def test_the_page_that_is_there_has_every_requirement() -> None:
    text = certificate.PAGE.read_text()
    assert [one.id for one in read() if f"<a id='{one.id.lower()}'></a>{one.id} " not in text] == []


def test_the_command_says_by_its_code_whether_all_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(certificate, "PAGE", tmp_path / "certificate.md")
    monkeypatch.setattr(certificate, "read", lambda: (GOOD,))
    assert certificate.main(["--check"]) == 0
    assert not certificate.PAGE.exists()
    assert certificate.main([]) == 0
    assert "X-1" in certificate.PAGE.read_text()
    bad = msgspec.structs.replace(GOOD, id="X-2", figures=(Figure("no such fault", "held, ms"),))
    monkeypatch.setattr(certificate, "read", lambda: (GOOD, bad))
    capsys.readouterr()
    assert certificate.main([]) == 1
    assert capsys.readouterr().out.startswith("X-2: ")
