"""What is said, piece by piece: sentences that can be spoken one after the other, and which words of one were heard."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

LONGEST_TEXT = 2000
"""Characters: about two minutes of speech. What is longer is no utterance, and its rest is not spoken."""
LONGEST_PIECE = 300
WORDS_PER_S = 2.8
"""How fast English is spoken, for a loudspeaker that only takes the time of it."""

_NO_SPACES = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # scripts that put none between words: a character counts as one
_WORD = re.compile(rf"[{_NO_SPACES}]|[^\s{_NO_SPACES}]+")
_END = re.compile(r"[.!?…]+[\"'”’»)\]]*\s+|[。！？]+[\"'”’」』）]*\s*")
_TITLES = frozenset(("Dr.", "Mr.", "Mrs.", "Ms.", "Prof.", "St."))
_UNSPEAKABLE = frozenset(("Cc", "Cs", "Co"))  # control characters, half characters, private ones


def pieces_of(text: str) -> tuple[list[str], bool]:
    """The sentences of a text, none longer than LONGEST_PIECE, and whether that is all of it."""
    head = text[: LONGEST_TEXT + 1]
    is_whole = len(head) <= LONGEST_TEXT
    if not is_whole:
        head = head[:LONGEST_TEXT]
        head = head[: _last_gap(head)]
    found: list[str] = []
    for line in head.splitlines():
        for sentence in _sentences(_speakable(line)):
            found += _short_enough(sentence)
    return found, is_whole


def heard_words(piece: str, share: float) -> str:
    """The words of a piece that were heard to their end when that share of its sound, 0 to 1, was played."""
    characters = share * len(piece)
    end = 0
    for word in _WORD.finditer(piece):
        if word.end() > characters:
            break
        end = word.end()
    return piece[:end]


def estimated_s(piece: str) -> float:
    """About how long it takes to say it."""
    return len(_WORD.findall(piece)) / WORDS_PER_S


def _speakable(line: str) -> str:
    return " ".join("".join(" " if unicodedata.category(c) in _UNSPEAKABLE else c for c in line).split())


def _sentences(line: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(line):
        sentence = line[start : end.end()].strip()
        if line[end.end() : end.end() + 1].islower() or sentence.rpartition(" ")[2] in _TITLES:
            continue  # "e.g. the cup", "Dr. No"
        yield sentence
        start = end.end()
    if rest := line[start:].strip():
        yield rest


def _short_enough(sentence: str) -> Iterator[str]:
    while len(sentence) > LONGEST_PIECE:
        end = _last_gap(sentence[:LONGEST_PIECE])
        yield sentence[:end].strip()
        sentence = sentence[end:].strip()
    if sentence:
        yield sentence


def _last_gap(text: str) -> int:
    """Where best to part a text near its end: after a comma or the like, else at a space, else at the very end."""
    for gap in (", ", "; ", ": ", " "):
        at = text.rfind(gap)
        if at > len(text) // 2:
            return at + len(gap)
    return len(text)
