"""`NodeSnapshot`: a node as one call of its worker thread sees it, so that two threads of a node never race.

The call works on copies of what its code names: lists, dicts, sets, deques, arrays, and objects of the user's own
classes, however deep they lie inside each other. When it has ended, what it changed is written back into the originals.
What is no data cannot be copied: a lock, a thread, a file, a handle of a library. An object that holds such a thing
anywhere is shared as a whole, and has to look after itself.
"""

from __future__ import annotations

import dataclasses
import datetime
import dis
import enum
import inspect
import logging
import operator
import random
import re
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from functools import cache
from pathlib import PurePath
from typing import Any, Literal

import msgspec

from runtime.message import Envelope, Message, Stamped

Kind = Literal["fixed", "list", "dict", "set", "bytes", "array", "tuple", "frozen", "object", "shared"]

_LISTS = (list, deque)
_DICTS = (dict, defaultdict, OrderedDict, Counter)
_FIXED = (
    int, float, complex, str, bytes, type(None), type(...), type(NotImplemented), range, slice, frozenset, type,
    types.BuiltinFunctionType, types.ModuleType, types.GenericAlias, re.Pattern, enum.Enum, PurePath, datetime.date,
    datetime.time, datetime.timedelta, datetime.tzinfo, logging.Logger, logging.LoggerAdapter, Message, Stamped,
    Envelope,
)  # fmt: skip
_ANY_NAME = frozenset(("getattr", "setattr", "delattr", "hasattr", "vars", "__dict__", "attrgetter"))
"""Code that uses one of these may read attributes that it does not name."""


@cache
def _kind_of_class(cls: Any) -> Kind:
    if cls in _LISTS:
        return "list"
    if cls in _DICTS:
        return "dict"
    if cls in (set, bytearray):
        return "set" if cls is set else "bytes"
    top = cls.__module__.partition(".")[0]
    if issubclass(cls, _FIXED) or (top == "numpy" and hasattr(cls, "dtype") and cls.__name__ != "ndarray"):
        return "fixed"
    if any(base.__module__ == "runtime.node" for base in cls.__mro__):
        return "shared"  # a node: what holds one is no data
    if top == "runtime":
        return "fixed"  # ports, clocks: any thread may use them
    if cls.__name__ == "ndarray" and top == "numpy":  # by its name: numpy is loaded where a node has it
        return "array"
    if issubclass(cls, tuple):
        return "tuple" if cls is tuple or hasattr(cls, "_make") else "shared"
    if issubclass(cls, msgspec.Struct):
        return "frozen" if cls.__struct_config__.frozen else "object"
    if top in sys.stdlib_module_names or cls.__new__ is not object.__new__ or _says_how_it_is_copied(cls):
        return "shared"
    params = getattr(cls, "__dataclass_params__", None)
    return "frozen" if params is not None and params.frozen else "object"


def _says_how_it_is_copied(cls: Any) -> bool:
    return any(name in vars(base) for base in cls.__mro__[:-1] for name in ("__copy__", "__deepcopy__", "__reduce__"))


def _kind(value: Any) -> Kind:
    kind = _kind_of_class(type(value))  # type: ignore[arg-type]  # classes are hashable
    if kind == "array" and not value.flags.writeable:
        return "fixed"
    if kind == "shared" and type(value) is types.FunctionType and value.__closure__ is None:
        return "fixed"
    return kind


@cache
def _slots_of(cls: Any) -> tuple[str, ...]:
    """The names of what an instance keeps outside of its `__dict__`."""
    if issubclass(cls, msgspec.Struct):
        return tuple(cls.__struct_fields__)
    said = [vars(base).get("__slots__", ()) for base in cls.__mro__]
    names = [name for some in said for name in ((some,) if isinstance(some, str) else some)]
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def _attributes(value: Any) -> dict[str, Any]:
    """What an object of a user's class keeps."""
    found = dict(getattr(value, "__dict__", ()))
    for name in _slots_of(type(value)):  # type: ignore[arg-type]  # classes are hashable
        item = getattr(value, name, found)  # of no value: what no slot can hold
        if item is not found:
            found[name] = item
    return found


def _set(value: Any, name: str, item: Any) -> None:
    if isinstance(value, msgspec.Struct):
        msgspec.structs.force_setattr(value, name, item)
    else:
        object.__setattr__(value, name, item)


def _new(value: Any, attributes: dict[str, Any]) -> Any:
    """Another object of that class, with these attributes."""
    made = copy(value) if isinstance(value, msgspec.Struct) else object.__new__(type(value))
    for name, item in attributes.items():
        _set(made, name, item)
    return made


def _inside(value: Any, kind: Kind) -> tuple[Any, ...]:
    """The values that lie in this one, as they are now."""
    if kind in ("list", "tuple"):
        return tuple(value)
    if kind == "dict":
        return tuple(value.values())
    return tuple(_attributes(value).values()) if kind in ("object", "frozen") else ()


MOST_KNOWN = 4096
"""Most values of which a node's snapshots remember what they found."""


class KnownValues:
    """What the snapshots of one node have found out about values, so that the next one need not look again.

    `fixed` holds values that can never change, however deep one looks; `shared` holds what is no data. They are keyed
    by id, with the value itself: while it is kept here, no other value has that id.
    """

    def __init__(self) -> None:
        self.fixed: dict[int, Any] = {}
        self.shared: dict[int, Any] = {}

    def make_room(self) -> None:
        """Forget everything once it has become much: most values are short-lived."""
        if len(self.fixed) + len(self.shared) > MOST_KNOWN:
            self.fixed.clear()
            self.shared.clear()


def _is_data(value: Any, known: KnownValues) -> bool:
    """Whether nothing is in it, however deep, that cannot be copied."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if id(one) in known.fixed:
            continue
        kind = _kind(one)
        if kind == "shared" or id(one) in known.shared:
            return False
        if kind != "fixed" and id(one) not in seen:
            seen.add(id(one))
            items = _inside(one, kind)
            if any(_kind_of_class(cls) != "fixed" for cls in set(map(type, items))):
                waiting.extend(items)
    return True


def _content(value: Any, kind: Kind) -> Any:
    """What says, compared with `_is_same`, whether a value was changed in place."""
    if kind == "list":
        return tuple(value)
    if kind == "dict":
        return tuple(value), tuple(value.values())
    if kind == "object":
        attributes = _attributes(value)
        return tuple(attributes), tuple(attributes.values())
    if kind == "array":
        return value.shape, value.dtype, value.tobytes()
    return bytes(value) if kind == "bytes" else frozenset(value)


def _is_same(one: Any, other: Any, kind: Kind) -> bool:
    if kind == "list":
        return len(one) == len(other) and all(map(operator.is_, one, other))
    if kind in ("dict", "object"):
        (keys, values), (other_keys, other_values) = one, other
        return bool(keys == other_keys) and all(map(operator.is_, values, other_values))
    return bool(one == other)


def _write(value: Any, kind: Kind, content: Any) -> None:
    """Give a value that content. Others may look at it meanwhile: it is never empty unless it is to be."""
    if kind == "list":
        if type(value) is list:
            value[:] = content
        else:
            value.clear()
            value.extend(content)
    elif kind == "dict":
        items = dict(zip(*content, strict=True))
        if tuple(key for key in value if key in items) != tuple(items)[: len(value)]:
            value.clear()
        value.update(items)
        for key in [key for key in value if key not in items]:
            del value[key]
    elif kind == "object":
        items = dict(zip(*content, strict=True))
        for name in _attributes(value).keys() - items.keys():
            object.__delattr__(value, name)
        for name, item in items.items():
            _set(value, name, item)
    elif kind == "set":
        value.update(content)
        value.intersection_update(content)
    else:
        value[:] = content


@dataclasses.dataclass(slots=True, eq=False)
class _Lent:
    """A value that the call has a copy of."""

    name: str  # the attribute by which it was found
    kind: Kind
    original: Any
    copy: Any
    was: Any  # the original's content then
    had: Any  # the copy's


class NodeSnapshot:
    """`node` is the copy that the call works on, taken between two calls of the node's other handlers.

    What the call sets becomes theirs between two such calls, once it has ended. So what every call sees follows from
    the order of these moments alone, which the journal keeps. `generator` stands in for the node's own random numbers,
    which the others draw. `names`: the attributes that the call's code names, None for all. `known`: what the node's
    earlier snapshots have found out.
    """

    def __init__(
        self,
        original: object,
        generator: random.Random,
        names: frozenset[str] | None = None,
        known: KnownValues | None = None,
    ) -> None:
        self._known = known or KnownValues()
        self._known.make_room()
        self._before = {**vars(original), "_random": generator}
        self.node: Any = object.__new__(type(original))
        self._lent: list[_Lent] = []
        self._copies: dict[int, Any] = {}  # two names of one list stay two names of one
        self._fixed: list[tuple[Any, Any]] = []  # copies that cannot change themselves, and their originals
        self._attribute = ""
        own = {"_random", *getattr(type(original), "thread_safe", ())}
        kept = vars(self.node)
        kept.update(self._before)
        for name, value in self._before.items():
            is_used = name not in own and (names is None or name in names)
            if is_used and _kind(value) != "fixed":
                self._attribute = name
                kept[name] = self._lend(value, is_data=False)

    def _lend(self, value: Any, *, is_data: bool) -> Any:
        """The copy of a value that can change; a value that cannot, and one that is no data, itself."""
        known = self._known
        if id(value) in known.fixed or id(value) in known.shared:
            return value
        kind = _kind(value)
        if kind in ("fixed", "shared"):
            return value
        if id(value) in self._copies:
            return self._copies[id(value)]
        if kind in ("object", "frozen") and not is_data:
            if not _is_data(value, known):
                known.shared[id(value)] = value
                return value
            is_data = True
        if kind == "tuple":
            if all(_kind_of_class(cls) == "fixed" for cls in set(map(type, value))):
                known.fixed[id(value)] = value
                return value
            items = tuple(self._lend(item, is_data=is_data) for item in value)
            if all(map(operator.is_, items, value)):
                return self._remember(value, value)
            return self._keep(value, items if type(value) is tuple else type(value)(*items), is_fixed=True)
        if kind == "frozen":
            attributes = _attributes(value)
            lent = {name: self._lend(item, is_data=True) for name, item in attributes.items()}
            if all(item is attributes[name] for name, item in lent.items()):
                return self._remember(value, attributes.values())
            return self._keep(value, _new(value, lent), is_fixed=True)
        made = _new(value, {}) if kind == "object" else _copied(value)
        self._keep(value, made)
        row = _Lent(self._attribute, kind, value, made, None, None)
        self._lent.append(row)
        if kind == "object":
            attributes = _attributes(value)
            for name, item in attributes.items():
                _set(made, name, self._lend(item, is_data=True))
            row.was = tuple(attributes), tuple(attributes.values())
            row.had = _content(made, kind)
            return made
        row.was = row.had = _content(made, kind)
        if kind in ("list", "dict") and any(map(_can_hold_change, set(map(type, _inside(made, kind))))):
            if kind == "list":
                content: Any = tuple(self._lend(item, is_data=is_data) for item in row.was)
            else:
                content = row.was[0], tuple(self._lend(item, is_data=is_data) for item in row.was[1])
            if not _is_same(content, row.was, kind):
                _write(made, kind, content)
                row.had = content
        return made

    def _remember(self, value: Any, inside: Iterable[Any]) -> Any:
        """A value that was not copied: whether that holds for ever."""
        fixed = self._known.fixed
        if all(id(item) in fixed or _kind(item) == "fixed" for item in inside):
            fixed[id(value)] = value
        return value

    def _keep(self, value: Any, made: Any, *, is_fixed: bool = False) -> Any:
        self._copies[id(value)] = made
        if is_fixed:
            self._fixed.append((made, value))
        return made

    def commit(self, original: object) -> list[str]:
        """Write back into the original what the call set, changed or deleted.

        Returns the attributes that others changed as well while the call changed their value in place: those keep the
        others'.
        """
        after, now = vars(self.node), vars(original)
        changed = [
            (row, content)
            for row in self._lent
            if not _is_same(content := _content(row.copy, row.kind), row.had, row.kind)
        ]
        refused = {
            row.name
            for row, _ in changed
            if now.get(row.name) is not self._before[row.name]
            or not _is_same(_content(row.original, row.kind), row.was, row.kind)
        }
        originals = {id(row.copy): row.original for row in self._lent}
        originals.update((id(made), value) for made, value in self._fixed)
        for row, content in changed:
            if row.name not in refused:
                _write(row.original, row.kind, _each(content, row.kind, lambda item: _restored(item, originals)))
        for name, value in after.items():
            if name in self._before and value is self._before[name]:
                continue
            given = _restored(value, originals)
            if name not in self._before or given is not self._before[name]:
                now[name] = given
        for name in self._before.keys() - after.keys():
            now.pop(name, None)
        return sorted(refused)


@cache
def _can_hold_change(cls: Any) -> bool:
    return _kind_of_class(cls) not in ("fixed", "shared")


def _copied(value: Any) -> Any:
    """A shallow copy; a thread of the node's own may add to a deque meanwhile."""
    while True:
        try:
            return copy(value)
        except RuntimeError:
            continue


def _each(content: Any, kind: Kind, change: Callable[[Any], Any]) -> Any:
    """That content, with each value that lies in it changed so."""
    if kind == "list":
        return tuple(map(change, content))
    if kind in ("dict", "object"):
        return content[0], tuple(map(change, content[1]))
    return content


def _restored(value: Any, originals: dict[int, Any]) -> Any:
    """What the call has made, with the originals in place of the copies that it put inside."""
    if not originals or not _can_hold_change(type(value)):  # type: ignore[arg-type]  # classes are hashable
        return value
    if id(value) in originals:
        return originals[id(value)]
    kind = _kind(value)
    originals[id(value)] = value
    if kind == "tuple":
        items = tuple(_restored(item, originals) for item in value)
        is_new = not all(map(operator.is_, items, value))
        return (items if type(value) is tuple else type(value)(*items)) if is_new else value
    if kind in ("object", "frozen") and not _is_data(value, KnownValues()):
        return value
    for name, item in _attributes(value).items() if kind in ("object", "frozen") else ():
        if (given := _restored(item, originals)) is not item:
            _set(value, name, given)
    if kind in ("list", "dict") and any(map(_can_hold_change, set(map(type, _inside(value, kind))))):
        content = _content(value, kind)
        given = _each(content, kind, lambda item: _restored(item, originals))
        if not _is_same(given, content, kind):
            _write(value, kind, given)
    return value


def names_used(cls: type, methods: Iterable[str], base: type) -> frozenset[str] | None:
    """What these methods, and those of the class that they may call, name; None where they may use anything.

    The methods of `base` use nothing of the class, and are not looked into.
    """
    found: set[str] = set()
    waiting = list(methods)
    classes = [one for one in cls.__mro__ if not issubclass(base, one)]
    while waiting:
        name = waiting.pop()
        for code in [code for one in classes for code in _codes_of(vars(one).get(name))]:
            names = _names_in(code, code.co_varnames[0] if code.co_argcount else "")
            if names is None:
                return None
            waiting.extend(names - found)
            found |= names
    return frozenset(found)


def _codes_of(member: Any) -> Iterator[types.CodeType]:
    """The code of a method or a property, as far as it is in Python."""
    functions: tuple[Any, ...] = (member.fget, member.fset) if isinstance(member, property) else (member,)
    for function in functions:
        code = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None)
        if isinstance(code, types.CodeType):
            yield code


@cache
def _names_in(code: types.CodeType, node: str) -> frozenset[str] | None:
    """The names that a function and those inside it say; `node` is what they call the node."""
    names = set(code.co_names)
    if names & _ANY_NAME or _gives_away(code, node):
        return None
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = _names_in(constant, node)
            if inner is None:
                return None
            names |= inner
    return frozenset(names)


def _gives_away(code: types.CodeType, name: str) -> bool:
    """Whether the value of that name itself goes somewhere else, in place of an attribute of it."""
    loads = ("LOAD_DEREF", "LOAD_CLASSDEREF") if name in code.co_cellvars else ("LOAD_FAST", "LOAD_DEREF")
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "COPY", "DUP_TOP")]  # of +=
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        loaded = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if not step.opname.startswith(loads) or name not in loaded:
            continue
        if (
            loaded[-1] != name
            or loaded.count(name) > 1
            or after is None
            or not after.opname.endswith(("ATTR", "METHOD"))
        ):
            return True
    return False
