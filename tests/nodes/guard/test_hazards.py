"""The list of hazards names code and tests that exist, and has no row without all of its parts."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "hazards.md").read_text().splitlines()
    if line.startswith("| H")
]
CODE, TESTS = 6, 7


def test_each_hazard_has_a_number_and_all_of_its_parts() -> None:
    assert [row[0] for row in ROWS] == [f"H{number}" for number in range(1, len(ROWS) + 1)]
    assert all(len(row) == 9 and all(row) for row in ROWS)
    assert {row[4] for row in ROWS} <= {"high", "middle", "low"}


def test_the_code_of_each_hazard_exists() -> None:
    for row in ROWS:
        named = re.findall(r"`([^`]+)`", row[CODE])
        assert named, row[0]
        for place in named:
            file, _, name = place.partition(":")
            text = (ROOT / file).read_text()
            assert not name or re.search(rf"^(class|def) {name}\b", text, re.MULTILINE), place


def test_the_tests_of_each_hazard_exist() -> None:
    for row in ROWS:
        named = re.findall(r"`([^`]+)`", row[TESTS])
        assert named, row[0]
        for place in named:
            file, _, name = place.partition("::")
            found = list((ROOT / "tests").rglob(file))
            assert found, place
            assert any(f"def {name}(" in one.read_text() for one in found) or not name, place
