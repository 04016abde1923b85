"""`cue`: the classes of words of `cues.toml`, by which parts of utterances and questions are told apart."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import msgspec


@cache
def _file() -> dict[str, dict[str, str]]:
    text = Path(__file__).with_name("cues.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, dict[str, str]])


@cache
def cue(section: str, name: str) -> re.Pattern[str]:
    """The class of that name; raises KeyError where the file has none."""
    return re.compile(_file()[section][name])
