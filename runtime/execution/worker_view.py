"""`WorkerView`: a node as one call of its worker thread sees it: what its attributes held when the call began.

No value is copied, only which value each attribute holds. So each attribute has one owner: either the worker or the
node's other handlers assign it, and nobody changes a value in place that the other side uses. `check` says so before
the start, from the source (`runtime.launch.checks.ownership`). What it does not show is looked for here.
"""

from __future__ import annotations

import functools
import inspect
import random
import sys
import zlib
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Any

from runtime.clock import NS_PER_S, Clock
from runtime.launch.checks.ownership import looks_after_itself, ownership, sides_of
from runtime.message import Message
from runtime.node import Node
from runtime.ports import Port

OF_THE_RUN = frozenset(("clock", "_finish", "_name", "_process", "_random", "run_info"))
"""Attributes by which a run gives a node its name, clock, random numbers and more."""

_NOTHING: Any = object()

MOST_ITEMS = 64
MOST_NUMBERS = 4096
DEEPEST = 4
MOST_VALUES = 500
_NO_SLOTS = ("__dict__", "__weakref__")
_PLAIN = (int, float, complex, str, bytes, type(None))


class AssignedByOthers:
    """The attributes that a node's other handlers have assigned or deleted since its worker's first call."""

    def __init__(self, cls: type) -> None:
        self.names: set[str] = set()
        self._cls = cls
        self._left: dict[str, Any] = {}  # the node's attributes when the worker looked last

    def look(self, now: dict[str, Any]) -> None:
        """Note what they have done since the last look."""
        left = self._left
        if left:
            self.names.update(name for name, value in now.items() if value is not left.get(name, _NOTHING))
            self.names.update(left.keys() - now.keys())

    def leave(self, now: dict[str, Any]) -> None:
        """From here on they are alone."""
        self._left = dict(now)

    def is_cache(self, name: str) -> bool:
        """Whether both may fill this attribute, because it is filled once and by whom does not matter."""
        if isinstance(inspect.getattr_static(self._cls, name, None), functools.cached_property):
            return True
        sides = sides_of(self._cls) if issubclass(self._cls, Node) else None
        return sides is not None and sides.is_handed_on(name) and sides.is_filled_once(name)


class WorkerView:
    """`node` is what the call works on, taken between two calls of the node's other handlers.

    What the call sets becomes theirs between two such calls, once it has ended. So what every call sees follows from
    the order of these moments alone, which the journal keeps. `generator` stands in for the node's own random numbers,
    which the others draw.
    """

    def __init__(self, original: object, generator: random.Random, others: AssignedByOthers | None = None) -> None:
        self._others = others or AssignedByOthers(type(original))
        self._others.look(vars(original))
        self._others.leave(vars(original))
        self._before = {**vars(original), "_random": generator}
        self.node: Any = object.__new__(type(original))
        vars(self.node).update(self._before)

    def commit(self, original: object) -> list[str]:
        """Give the original what the call set or deleted.

        Returns the attributes that others set in this run, too: those keep the others' value.
        """
        before, after, now = self._before, vars(self.node), vars(original)
        others = self._others
        others.look(now)
        changed = [
            name
            for name, value in after.items()
            if value is not before.get(name, _NOTHING) and not _is_the_runs(name, before)
        ]
        gone = [name for name in before if name not in after and not _is_the_runs(name, before)]
        refused = others.names.intersection((*changed, *gone))
        for name in changed:
            if name not in refused:
                now[name] = after[name]
        for name in gone:
            if name not in refused:
                now.pop(name, None)
        others.leave(now)
        return sorted(name for name in refused if not others.is_cache(name))


def _is_the_runs(name: str, kept: dict[str, Any]) -> bool:
    """Whether the run gives a node this attribute: what a worker does with it stays in its own view."""
    return name in OF_THE_RUN or isinstance(kept.get(name), Port)


class SharedValues:
    """Notices that one side of a node changes in place what the other side uses, too.

    Two looks at a value are compared by a small part of it: it is for mistakes of a program, not for each single
    number. In real time the worker's thread looks at one call in a second.
    """

    def __init__(self, node: Node, clock: Clock) -> None:
        self._cls, self._clock, self._log = type(node), clock, node.log
        self._sides = sides_of(self._cls)
        self._names = [
            name
            for name in (self._sides.shared if self._sides is not None else ())
            if name not in self._cls.thread_safe
        ]
        self._seen: dict[str, tuple[Any, object]] = {}
        self._next_ns = 0

    def is_due(self) -> bool:
        """Whether to look at the call that begins now."""
        now_ns = self._clock.now_ns()
        if not self._names or (now_ns < self._next_ns and not self._clock.is_virtual):
            return False
        self._next_ns = now_ns + NS_PER_S
        return True

    def look(self, node: Node, worker: str) -> str:
        """Look at the values; "" or a sentence on the first one that was changed in place since the last look.

        By that handler of the worker, or where it is "", by the others.
        """
        before, self._seen = self._seen, {}
        changed = []
        for name in self._names:
            value = vars(node).get(name)
            try:
                mark = _mark(value, [MOST_VALUES])
            except RuntimeError:  # it was changed in the middle of the look
                mark = object()
            self._seen[name] = value, mark
            if name in before and before[name][0] is value and before[name][1] != mark:
                changed.append(name)
        found = ""
        for name in changed:
            told = self._told(node, name, worker)
            found = found or told
        return found

    def _told(self, node: Node, name: str, worker: str) -> str:
        assert self._sides is not None
        if looks_after_itself(node, self._sides, name):
            self._names.remove(name)
            return ""
        is_known = worker and self._clock.is_virtual  # in real time the others run meanwhile
        who = f"{self._cls.__name__}.{worker}" if is_known else f"a handler of {self._cls.__name__}"
        told = (
            f"{who} changed self.{name} in place, which {'others use' if is_known else 'another side uses'} in "
            f"another thread; assign a new value, publish it, or, where it looks after itself, write "
            f"thread_safe = ({name!r},)"
        )
        if any(note.startswith(f"self.{name} ") for note in ownership(node)[1]):
            self._names.remove(name)
            self._log.warning("%s", told)  # `check` has said so and let it pass
            return ""
        return told


def _mark(value: Any, left: list[int], depth: int = DEEPEST) -> object:
    """What tells a value from the same one after a change; `left` holds how many more values are looked at."""
    if isinstance(value, _PLAIN):
        return value
    kind = type(value)
    if kind.__name__ == "ndarray" and kind.__module__ == "numpy":  # by its name: numpy is loaded where a node has it
        if not value.flags.writeable or value.dtype.hasobject:
            return id(value)
        return value.shape, zlib.crc32(value.flat[:: max(1, value.size // MOST_NUMBERS)].tobytes())
    left[0] -= 1
    if not depth or left[0] < 0:
        return id(value)
    if isinstance(value, dict):
        return len(value), tuple((key, _mark(item, left, depth - 1)) for key, item in _some(value.items()))
    if isinstance(value, list | tuple | deque):
        ends = (*value,) if len(value) <= MOST_ITEMS else (*_some(value), *_some(reversed(value)))
        return len(value), tuple(_mark(item, left, depth - 1) for item in ends)
    if isinstance(value, set):
        return len(value), tuple(_some(value))
    if isinstance(value, bytearray):
        return len(value), bytes(value[:: max(1, len(value) // MOST_NUMBERS)])
    if kind.__module__.partition(".")[0] in (*sys.stdlib_module_names, "runtime") or isinstance(value, type | Message):
        return id(value)
    if hasattr(kind, "_version"):  # a tensor counts its changes, where it is not made for inference
        return id(value) if value.is_inference() else value._version
    kept = dict(getattr(value, "__dict__", ()))
    kept |= {name: getattr(value, name, None) for name in getattr(kind, "__slots__", ()) if name not in _NO_SLOTS}
    if kept:
        return tuple((name, _mark(item, left, depth - 1)) for name, item in _some(kept.items()))
    return id(value)


def _some(items: Iterable[Any]) -> list[Any]:
    return list(islice(items, MOST_ITEMS))
