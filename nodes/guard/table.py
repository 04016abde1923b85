"""The guard's transition table as Markdown for docs/guard.md: `python -m nodes.guard.table` rewrites it there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

from nodes.guard.modes import TRANSITIONS, Event
from nodes.msgs import GuardMode

BEGIN, END = "<!-- table: begin, written by python -m nodes.guard.table -->", "<!-- table: end -->"


def markdown() -> str:
    """The table: one row per mode, one column per event; an empty cell means that the event changes nothing."""
    events, modes = get_args(Event), get_args(GuardMode)
    rows = ["| mode | " + " | ".join(events) + " |", "|---" * (len(events) + 1) + "|"]
    rows += [
        f"| **{mode}** | " + " | ".join(TRANSITIONS.get((mode, event), "") for event in events) + " |" for mode in modes
    ]
    return "\n".join(rows)


def with_table(text: str) -> str:
    """The text of the page with the table replaced by the present one."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{markdown()}\n{END}{after}"


if __name__ == "__main__":
    page = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/guard.md")
    page.write_text(with_table(page.read_text()))
