"""TOML files that people write by hand: read into types, with mistakes as sentences that say where and what to do."""

from __future__ import annotations

import difflib
import re
import tomllib
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from runtime.errors import UserError, choices

T = TypeVar("T")

MOST_SHOWN = 80
"""Characters of a value or a line that a sentence repeats."""

_AT = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_NAMED = re.compile(r".*field `(.*)`")
_LINE = re.compile(r"(.*) \(at line (\d+), column (\d+)\)")
_WORDS = {str: 'a text in quotes: {0} = "..."', bool: "true or false", int: "a whole number", float: "a number"}


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file. Raises UserError in a sentence that names the file and, where it is no TOML, the line."""
    return parse_toml(read_text(path), path)


def read_text(path: Path) -> str:
    """What stands in a file. Raises UserError in a sentence."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as problem:
        raise UserError(f"{path}: there is no such file") from problem
    except OSError as problem:
        raise UserError(f"{path}: cannot be read: {problem.strerror or problem}") from problem
    except UnicodeDecodeError as problem:
        raise UserError(f"{path}: byte {problem.start} is no UTF-8; expected a text file in UTF-8") from problem


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """The tables of what stands in that file. Raises UserError with the line that is no TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise UserError(f"{path}{_syntax(str(problem), text)}") from problem


def _syntax(problem: str, text: str) -> str:
    """What is no TOML, with its line where the reader of TOML names one."""
    lines = text.splitlines()
    if (found := _LINE.fullmatch(problem)) is None or not 0 < int(found[2]) <= len(lines):
        return f": is no TOML: {problem}"
    shown = lines[int(found[2]) - 1].strip()[:MOST_SHOWN]
    return f", line {found[2]}, column {found[3]}: is no TOML: {found[1]}: {shown}"


def convert(tables: Any, kind: type[T], where: str) -> T:
    """These tables as that type. Raises UserError that begins with `where` and names table and key."""
    try:
        return msgspec.convert(tables, kind)
    except msgspec.ValidationError as problem:
        raise UserError(f"{where}: {sentence(str(problem), tables, kind)}") from problem


def sentence(problem: str, tables: Any, kind: Any) -> str:
    """What msgspec says of these tables, as somebody says it who has the file open."""
    found = _AT.fullmatch(problem)
    assert found is not None, "it matches anything"
    place = _Place(tables, kind)
    for name, number in _STEP.findall(found["path"] or ""):
        place.enter(name, number)
    what, named = found["what"], _NAMED.fullmatch(found["what"])
    if found["key"]:
        return f"{place.leaf()} has an unknown key{_quoted(what)}; known: {choices(place.keys())}"
    if named and "unknown" in what:
        return _unknown(named[1], place, kind)
    if named and "missing" in what:
        return f"{place.table()} has no {named[1]}; expected {_expected(_field(place.kind, named[1]), named[1])}"
    return f"{place.said()}; expected {_expected(place.kind, place.name)}"


def _unknown(key: str, place: _Place, root: Any) -> str:
    """A key that is not known there: one that is meant for the top of the file, misspelt, or neither."""
    known = place.keys()
    if place.is_inside and key in _keys(root):
        return f"{place.table()} has the key {key!r}, which belongs to the top of the file: above all lines in brackets"
    near = difflib.get_close_matches(key, known, 1)
    return (
        f"{place.table()} has the unknown key {key!r}; "
        f"{f'did you mean {near[0]!r}? ' if near else ''}known: {choices(known)}"
    )


class _Place:
    """Where in the file a message points to: its value, its type, and how people call it."""

    def __init__(self, tables: Any, kind: Any) -> None:
        self.value, self.kind, self.name = tables, kind, ""
        self._tables: list[str] = []  # those on the way
        self._is_leaf = False

    @property
    def is_inside(self) -> bool:
        """Whether this is a table of the file, and not its top."""
        return bool(self._tables)

    def enter(self, name: str, number: str) -> None:
        """One step further."""
        if name:
            self.kind = _field(self.kind, name)
            self.value = self.value.get(name) if isinstance(self.value, Mapping) else None
            self.name = name
            self._is_leaf = not _is_table(self.kind)
            if not self._is_leaf:
                self._tables.append(f"[{name}]")
        elif number.isdecimal():
            self.kind = _element(self.kind)
            is_list = isinstance(self.value, list | tuple) and int(number) < len(self.value)
            self.value = self.value[int(number)] if is_list else None
            if _is_table(self.kind):
                known = self.value.get("id") if isinstance(self.value, dict) else None
                self._tables[-1:] = [f"[[{self.name}]] {known or int(number) + 1}"]
        else:
            self.kind, self.value = _element(self.kind), None

    def keys(self) -> list[str]:
        """What may stand there."""
        return _keys(self.kind)

    def table(self) -> str:
        """The table that is meant."""
        return ", ".join(self._tables) or "the file"

    def said(self) -> str:
        """What stands there."""
        now = " has a value that does not fit" if self.value is None else f" is {_shown(self.value)}"
        return f"{self.leaf() if self._is_leaf else self.table()}{now}"

    def leaf(self) -> str:
        """The key that is meant, with its table."""
        return f"{', '.join(self._tables)}: {self.name}" if self._tables else self.name


def _shown(value: Any) -> str:
    """As it may stand in the file."""
    if isinstance(value, dict):
        return "a table"
    return (str(value).lower() if isinstance(value, bool) else repr(value))[:MOST_SHOWN]


def _quoted(what: str) -> str:
    """What a message has in quotes, after a space."""
    found = re.search(r"'.*'", what)
    return f" {found[0]}" if found else ""


def _bare(kind: Any) -> Any:
    """The type, of one that may be None as well."""
    if get_origin(kind) in (Union, types.UnionType):
        return next(one for one in get_args(kind) if one is not type(None))
    return kind


def _keys(kind: Any) -> list[str]:
    kind = _bare(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [field.name for field in msgspec.structs.fields(kind)]
    return [str(one) for one in get_args(get_args(kind)[0])] if get_origin(kind) is dict else []


def _field(kind: Any, name: str) -> Any:
    kind = _bare(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return next((_bare(one.type) for one in msgspec.structs.fields(kind) if one.name == name), None)
    return None


def _element(kind: Any) -> Any:
    arguments = get_args(kind)
    return _bare(arguments[-1] if get_origin(kind) is dict else arguments[0]) if arguments else None


def _is_table(kind: Any) -> bool:
    """Whether it stands under a line in brackets."""
    kind = _element(kind) if get_origin(kind) in (tuple, list) else kind
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _expected(kind: Any, name: str) -> str:
    """What ought to stand under that name."""
    if get_origin(kind) is Literal:
        return " or ".join(f'"{one}"' for one in get_args(kind))
    if get_origin(kind) in (tuple, list):
        return f"one or more tables [[{name}]]" if _is_table(kind) else f'a list in brackets: {name} = ["..."]'
    if _is_table(kind):
        return f"a table [{name}] with {choices(_keys(kind))}"
    if get_origin(kind) is dict:
        return f'names with a value each: {name} = {{ name = "..." }}'
    return _WORDS.get(kind, "something else").format(name)
