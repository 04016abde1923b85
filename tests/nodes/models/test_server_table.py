"""docs/models.md is as it is measured: what each seat does about each behaviour of servers."""

from __future__ import annotations

import pytest

from tests.nodes.models.server_table import REALTIME, all_rows, lines_of, measured, on_the_page, table

pytestmark = pytest.mark.processes

SAMPLE = 20
"""Every so many-th row; the others are measured in `make long`."""


def test_a_sample_of_the_table_is_as_it_is_measured() -> None:
    page = lines_of(on_the_page())
    assert set(page) == {"behaviour", *(row.name for row in all_rows()), *(row.name for row in REALTIME)}, "make models"
    rows = [
        row
        for row in all_rows()[::SAMPLE]
        if not row.ends_batch and not row.stream and "gives none" not in page[row.name]
    ]
    for name, line in measured(rows, deadline_s=20.0, realtime=False).items():
        cells = line.split(" | ")
        assert cells[:5] == page[name].split(" | ")[:5], "the code has changed: make models"


@pytest.mark.long
@pytest.mark.alone
def test_the_whole_table_is_as_it_is_measured() -> None:
    assert table(measured(all_rows(), REALTIME)).splitlines() == on_the_page().splitlines()
