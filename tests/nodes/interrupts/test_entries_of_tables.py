"""For each of the newer entries of the tables a line that means something else without it.

entries.txt has the lines and what they mean; they are no goal in themselves. Whoever changes the tables on purpose
writes the meanings anew, and looks at what has changed: python -m tests.nodes.interrupts.test_entries_of_tables
"""

from __future__ import annotations

from pathlib import Path

from nodes.interrupts.intent import understand
from tests.nodes.interrupts.test_meanings import written

TABLE = Path(__file__).with_name("entries.txt")


def pairs() -> list[tuple[str, str]]:
    """Each line, and what it meant when it was written."""
    return [
        (text, meaning) for text, _, meaning in (one.partition(" | ") for one in TABLE.read_text("utf-8").splitlines())
    ]


def test_a_line_for_each_entry_means_what_it_did() -> None:
    assert [(text, written(understand(text))) for text, _ in pairs()] == pairs()


if __name__ == "__main__":
    TABLE.write_text("".join(f"{text} | {written(understand(text))}\n" for text, _ in pairs()), "utf-8")
