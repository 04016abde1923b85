"""The pages of reference are as the code is."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("page", "written"), [("MESSAGES", "messages_page"), ("NODES", "nodes_page")])
def test_the_reference_says_what_the_code_says(page: str, written: str) -> None:
    made = runpy.run_path(str(ROOT / ".ci" / "reference.py"))
    assert made[page].read_text() == made[written](), "the code has changed: make reference"


def test_the_reference_knows_units_ranges_and_ends() -> None:
    made = runpy.run_path(str(ROOT / ".ci" / "reference.py"))
    nodes, messages = made["nodes_page"](), made["messages_page"]()
    assert "0.2 to 5 s" in nodes
    assert "| `guard/state` | [GuardState](#guardstate) | state | Guard |" in messages
