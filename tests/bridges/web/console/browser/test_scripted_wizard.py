"""A scripted wizard at the operator's page, by its keys alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.teleop import play
from tests.support.pages.browsing import MARKS

pytestmark = [*MARKS, pytest.mark.long]


def test_a_scripted_wizard_clears_the_table_of_five_cups_without_a_stop(tmp_path: Path) -> None:
    found = play(1, tmp_path / "run", is_told=False)
    assert (found["cups"], found["stops"]) == (5, 0)
