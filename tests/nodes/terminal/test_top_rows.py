"""What `top` shows on terminals of different widths."""

import pytest

from nodes.terminal.top_rows import COLUMNS, fitting

ROWS = [
    ("interrupt_records", "robot", "15972", "running", "49.98/50, 4.99/5", "20.10", "0", "86.4", "0",
     "overwritten 380, queue full 3", "-", "0", "19.4", "75"),
    ("planner", "planner", "15966", "running", "0.5/0.5", "2.91", "0", "41.1", "2", "-", "-", "0", "1.1", "70"),
]  # fmt: skip


def test_a_wide_terminal_shows_all_columns() -> None:
    assert fitting(ROWS, 200) == COLUMNS


@pytest.mark.parametrize("width", [40, 80, 100, 120, 140])
def test_a_narrow_terminal_shows_fewer_columns_and_no_word_cut_short(width: int) -> None:
    shown = fitting(ROWS, width)
    assert list(shown) == [column for column in COLUMNS if column in shown]
    assert {"node", "rate/target Hz", "dropped", "CPU %"} <= set(shown)
    assert set(shown) <= set(fitting(ROWS, width + 20))


def test_80_columns_show_how_late_a_node_is_and_how_old_its_inputs() -> None:
    assert {"late p99 ms", "input age ms"} <= set(fitting(ROWS, 80))


def test_no_row_at_all_has_columns_too() -> None:
    assert fitting([], 80)
