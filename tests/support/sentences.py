"""Sentences of the product that tests expect: one file for each area, so that a better wording costs one line."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from string import Formatter

TESTS = Path(__file__).resolve().parents[1]
FILES = sorted(TESTS.rglob("sentences.toml"))


@cache
def golden() -> dict[str, str]:
    """Every sentence by `AREA.KEY`; an area is named after the folder that its file lies in."""
    return {
        f"{path.parent.name}.{key}": text
        for path in FILES
        for key, text in tomllib.loads(path.read_text(encoding="utf-8")).items()
    }


def pieces(key: str, parts: frozenset[str]) -> list[tuple[str, str | None]]:
    """The text between the parts of a sentence, each with the part that follows it; all parts have to be given."""
    found = [(text, name) for text, name, _, _ in Formatter().parse(golden()[key])]
    expected = {name for _, name in found if name is not None}
    assert parts == expected, f"{key} has the parts {sorted(expected)}; given: {sorted(parts)}"
    return found


def sentence(key: str, /, **parts: object) -> str:
    """The sentence of a key, with its parts filled in."""
    return "".join(text + ("" if name is None else str(parts[name])) for text, name in pieces(key, frozenset(parts)))


def pattern(key: str, /, **parts: object) -> str:
    """The same as a regular expression, for `match=`: the parts are expressions."""
    found = pieces(key, frozenset(parts))
    return "".join(re.escape(text) + ("" if name is None else str(parts[name])) for text, name in found)
