"""TOML files that people write: read into types, with each mistake as a sentence that says where it is and what to do.

A table is a `Table`; a field's `msgspec.Meta(description=...)` says what is expected there. `__post_init__` of a table
raises ValueError with a sentence that continues after the table's name.
"""

from __future__ import annotations

import codecs
import io
import re
import sys
import tomllib
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from runtime.errors import UserError, choices, nearest

T = TypeVar("T")

MOST_SHOWN = 80
"""Most characters of a value or a line that a sentence repeats."""

_AT = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_NAMED = re.compile(r".*field `(.*)`")
_LINE = re.compile(r"(.*) \(at line (\d+), column (\d+)\)")
_MARKS = {codecs.BOM_UTF8: "UTF-8", codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
_OTHER = "something else"
_WORDS = {str: 'a text in quotes: {0} = "..."', bool: "true or false", int: "a whole number", float: "a number"}


Seconds = Annotated[float, msgspec.Meta(gt=0, le=sys.float_info.max, description="a positive number of seconds")]


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a file; an unknown key is an error."""


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file. Raises UserError with the file's name and, where it is no TOML, the line."""
    return parse_toml(read_text(path), path)


def read_text(path: Path) -> str:
    """The text of a file that a person wrote. Raises UserError where it cannot be read, or an editor marked it."""
    try:
        data = path.read_bytes()
        for mark, name in _MARKS.items():
            if data.startswith(mark):
                raise UserError(
                    f"{path}: begins with a byte order mark (BOM) of {name}; save it as UTF-8 without one", code="P001"
                )
        return io.StringIO(data.decode("utf-8"), None).getvalue()  # each end of a line as \n
    except FileNotFoundError as problem:
        raise UserError(f"{path}: there is no such file", code="P001") from problem
    except OSError as problem:
        raise UserError(f"{path}: cannot be read: {problem.strerror or problem}", code="P001") from problem
    except UnicodeDecodeError as problem:
        raise UserError(
            f"{path}: byte {problem.start} is no UTF-8; expected a text file in UTF-8", code="P001"
        ) from problem


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """The tables in a file's text. Raises UserError with the line that is no TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise UserError(f"{path}{_syntax(str(problem), text)}", code="P002") from problem


def _syntax(problem: str, text: str) -> str:
    """What is no TOML, with its line where the reader of TOML names one."""
    lines = text.splitlines()
    if (found := _LINE.fullmatch(problem)) is None or not 0 < int(found[2]) <= len(lines):
        return f": is no TOML: {problem}"
    shown = lines[int(found[2]) - 1].strip()[:MOST_SHOWN]
    return f", line {found[2]}, column {found[3]}: is no TOML: {found[1]}: {shown}"


def convert(tables: Any, kind: type[T], where: str = "", table: str = "") -> T:
    """These tables, or one of them, as this type. Raises UserError that names `where`, the table and the key."""
    try:
        return msgspec.convert(tables, kind)
    except msgspec.ValidationError as problem:
        told = sentence(problem, tables, kind, table)
        code = "P003" if (found := _AT.fullmatch(str(problem))) and "unknown field" in found["what"] else "P004"
        raise UserError(f"{where}: {told}" if where else told, code=code) from problem


def sentence(problem: msgspec.ValidationError, tables: Any, kind: Any, table: str = "") -> str:
    """msgspec's message about these tables, in words for a person who has the file open."""
    found = _AT.fullmatch(str(problem))
    assert found is not None, "it matches anything"
    place = _Place(tables, kind, table)
    for name, number in _STEP.findall(found["path"] or ""):
        place.enter(name, number)
    what, named = found["what"], _NAMED.fullmatch(found["what"])
    if isinstance(problem.__cause__, ValueError):  # of a table's own `__post_init__`
        return f"{place.table()} {what}"
    if found["key"]:
        return place.wrong_name()
    if named and "unknown" in what:
        return _unknown(named[1], place, kind)
    if named and "missing" in what:
        return f"{place.table()} has no {named[1]}; expected {_expected(_field(place.kind, named[1]), named[1])}"
    return f"{place.said()}; expected {_expected(place.kind, place.path)}"


def expected(problem: msgspec.ValidationError, kind: Any, name: str) -> str:
    """The end of a sentence about one value: "; expected a whole number", or msgspec's message about a part of it."""
    words = _expected(kind, name)
    return f": {problem}" if " - at `" in str(problem) or words == _OTHER else f"; expected {words}"


_OTHERS_SAY = {
    "hz": ("rate", "rate_hz", "frequency", "freq", "rates"),
    "use": ("class", "type", "executable", "plugin", "package"),
    "params": ("parameters", "args", "arguments", "config"),
    "remap": ("remappings", "rename"),
    "restart": ("respawn",),
    "latency": ("delay",),
    "process": ("container", "group"),
}
"""What launch files of other systems call the same key."""


def key_for(name: str) -> str:
    """The key of a node's table that other systems call so; "" where there is none."""
    return next((key for key, words in _OTHERS_SAY.items() if name.lower() in words), "")


def guess(name: str, known: Iterable[str]) -> str:
    """The known names, with the one that was probably meant: "did you mean 'a'? known: a, b"."""
    names = list(known)
    near = key if (key := key_for(name)) in names else nearest(name, names)
    return f"{f'did you mean {near!r}? ' if near else ''}known: {choices(names)}"


def _unknown(key: str, place: _Place, root: Any) -> str:
    """A key that is not known there: one that is meant for the top of the file, misspelt, or neither."""
    if place.is_inside and key in _keys(root):
        return f"{place.table()} has the key {key!r}, which belongs to the top of the file: above all lines in brackets"
    return f"{place.table()} has the unknown key {key!r}; {guess(key, place.keys())}"


class _Place:
    """Where in the file a message points to: its value, its type, and how people call it."""

    def __init__(self, tables: Any, kind: Any, table: str) -> None:
        self.value, self.kind, self.name = tables, kind, table
        self._tables: list[str] = [f"[{table}]"] if table else []  # those on the way
        self._is_leaf = False

    @property
    def is_inside(self) -> bool:
        """Whether this is a table of the file, and not its top."""
        return bool(self._tables)

    @property
    def path(self) -> str:
        """The name of a table as it stands in brackets, or of a key."""
        return self.name if self._is_leaf or not self._tables else self._tables[-1].strip("[]")

    def enter(self, name: str, number: str) -> None:
        """One step further."""
        if name:
            self._enter_key(name)
        elif number.isdecimal():
            self._enter_item(int(number))
        else:
            self._enter_entry()

    def _enter_key(self, name: str) -> None:
        self.kind = _field(self.kind, name)
        self.value = self.value.get(name) if isinstance(self.value, Mapping) else None
        self._name(name)

    def _enter_item(self, number: int) -> None:
        item = _element(self.kind)
        if not _is_table(item):
            if _described(self.kind) or not isinstance(self.value, list | tuple):
                return  # the list is told as a whole
            self.kind, self.value = item, self.value[number] if number < len(self.value) else None
            return
        self.kind = item
        is_list = isinstance(self.value, list | tuple) and number < len(self.value)
        self.value = self.value[number] if is_list else None
        known = self.value.get("id") if isinstance(self.value, dict) else None
        self._tables[-1:] = [f"[[{self.path}]] {known or number + 1}"]

    def _enter_entry(self) -> None:
        """The entry of a table of names that does not fit: msgspec does not say which."""
        self.kind, entries = _element(self.kind), self.value
        self.value = None
        for name, value in entries.items() if isinstance(entries, Mapping) else ():
            try:
                msgspec.convert(value, self.kind)
            except msgspec.ValidationError:
                self.value = value
                self._name(str(name), is_entry=True)
                return

    def _name(self, name: str, *, is_entry: bool = False) -> None:
        self._is_leaf = not _is_table(self.kind)
        if self._is_leaf:
            self.name = f"{self.name}.{name}" if is_entry and self.name else name
            return
        self.name = name
        if self._tables and not self._tables[-1].startswith("[["):
            self._tables[-1] = f"{self._tables[-1][:-1]}.{name}]"
        else:
            self._tables.append(f"[{name}]")

    def wrong_name(self) -> str:
        """The name in a table of names that cannot be one."""
        names, kind = list(self.value or ()), get_args(_bare(self.kind))[0]
        wrong = next((name for name in names if not _fits(name, kind)), "")
        if known := _keys(self.kind):
            return f"{self.leaf()} has the unknown key {wrong!r}; {guess(wrong, known)}"
        return f"{self.leaf()} has the name {wrong!r}; expected {_expected(kind, wrong)}"

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
        if not self._is_leaf:
            return self.table()
        table = ", ".join(self._tables)
        return f"{table}{'' if table.endswith(']') else ':'} {self.name}" if table else self.name


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _shown(value: Any) -> str:
    """As it may stand in the file."""
    if isinstance(value, dict):
        return "a table"
    return (str(value).lower() if isinstance(value, bool) else repr(value))[:MOST_SHOWN]


def _bare(kind: Any) -> Any:
    """The type, of one that has marks or may be None as well."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        return _bare(next(one for one in get_args(kind) if one is not type(None)))
    return kind


def _described(kind: Any) -> str:
    """What the type itself says is expected; "" where it says nothing."""
    marks = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    own = next((mark.description for mark in marks if isinstance(mark, msgspec.Meta) and mark.description), "")
    if own or get_origin(kind) not in (Union, types.UnionType):
        return own
    return next((words for one in get_args(kind) if (words := _described(one))), "")


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _keys(kind: Any) -> list[str]:
    kind = _bare(kind)
    if _is_struct(kind):
        return [field.encode_name for field in msgspec.structs.fields(kind)]
    names = get_args(kind)[0] if get_origin(kind) is dict else None
    return [str(one) for one in get_args(names)] if get_origin(names) is Literal else []


def _field(kind: Any, name: str) -> Any:
    kind = _bare(kind)
    fields = msgspec.structs.fields(kind) if _is_struct(kind) else ()
    return next((one.type for one in fields if one.encode_name == name), None)


def _element(kind: Any) -> Any:
    """What a list or a table of names holds, also where another type may stand there."""
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    for one in get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,):
        if get_origin(one := _bare(one)) in (dict, tuple, list):
            return get_args(one)[-1 if get_origin(one) is dict else 0]
    return None


def _is_table(kind: Any) -> bool:
    """Whether it stands under a line in brackets."""
    kind = _bare(kind)
    if get_origin(kind) in (tuple, list, dict):
        kind = _bare(_element(kind))
    return _is_struct(kind)


def _expected(kind: Any, name: str) -> str:
    """What ought to stand under that name."""
    if words := _described(kind):
        return words
    kind = _bare(kind)
    if get_origin(kind) is Literal:
        return " or ".join(f'"{one}"' for one in get_args(kind))
    if get_origin(kind) in (tuple, list):
        return f"one or more tables [[{name}]]" if _is_table(kind) else f'a list in brackets: {name} = ["..."]'
    if get_origin(kind) is dict:
        entries = f'names with a value each: {name} = {{ name = "..." }}'
        return f"tables like [{name}.NAME]" if _is_table(kind) else entries
    if _is_struct(kind):
        return f"a table [{name}] with {choices(_keys(kind))}"
    return _WORDS.get(kind, _OTHER).format(name)
