"""`clean`: words that came from outside, fit to be shown and said."""

from __future__ import annotations

from unicodedata import category

LONGEST_TEXT = 4000


def clean(text: str) -> str:
    """One line of words that any terminal may show: what a program or a server writes is data, never a command."""
    shown = (letter if category(letter) not in ("Cc", "Cs") else " " for letter in text[: 4 * LONGEST_TEXT])
    return " ".join("".join(shown).split())[:LONGEST_TEXT]
