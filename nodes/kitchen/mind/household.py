"""`Household`: where kinds of things belong, what a coffee takes, and the words of chores, from `household.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import msgspec

FRUIT = ("apple", "orange", "banana")


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A vessel that several machines fill."""

    vessel: str
    machines: tuple[str, ...]


class Household(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    belongs: dict[str, str]
    washed_to: dict[str, str]
    recipes: dict[str, Recipe]
    chores: dict[str, str]
    words: dict[str, str]


@cache
def household() -> Household:
    """What ships."""
    return msgspec.convert(tomllib.loads(Path(__file__).with_name("household.toml").read_text("utf-8")), Household)
