"""Whether words may object to what the robot does, without a grammar: who plans and who acts ask the same question."""

from __future__ import annotations

from collections.abc import Iterable

from nodes.interrupts.intent import understand
from nodes.interrupts.phrase_matcher import clipped, words_of

BARS = ("no", "not", "wait", "stop", "dont", "don't", "sorry", "oh")
"""First words after which the rest may object, though the reflex takes it for an order."""


def may_object(text: str, names: Iterable[str] = ()) -> bool:
    """Whether somebody may object, in any of the reflex's languages, or cries short words that nobody knows.

    `names` are what things in sight are called: who says one of them is understood by others.
    """
    first, meaning = text.lower().replace(",", " ").split()[:1], understand(text)
    if (first and first[0] in BARS) or meaning.wants == "amend" or meaning.talk == "denial":
        return True
    return meaning.is_unclear and not {word for one in names for word in words_of(one)} & {*words_of(clipped(text))}
