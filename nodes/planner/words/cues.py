"""The classes of words of `cues.toml`, by which parts of utterances and questions are told apart."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import msgspec


@cache
def cues(section: str) -> dict[str, re.Pattern[str]]:
    """All classes of a section by their names; raises KeyError where the file has none."""
    text = Path(__file__).with_name("cues.toml").read_text("utf-8")
    found = msgspec.convert(tomllib.loads(text), dict[str, dict[str, str]])[section]
    return {name: re.compile(words) for name, words in found.items()}


def cues_in(section: str, said: str) -> frozenset[str]:
    """The classes of which a word or a phrase stands there."""
    return frozenset(name for name, words in cues(section).items() if words.search(said))
