"""Whether what was heard is the robot's own voice: a pure decision over words."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r"\w+")
_SHARE = 0.7  # of the words heard; a recogniser gets some of them wrong
FEWEST_WORDS = 3
"""Fewer are never taken for an echo: a "Stop!" beside "I stop at the table" is a person's until there is doubt."""


def is_echo(heard: str, spoken: Iterable[str]) -> bool:
    """Whether most of the words heard stand, in their order, in something that the robot has just said."""
    words = _words(heard)
    if len(words) < FEWEST_WORDS:
        return False
    return any(_common(words, _words(text)) >= _SHARE * len(words) for text in spoken)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _common(one: list[str], other: list[str]) -> int:
    """How many words both have in the same order: the longest common subsequence."""
    row = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for place, candidate in enumerate(other, 1):
            here = row[place]
            row[place] = before + 1 if word == candidate else max(row[place], row[place - 1])
            before = here
    return row[-1]
