"""A table as Parquet, each column of one type; the only file of the pages that knows `pyarrow`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from runtime.errors import UserError
from runtime.extras import install

TEXT = ("value",)
"""Columns whose cells may be numbers and words: text in all rows."""


def check_parquet() -> None:
    """Raise UserError where pyarrow is not installed."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as problem:
        raise UserError(f"--parquet needs pyarrow: {install('nodes[export]')}; CSV needs nothing") from problem


def write_parquet(rows: Sequence[Mapping[str, str | int | float]], columns: Sequence[str], path: Path) -> None:
    """Write a table; an empty cell is null. Raises OSError."""
    import pyarrow
    import pyarrow.parquet

    table = {}
    for name in columns:
        cells = [None if row[name] == "" else row[name] for row in rows]
        numbers = [cell for cell in cells if cell is not None]
        is_number = numbers and name not in TEXT and all(isinstance(cell, int | float) for cell in numbers)
        if not is_number:
            cells = [None if cell is None else str(cell) for cell in cells]
        kind = None if is_number else pyarrow.string()
        table[name] = pyarrow.array(cells, type=kind)
    pyarrow.parquet.write_table(pyarrow.table(table), path)
