"""How long the code and the pages are: what a command writes is nobody's to read word by word."""

from __future__ import annotations

from bench.rooms import words_of

PAGE = """# Limits

Three words here.

<!-- table: made by python -m nodes.guard.table -->
| mode | output |
|---|---|
<!-- end of table -->
| by | hand |
"""


def test_the_words_of_a_page_are_counted_without_the_tables_that_a_command_writes() -> None:
    assert words_of("docs/guard.md", PAGE) == 10
    assert words_of("docs/results/faults.md", PAGE.partition("<!--")[0] + "| 1 | 2 |\n") == 5
    assert words_of("docs/performance.md", "One.\n| made | row |\n<!-- by hand: kept -->\n| own | row |\n") == 11
