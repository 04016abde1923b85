"""TOML files that people write by hand: read into types, with mistakes told as sentences that say where and what to do."""

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

_AT = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_NAMED = re.compile(r".*field `(.*)`")
_LINE = re.compile(r"(.*) \(at line (\d+), column (\d+)\)")
_WORDS = {str: 'a text in quotes: {0} = "..."', bool: "true or false", int: "a whole number", float: "a number"}


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file. Raises UserError in a sentence that names the file and, where it is no TOML, the line."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as problem:
        raise UserError(f"{path}: there is no such file") from problem
    except OSError as problem:
        raise UserError(f"{path}: cannot be read: {problem.strerror or problem}") from problem
    except UnicodeDecodeError as problem:
        raise UserError(f"{path}: byte {problem.start} is no UTF-8; expected a text file in UTF-8") from problem
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise UserError(f"{path}{_syntax(str(problem), text)}") from problem


def _syntax(problem: str, text: str) -> str:
    """What is no TOML, with its line where the reader of TOML names one."""
    lines = text.splitlines()
    if (found := _LINE.fullmatch(problem)) is None or not 0 < int(found[2]) <= len(lines):
        return f": is no TOML: {problem}"
    shown = lines[int(found[2]) - 1].strip()[:60]
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
        return f"{place.table()} has a key that it does not know ({what}); known: {choices(place.keys())}"
    if named and "unknown" in what:
        return _unknown(named[1], place, kind)
    if named and "missing" in what:
        return f"{place.table()} has no {named[1]}; expected {_expected(_field(place.kind, named[1]), named[1])}"
    return f"{place.said()}; expected {_expected(place.kind, place.name)}"


def _unknown(key: str, place: _Place, root: Any) -> str:
    """A key that is not known there: one that is meant for the top of the file, misspelt, or neither."""
    known = place.keys()
    if place.is_inside and key in _keys(root):
        where = f"[{key}] or [[{key}]]" if isinstance(place.value.get(key), dict | list) else "the top of the file"
        return f"{place.table()} has the key {key!r}, which belongs to {where}: above the first line in brackets"
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
        now = "" if self.value is None else f" is {self.value if isinstance(self.value, bool) else self.value!r}"
        if isinstance(self.value, dict):
            now = " is one table"
        if not self._is_leaf:
            return f"{self.table()}{now}"
        before = f"{', '.join(self._tables)}: " if self._tables else ""
        return f"{before}{self.name}{now or ' is not as it should be'}"


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
