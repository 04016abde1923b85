"""`columns`: a table for the terminal, its cells under each other; `or_dash`: what a cell says of a number."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def columns(rows: Sequence[Sequence[str]], left: Collection[str]) -> list[str]:
    """Rows under each other, the first one their titles; those of the columns in `left` begin there."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.ljust(width) if title in left else cell.rjust(width)
            for cell, width, title in zip(row, widths, rows[0], strict=True)
        )
        for row in rows
    )
    return [line.rstrip() for line in lines]


def or_dash(value: float | None, form: str = ".3f") -> str:
    """A number in that form; "-" where there is none."""
    return "-" if value is None else format(value, form)
