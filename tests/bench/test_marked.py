"""What a command writes into a page stands between two markers."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import marked
from tests.support.sentences import pattern

BEGIN, END = "<!-- begin -->", "<!-- end -->"


def test_a_text_replaces_what_stands_between_its_markers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    marked.write(page, BEGIN, END, "new")
    assert page.read_text() == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    page.write_text("nothing")
    with pytest.raises(ValueError, match=pattern("bench.no_markers")):
        marked.write(page, BEGIN, END, "new")
