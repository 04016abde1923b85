"""Whether a message's fields hold what they declare: asked at `publish`, where whoever sends it can still be named.

What fits is what a receiver in another process accepts. So it means the same within a process and across processes, in
both clocks. `fits_of` makes one function per message type from its annotations, in Python's own source: a few type
tests, which take a small part of the time of a message. It says yes only where it is sure. All else is sent to and fro
by `as_received`, which decides, and tells which field is wrong.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from runtime.errors import CodecError
from runtime.message import M, Message, fields_of
from runtime.serialization.arrays import declared_dtype, is_numbers, read_array
from runtime.serialization.codec import as_read, decoder_of
from runtime.serialization.msgspec_cache import learning

SMALLEST, LARGEST = -(1 << 63), (1 << 64) - 1
"""The whole numbers that MessagePack has a form for."""
LONGEST_SHOWN = 60
"""Most characters of a wrong value that a sentence repeats."""

_NEVER = "False"  # left to `as_received`
_UNSURE = (CodecError, msgspec.MsgspecError, OverflowError, TypeError, UnicodeError, RecursionError)


@cache
def fits_of(message: type[Message]) -> Callable[[Any], bool]:
    """A function that says of a message of this very type that all its fields fit; False where it is not sure."""
    return _Source().function_of(message)


def as_received(message: M) -> M:
    """The message as a receiver in another process gets it: a list is a tuple where one is declared, and so on.

    Raises CodecError with the field, what it holds, and what was expected.
    """
    try:
        received: M = as_read(message, decoder_of(type(message)).read_payload)
    except _UNSURE as problem:
        raise CodecError(_told(message, problem)) from problem
    return received


class _Source:
    """The source of the functions for one message type and its parts."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._names: dict[Any, str] = {}
        self._known: dict[str, Any] = {
            "FLOATS": frozenset((float,)),
            "can_travel": _can_travel,
            "is_numbers": is_numbers,
        }

    def function_of(self, message: type[Message]) -> Callable[[Any], bool]:
        """The function itself."""
        name = self._struct(message, message)
        exec("\n".join(self._lines), self._known)  # of our own text alone, as dataclasses are made
        found: Callable[[Any], bool] = self._known[name]
        return found

    def _named(self, value: object) -> str:
        name = f"k{len(self._known)}"
        self._known[name] = value
        return name

    def _struct(self, declared: Any, cls: type) -> str:
        """The name of the function for a message type; one that contains itself finds it by that name."""
        if declared in self._names:
            return self._names[declared]
        name = self._names[declared] = f"struct{len(self._names)}"
        lines = [f"def {name}(m):", f" if type(m) is not {self._named(cls)}: return False"]
        for field in fields_of(declared):
            lines += [f" v = m.{field.name}", f" if not {self.test(field.type)}: return False"]
        self._lines += [*lines, " return True"]
        return name

    def _item(self, declared: Any) -> str:
        """The name of a function for one item."""
        test = self.test(declared)
        name = f"item{len(self._lines)}"
        self._lines += [f"def {name}(v): return {test}"]
        return name

    def test(self, declared: Any, *, is_alone: bool = True) -> str:
        """An expression that is true only where `v` fits; a union has other parts beside it."""
        origin, parts = get_origin(declared), get_args(declared)
        cls = origin or declared
        if origin is Annotated:
            return self._limited(parts[0], parts[1:], is_alone=is_alone)
        if origin in (Union, types.UnionType):
            return f"({' or '.join(self.test(part, is_alone=False) for part in parts)})"
        if origin is Literal:
            return self._literal(parts)
        if origin in _CONTAINERS:
            return self._container(_CONTAINERS[origin], parts)
        if _is_array(declared):
            return self._array(declared)
        if declared is float:  # as everywhere in Python, a whole number may stand for one
            return f"(type(v) is float or {_WHOLE})" if is_alone else "type(v) is float"
        if declared in _PLAIN:
            return _PLAIN[declared]
        if isinstance(cls, type) and issubclass(cls, msgspec.Struct):
            return f"{self._struct(declared, cls)}(v)"
        if isinstance(cls, type) and issubclass(cls, enum.Enum) and not issubclass(cls, enum.Flag):
            return f"type(v) is {self._named(cls)}"
        return _NEVER

    def _limited(self, inner: Any, marks: tuple[Any, ...], *, is_alone: bool) -> str:
        limits = _AMOUNTS if inner in (int, float) else _LENGTHS if get_origin(inner) in _CONTAINERS else {}
        limits = _LENGTHS if inner in (str, bytes) else limits
        tests = [self.test(inner, is_alone=is_alone)]
        for mark in marks:
            for limit in _META if isinstance(mark, msgspec.Meta) else ():
                if (at := getattr(mark, limit)) is not None:
                    tests.append(limits.get(limit, _NEVER).format(self._named(at)))
        return f"({' and '.join(tests)})"

    def _literal(self, values: tuple[Any, ...]) -> str:
        kinds = {type(one) for one in values}
        if kinds not in ({str}, {int}):
            return _NEVER
        return f"(type(v) is {kinds.pop().__name__} and v in {self._named(frozenset(values))})"

    def _container(self, kind: type, parts: tuple[Any, ...]) -> str:
        if kind is dict:
            keys, values = map(self._item, parts)
            return f"(type(v) is dict and all(map({keys}, v)) and all(map({values}, v.values())))"
        if kind is tuple and parts[-1:] != (...,):
            items = [f"{self._item(part)}(v[{at}])" for at, part in enumerate(parts)]
            return f"({' and '.join([f'type(v) is tuple and len(v) == {len(parts)}', *items])})"
        fit = "FLOATS.issuperset(map(type, v))" if parts[0] is float else f"all(map({self._item(parts[0])}, v))"
        return f"(type(v) is {kind.__name__} and {fit})"

    def _array(self, declared: Any) -> str:
        import numpy as np

        dtype, kind = declared_dtype(declared), f"type(v) is {self._named(np.ndarray)}"
        if dtype is None:
            return f"({kind} and is_numbers(v.dtype.str))"
        return f"({kind} and v.dtype == {self._named(dtype)})"


def _can_travel(text: str) -> bool:
    """Whether a text has a form in UTF-8; half of a pair of surrogates has none."""
    try:
        text.encode()
    except UnicodeError:
        return False
    return True


_WHOLE = f"type(v) is int and (v.bit_length() < 64 or {SMALLEST} <= v <= {LARGEST})"  # the first is faster
_PLAIN: dict[Any, str] = {
    int: f"({_WHOLE})",
    bool: "(v is True or v is False)",
    str: "(type(v) is str and (v.isascii() or can_travel(v)))",
    bytes: "type(v) is bytes",
    type(None): "v is None",
    None: "v is None",
}
_CONTAINERS: dict[Any, type] = {
    list: list, tuple: tuple, set: set, frozenset: frozenset, dict: dict, Mapping: dict,
}  # fmt: skip
_AMOUNTS = {"gt": "v > {}", "ge": "v >= {}", "lt": "v < {}", "le": "v <= {}"}
_LENGTHS = {"min_length": "len(v) >= {}", "max_length": "len(v) <= {}"}
_META = (*_AMOUNTS, *_LENGTHS, "multiple_of", "pattern", "tz")


def _is_array(declared: Any) -> bool:
    return getattr(get_origin(declared) or declared, "__module__", "") == "numpy"


def _told(message: Message, problem: Exception) -> str:
    """Which field is wrong, what it holds, and what was expected there."""
    path, value, declared, reason = "", message, type(message), problem
    while found := next(_wrong_parts(declared, value), None):
        step, value, declared, reason = found
        path += step
    if not path:
        return f"it cannot be sent: {reason}"
    said = str(reason).partition(" - at ")[0].replace("`", "")
    if not isinstance(reason, msgspec.ValidationError) or "`object`" in str(reason):
        said = _expected(declared, value, reason)
    return f"its field {path.lstrip('.')} is {_shown(value)}: {said[0].lower()}{said[1:]}"


def _wrong_parts(declared: Any, value: Any) -> Iterator[tuple[str, Any, Any, Exception]]:
    """The parts of a value that do not fit by themselves: step, value, what is declared there, and why."""
    for step, part, kind in _parts(declared, value):
        try:
            with learning:
                read = msgspec.msgpack.Decoder(kind, dec_hook=read_array).decode
            as_read(part, read)
        except _UNSURE as problem:
            yield step, part, kind, problem


def _parts(declared: Any, value: Any) -> Iterator[tuple[str, Any, Any]]:
    """The parts of a value, each with its step and what is declared for it."""
    origin, parts = get_origin(declared), get_args(declared)
    if origin is Annotated:
        yield from _parts(parts[0], value)
    elif origin in (Union, types.UnionType):
        for part in parts:
            kind = get_origin(part) or part
            if isinstance(kind, type) and isinstance(value, kind):
                yield from _parts(part, value)
    elif isinstance(value, msgspec.Struct) and isinstance(declared, type) and isinstance(value, declared):
        for field in fields_of(declared):
            yield f".{field.name}", getattr(value, field.name), field.type
    elif isinstance(value, dict) and _CONTAINERS.get(origin) is dict:
        for key, part in value.items():
            yield f"[{key!r}]", key, parts[0]
            yield f"[{key!r}]", part, parts[1]
    elif isinstance(value, list | tuple | set | frozenset) and origin in _CONTAINERS and parts:
        is_fixed = origin is tuple and parts[-1] is not ...
        for at, part in enumerate(value):
            if not is_fixed or at < len(parts):
                yield f"[{at}]", part, parts[at if is_fixed else 0]


def _expected(declared: Any, value: Any, reason: Exception) -> str:
    if isinstance(reason, UnicodeError | OverflowError | RecursionError):
        return str(reason)
    parts = [part for part in get_args(declared) if part is not type(None)]
    if get_origin(declared) in (Union, types.UnionType) and len(parts) == 1:
        return _expected(parts[0], value, reason)
    if _is_array(declared):
        dtype = declared_dtype(declared)
        remedy = f"; write .astype('{dtype}')" if dtype is not None and _is_array(type(value)) else ""
        return f"expected an array of {dtype or 'numbers'}{remedy}"
    kind = declared.__name__ if isinstance(declared, type) else str(declared).replace("typing.", "")
    remedy = f"; write {kind}(...)" if declared in (int, float, bool, str) else ""
    return f"expected {kind}, got {type(value).__module__}.{type(value).__name__}{remedy}".replace("builtins.", "")


def _shown(value: Any) -> str:
    if hasattr(value, "dtype") and getattr(value, "ndim", False):
        return f"an array of {value.dtype}"
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
