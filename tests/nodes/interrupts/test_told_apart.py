"""Utterances that tell each rule of understanding from the rule next to it: what they are taken for.

A search over small changes of the rules found them: each line of told_apart.tsv means something else under at least
one. So most are nothing that a person says, and their meanings are no goal in themselves. Whoever changes a rule on
purpose writes them anew, and looks at what has changed: python -m tests.nodes.interrupts.test_told_apart
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.interrupts.intent import beside_stop, says_yes, understand
from tests.nodes.interrupts.test_meanings import written

TABLE = Path(__file__).with_name("told_apart.tsv")


def taken_for(text: str) -> str:
    """The meaning, what can be asked of it, and what is said beside a stop; "=" where that is all."""
    meaning, beside = understand(text), beside_stop(text)
    found = {"yes": says_yes(text), "unclear": meaning.is_unclear, "lifts": meaning.lifts_stop}
    asked = " ".join(name for name in found if found[name])
    return f"{written(meaning)} | {asked}\t{'=' if beside == text else beside}"


def rows() -> list[tuple[str, str]]:
    """Each utterance, and what it was taken for when the table was written."""
    lines = TABLE.read_text("utf-8").splitlines()
    return [(text, meaning) for text, _, meaning in (line.partition("\t") for line in lines)]


@pytest.mark.parametrize("part", range(8))
def test_no_utterance_of_the_table_is_taken_for_something_else(part: int) -> None:
    changed = [(text, was, now) for text, was in rows()[part::8] if (now := taken_for(text)) != was]
    assert changed == []


if __name__ == "__main__":
    TABLE.write_text("".join(f"{text}\t{taken_for(text)}\n" for text, _ in rows()), "utf-8")
