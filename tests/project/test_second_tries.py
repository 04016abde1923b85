"""Flakiness is measured: a run in which too many tests with processes needed another try fails, and says how many."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.wheel.wheels import ROOT

pytestmark = pytest.mark.processes

TESTS = """
import pathlib
import pytest

@pytest.mark.processes
@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_passes_at_the_second_try_if_told_so(name):
    told = pathlib.Path(__file__).with_name(name)
    if told.exists():
        told.unlink()
        raise AssertionError
"""


@pytest.mark.parametrize(
    ("flaky", "code", "workers"), [("", 0, ()), ("a", 0, ()), ("ab", 1, ()), ("ab", 1, ("-n", "2"))]
)
def test_a_run_with_too_many_second_tries_fails(
    tmp_path: Path, flaky: str, code: int, workers: tuple[str, ...]
) -> None:
    conftest = (ROOT / "tests" / "conftest.py").read_text()
    (tmp_path / "conftest.py").write_text(conftest.replace("RERUN_AFTER_S = 1", "RERUN_AFTER_S = 0"))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = processes: as ours\n")
    (tmp_path / "test_three.py").write_text(TESTS)
    for name in flaky:
        (tmp_path / name).touch()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert f"{len(flaky)} of 3 tests with processes needed another try" in ran.stdout


PARSES = """
import ast
import gc

class Left:
    def __init__(self):
        self.itself = self

    def __del__(self):
        ast.parse("rows = [0, 1, 2]")
        Left()

def test_fails():
    gc.set_threshold(20)
    Left()
    raise AssertionError("as it shall")
"""


def test_a_failure_is_reported_also_where_what_is_left_behind_parses(tmp_path: Path) -> None:
    """As the traceback of a finaliser that complains does, in the midst of the report."""
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "test_one.py").write_text(PARSES + "\nrows = [0, 1, 2]" * 500)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, "as it shall" in ran.stdout) == (1, True), ran.stdout[-3000:] + ran.stderr
