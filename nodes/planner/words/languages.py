"""In which language an utterance is, as far as needed to say that orders are understood in English only."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from functools import cache
from pathlib import Path

import msgspec

from nodes.planner.words.lexicon import lexicon_file

ENGLISH_ONLY = "I understand orders in English only."
PLAIN = str.maketrans({"ı": "i", "ł": "l", "ø": "o", "ß": "ss"})
"""Letters that are no other letter with an accent."""
LEAST_SHARE = 0.5
"""Of the words of an utterance, the part that must be small words of a language before it is taken for that one."""


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One language of the data file."""

    words: frozenset[str]
    say: str


@cache
def languages() -> dict[str, Language]:
    """The data file beside this module."""
    text = Path(__file__).with_name("languages.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Language])


@cache
def english_words() -> frozenset[str]:
    """Every word of the lexicon."""
    data = lexicon_file()
    phrases = [
        phrase for group in (data.words, data.verbs, data.relations) for found in group.values() for phrase in found
    ]
    phrases += [*data.contractions, *data.synonyms, *data.groups]
    return frozenset(word for phrase in phrases for word in phrase.split())


def is_dark(text: str, known: frozenset[str] = frozenset()) -> bool:
    """Whether most of its words are none that the lexicon or the scene has."""
    words = re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)*", text.lower().replace("’", "'"))
    return sum(word in english_words() or word in known for word in words) * 2 < len(words)


def in_another_language(text: str, known: frozenset[str] = frozenset()) -> str:
    """What to answer an utterance that is not in English, or ""; `known` are words of the scene and of the skills."""
    bare = "".join(
        one for one in unicodedata.normalize("NFKD", text.lower().translate(PLAIN)) if not unicodedata.combining(one)
    )
    words = "".join(one if one.isalpha() else " " for one in bare).split()
    if not words:
        return ""
    if all(not word.isascii() for word in words):
        return ENGLISH_ONLY  # another script
    english = sum(word in english_words() or word in known for word in words) / len(words)
    shares = {name: sum(word in one.words for word in words) / len(words) for name, one in languages().items()}
    best = max(shares, key=lambda name: shares[name])
    return languages()[best].say if shares[best] >= LEAST_SHARE and shares[best] > english else ""
