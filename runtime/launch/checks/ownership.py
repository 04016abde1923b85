"""Each attribute of a node has one owner: its worker's handlers, or all its others. What breaks that, as sentences.

Found in the source of the class: of the handlers, of the methods and properties that they use, and of those to which
`super` leads. What `__init__`, `on_start` and `on_stop` do counts for nobody, as no other handler runs then.
"""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import types
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from runtime.launch.checks.function_source import Source, source_of
from runtime.node import Node, handlers_of
from runtime.ports import Port

Way = Literal["assigns", "augments", "changes", "calls", "reads", "compares"]
_FOR_SURE = frozenset(("append", "appendleft", "extend", "extendleft", "popitem", "popleft", "setdefault"))
"""Methods that change whatever has them."""
_CHANGERS = _FOR_SURE | frozenset(
    ("insert", "remove", "pop", "clear", "add", "discard", "update", "sort", "reverse", "rotate", "fill", "put",
     "resize", "itemset", "partition")
)  # fmt: skip
"""Methods by which lists, dicts, sets, deques and arrays change; an object of one's own may mean something else."""
_AT_ONCE = frozenset(("all", "any", "bool", "frozenset", "len", "list", "max", "min", "set", "sum", "tuple"))
"""Functions that look at a deque in one step, between two of which another thread may change it."""
_FIXED = (int, float, complex, str, bytes, tuple, frozenset, enum.Enum, type, types.FunctionType, types.ModuleType)
_SAFE = ("queue", "_queue", "threading", "_thread", "logging", "random", "runtime", "concurrent")
"""Modules whose objects any thread may use."""


class _Use(NamedTuple):
    """One use of an attribute in the source of a function."""

    name: str
    way: Way
    line: int
    method: str = ""  # of the value, that is called
    locks: frozenset[str] = frozenset()  # attributes that are held meanwhile
    is_lazy: bool = False  # it is assigned where nothing was there
    is_at_once: bool = False  # one step for a deque
    is_base: bool = False  # a method of the base class, by `super`


class Use(NamedTuple):
    """A use by one side, with its place in words."""

    way: Way
    place: str
    method: str
    locks: frozenset[str]
    is_lazy: bool
    is_at_once: bool


class Side(dict[str, list[Use]]):
    """What the handlers of one side do with each attribute, in the order in which it is found."""

    def place(self, name: str, way: Way) -> str:
        """Where this is done first; "" for nowhere."""
        return next((use.place for use in self.get(name, ()) if use.way == way), "")


class Sides(msgspec.Struct, frozen=True):
    """Both sides of a node class with a worker, without ports; of what `thread_safe` names, who assigns it."""

    worker: Side
    others: Side

    @property
    def shared(self) -> list[str]:
        """The attributes that both use."""
        return sorted(self.worker.keys() & self.others.keys())

    def uses(self, name: str) -> list[Use]:
        """Those of both sides."""
        return [*self.worker.get(name, ()), *self.others.get(name, ())]

    def is_filled_once(self, name: str) -> bool:
        """Whether it is assigned only where nothing was there yet, as in a cache: then it does not matter by whom."""
        return all(use.is_lazy for use in self.uses(name) if use.way == "assigns")

    def is_handed_on(self, name: str) -> bool:
        """Whether a handler assigns it, so that it need not be one object for long."""
        return any(use.way == "assigns" for use in self.uses(name))


def sides_of(cls: type[Node]) -> Sides | None:
    """What the two sides of a class do; None where it has no worker beside other handlers."""
    return _sides_of(cls)  # type: ignore[arg-type]  # classes are hashable


@cache
def _sides_of(cls: Any) -> Sides | None:
    blocking = {handler.name for handler in handlers_of(cls) if handler.style == "blocking"}
    plain = {handler.name for handler in handlers_of(cls) if handler.style != "blocking"}
    if not blocking or not (plain or cls.subscribes_all):
        return None
    served = {
        f"serve_{attribute}": value.method
        for base in cls.__mro__
        for attribute, value in vars(base).items()
        if hasattr(value, "method") and hasattr(value, "style")
    }  # services, which only a graph with services imports
    own = ("on_any", "on_missed") if cls.subscribes_all else ()
    return Sides(
        _side(cls, [served.get(name, name) for name in sorted(blocking)]),
        _side(cls, [served.get(name, name) for name in (*sorted(plain), *own)]),
    )


def _side(cls: Any, roots: Iterable[str]) -> Side:
    side = Side()
    for use, function, owner, name, handler in _reached(cls, roots):
        member = inspect.getattr_static(cls, use.name, None)
        if use.way == "compares" or (use.way != "assigns" and use.name in cls.thread_safe):
            continue
        if not _is_the_graphs(use.name, member):
            code = function.__code__
            place = f"{Path(code.co_filename).name}:{code.co_firstlineno + use.line - 1}"
            via = "" if name == handler else f", called by {handler},"
            found = f"{owner.__name__}.{name} ({place}){via}"
            side.setdefault(use.name, []).append(
                Use(use.way, found, use.method, use.locks, use.is_lazy, use.is_at_once)
            )
    return side


def _reached(cls: Any, roots: Iterable[str]) -> Iterator[tuple[_Use, Any, Any, str, str]]:
    """The uses of attributes in these methods and in those that they call, with function, class, name and root."""
    seen: set[tuple[str, int, frozenset[str]]] = set()
    classes = [base for base in cls.__mro__ if not issubclass(Node, base)]
    waiting: list[tuple[str, int, Way, frozenset[str], str]] = [
        (name, 0, "calls", frozenset(), name) for name in reversed([*roots])
    ]
    while waiting:
        name, first, way, locks, root = waiting.pop()
        at = next((at for at in range(first, len(classes)) if name in vars(classes[at])), None)
        if at is None or (name, at, locks) in seen:
            continue
        seen.add((name, at, locks))
        for function in _functions_in(vars(classes[at])[name], way):
            for use in _uses(function):
                if use.is_base or _functions_in(inspect.getattr_static(cls, use.name, None), use.way):
                    waiting.append((use.name, at + 1 if use.is_base else 0, use.way, locks | use.locks, root))
                else:
                    yield use._replace(locks=locks | use.locks), function, classes[at], name, root


def _is_the_graphs(name: str, member: Any) -> bool:
    """Whether an attribute is a port, an end of a service, or what every node has."""
    return isinstance(member, Port) or hasattr(member, "service") or hasattr(Node, name)


def _functions_in(member: Any, way: Way) -> list[Any]:
    """The functions that run where a method or a property is used so, as far as they are in Python."""
    if isinstance(member, property):
        member = member.fget if way != "assigns" else member.fset or member.fdel
    elif isinstance(member, functools.cached_property):
        member = member.func
    elif isinstance(member, staticmethod | classmethod):
        return []  # it is given no node
    function = inspect.unwrap(member) if member is not None and not isinstance(member, type) else None
    return [function] if inspect.isfunction(function) else []


@cache
def _uses(function: Any) -> tuple[_Use, ...]:
    """The attributes that a method names, and how it uses each."""
    source, code = source_of(function), function.__code__
    if source is not None:
        top = source.tree.body[0]
        if isinstance(top, ast.FunctionDef | ast.AsyncFunctionDef) and top.name == function.__name__:
            return tuple(_Method(source, code.co_varnames[0] if code.co_argcount else "").uses())
    return ()  # what has no file, or has been edited since, is not watched


class _Method:
    """The source of one method; `own` is what it calls the node."""

    def __init__(self, source: Source, own: str) -> None:
        self._steps, self._parents, self._own = source.steps, source.parents, own
        self._also: dict[str, set[str]] = {}  # local names of what an attribute holds
        for step in self._steps:
            if isinstance(step, ast.Assign | ast.NamedExpr):
                targets = step.targets if isinstance(step, ast.Assign) else [step.target]
                values = step.value.values if isinstance(step.value, ast.BoolOp) else [step.value]
                for target in targets:
                    if isinstance(target, ast.Name):
                        self._also.setdefault(target.id, set()).update(filter(None, map(self._attribute, values)))

    def _attribute(self, step: ast.AST | None) -> str:
        if isinstance(step, ast.Attribute) and isinstance(step.value, ast.Name) and step.value.id == self._own:
            return step.attr
        if isinstance(step, ast.Call) and _is_call_of(step, "getattr") and len(step.args) > 1:
            of, name = step.args[:2]
            if isinstance(of, ast.Name) and of.id == self._own and isinstance(name, ast.Constant):
                return str(name.value)
        return ""

    def uses(self) -> Iterator[_Use]:
        for step in self._steps:
            if name := self._attribute(step):
                assert isinstance(step, ast.expr)
                if not isinstance(step, ast.Attribute) or isinstance(step.ctx, ast.Load):
                    yield self._use(name, step)
                    continue
                yield _Use(name, "assigns", step.lineno, locks=self._locks(step), is_lazy=self._is_lazy(name, step))
                if isinstance(self._parents[step], ast.AugAssign):
                    yield _Use(name, "augments", step.lineno, locks=self._locks(step))
            elif isinstance(step, ast.Name) and isinstance(step.ctx, ast.Load):
                yield from (self._use(name, step) for name in self._also.get(step.id, ()))
            elif isinstance(step, ast.Attribute) and _is_call_of(step.value, "super"):
                yield _Use(step.attr, "reads", step.lineno, locks=self._locks(step), is_base=True)

    def _use(self, name: str, step: ast.expr) -> _Use:
        """What is done with the value that this part of the source says."""
        part, parent = step, self._parents.get(step)
        while isinstance(parent, ast.Attribute | ast.Subscript | ast.Starred) and parent.value is part:
            part, parent = parent, self._parents.get(parent)
        way: Way = "reads"
        method = ""
        if isinstance(parent, ast.Compare) and all(isinstance(sign, ast.Is | ast.IsNot) for sign in parent.ops):
            way = "compares" if part is step else "reads"  # whether it is None is no use of what it holds
        elif isinstance(part, ast.Attribute | ast.Subscript) and not isinstance(part.ctx, ast.Load):
            way = "changes"
        elif isinstance(parent, ast.Call) and parent.func is part:
            way, method = "calls", part.attr if isinstance(part, ast.Attribute) else ""
            if isinstance(part, ast.Attribute) and part.value is not step and part is not step and method in _CHANGERS:
                way = "changes"  # of what lies in it
        return _Use(name, way, step.lineno, method, self._locks(step), is_at_once=self._is_at_once(step))

    def _is_at_once(self, step: ast.expr) -> bool:
        parent = self._parents.get(step)
        if isinstance(parent, ast.Call):
            return isinstance(parent.func, ast.Name) and parent.func.id in _AT_ONCE
        if isinstance(parent, ast.Attribute):
            above = self._parents.get(parent)
            return isinstance(above, ast.Call) and above.func is parent and parent.attr in _CHANGERS
        if isinstance(parent, ast.Assign):
            return all(isinstance(target, ast.Name) for target in parent.targets)  # of that name it is looked for
        is_test = isinstance(parent, ast.If | ast.While | ast.IfExp) and parent.test is step
        return is_test or isinstance(parent, ast.Subscript | ast.UnaryOp | ast.BoolOp)

    def _locks(self, step: ast.AST) -> frozenset[str]:
        """What is entered round a step, as the path from the node to it."""
        found, above = set(), self._parents.get(step)
        while above is not None:
            if isinstance(above, ast.With):
                for item in above.items:
                    if path := self._path(item.context_expr):
                        found.add(path)
            above = self._parents.get(above)
        return frozenset(found)

    def _path(self, part: ast.expr) -> str:
        """The way from the node to a value, as "model.lock"; "" where it is none."""
        if name := self._attribute(part):
            return name
        above = self._path(part.value) if isinstance(part, ast.Attribute) else ""
        return f"{above}.{part.attr}" if above and isinstance(part, ast.Attribute) else ""

    def _is_lazy(self, name: str, step: ast.AST) -> bool:
        """Whether it is assigned only where it is None or not there yet."""
        below: ast.AST = step
        above = self._parents.get(step)
        if isinstance(above, ast.Assign) and isinstance(above.value, ast.BoolOp) and isinstance(above.value.op, ast.Or):
            return self._attribute(above.value.values[0]) == name
        while above is not None:
            if isinstance(above, ast.If) and self._says_empty(above.test, name) and below in above.body:
                return True
            for block in (getattr(above, "body", None), getattr(above, "orelse", None)):
                if isinstance(block, list) and below in block and self._left_before(block[: block.index(below)], name):
                    return True
            below, above = above, self._parents.get(above)
        return False

    def _left_before(self, steps: Iterable[ast.AST], name: str) -> bool:
        """Whether these steps leave the function where the attribute holds something."""
        return any(
            isinstance(step, ast.If)
            and isinstance(step.test, ast.Compare)
            and self._attribute(step.test.left) == name
            and isinstance(step.test.ops[0], ast.IsNot)
            and isinstance(step.body[-1], ast.Return)
            for step in steps
        )

    def _says_empty(self, test: ast.expr, name: str) -> bool:
        if isinstance(test, ast.UnaryOp) and isinstance(called := test.operand, ast.Call):
            is_asked = isinstance(test.op, ast.Not) and _is_call_of(called, "hasattr") and len(called.args) == 2
            return is_asked and isinstance(called.args[1], ast.Constant) and called.args[1].value == name
        return (
            isinstance(test, ast.Compare)
            and self._attribute(test.left) == name
            and isinstance(test.ops[0], ast.Is)
            and isinstance(test.comparators[0], ast.Constant)
            and test.comparators[0].value is None
        )


def _is_call_of(step: ast.AST, name: str) -> bool:
    return isinstance(step, ast.Call) and isinstance(step.func, ast.Name) and step.func.id == name


def ownership(node: Node) -> tuple[list[str], list[str]]:
    """What breaks the rule in a new node, and what its author should know besides, as sentences."""
    problems: list[str] = []
    notes: list[str] = []
    sides = sides_of(type(node))
    for name in sides.shared if sides is not None else ():
        assert sides is not None
        if told := _two_owners(node, sides, name):
            problems.append(told)
        elif looks_after_itself(node, sides, name):
            continue
        elif told := _two_users(node, sides, name):
            problems.append(told)
        elif told := _two_callers(node, sides, name):
            notes.append(told)
    return problems, notes


def _two_owners(node: Node, sides: Sides, name: str) -> str:
    one, other = sides.worker.place(name, "assigns"), sides.others.place(name, "assigns")
    if not one or not other or sides.is_filled_once(name):
        return ""
    told = f"self.{name} has two owners: {one} assigns it in the worker thread and {other} beside it; "
    if _common_lock(node, [use for use in sides.uses(name) if use.way == "assigns"]):
        return (
            f"{told}the lock round it cannot help, because the worker assigns in a view of its own until it returns; "
            "give each side an attribute of its own, or keep it in an object that brings its lock"
        )
    return f"{told}let one of them alone assign it, or publish what the worker finds"


def _two_users(node: Node, sides: Sides, name: str) -> str:
    value = _value(node, name)
    for changer, user, is_worker in ((sides.worker, sides.others, True), (sides.others, sides.worker, False)):
        place = next((use.place for use in changer[name] if _changes(use, value)), "")
        if place:
            return (
                f"self.{name} has two users: {place} changes it in place and {user[name][0].place} uses it "
                f"{'beside' if is_worker else 'in'} the worker thread; assign a new value, publish it, or write "
                f"thread_safe = ({name!r},) where it looks after itself"
            )
    return ""


def _changes(use: Use, value: object) -> bool:
    """Whether a use changes this value in place, for sure."""
    if use.way == "augments":
        return value is not None and not _is_fixed(value)
    if use.way == "calls" and use.method in _CHANGERS:
        return use.method in _FOR_SURE if value is None else not _is_own(value)
    return use.way == "changes"


def _two_callers(node: Node, sides: Sides, name: str) -> str:
    """An object that both sides use and whose methods change it, as far as can be known."""
    value = _value(node, name)
    calls = [[use for use in side[name] if use.way == "calls"] for side in (sides.worker, sides.others)]
    if _is_fixed(value) or not any(calls) or sides.is_handed_on(name):
        return ""
    changes = [_may_change(value, use.method) for side in calls for use in side]
    if True not in changes and (None not in changes or not all(calls)):
        return ""  # they only look; or one side calls what nobody knows, and the other only looks
    one, other = (
        some[0].place if some else side[name][0].place
        for some, side in zip(calls, (sides.worker, sides.others), strict=True)
    )
    says = ["calls methods of it" if some else "reads it" for some in calls]
    return (
        f"self.{name} has two users: {one} {says[0]} in the worker thread and {other} "
        f"{'' if says[0] == says[1] else says[1] + ' '}beside it; where any thread may, write thread_safe = ({name!r},)"
    )


def _may_change(value: object, method: str) -> bool | None:
    """Whether that method changes its object; None where its source is not there."""
    kind = type(value)
    name = method or "__call__"
    if value is None or not _functions_in(inspect.getattr_static(kind, name, None), "calls"):
        return None
    return any(use.way in ("assigns", "changes") or use.method in _CHANGERS for use, *_ in _reached(kind, [name]))


def looks_after_itself(node: Node, sides: Sides, name: str) -> bool:
    """Whether what an attribute holds now may be changed in place by both sides."""
    value, uses = _value(node, name), sides.uses(name)
    if type(value).__module__.partition(".")[0] in _SAFE or _brings_its_lock(value):
        return True
    if type(value) is deque and all(use.is_at_once for use in uses if use.way != "assigns"):
        return True  # each such step is one that no other thread comes between
    return _common_lock(node, [use for use in uses if use.way != "assigns"])


def _common_lock(node: Node, uses: Collection[Use]) -> bool:
    """Whether one lock is held round all of these."""
    common = frozenset.intersection(*(use.locks for use in uses)) if uses else frozenset()
    for path in common:
        held: Any = node
        for part in path.split("."):
            held = getattr(held, part, None)
        if _is_lock(held):
            return True
    return False


def _is_lock(value: object) -> bool:
    return hasattr(value, "acquire") and hasattr(value, "release")


def _brings_its_lock(value: object) -> bool:
    if _is_fixed(value) or isinstance(value, list | dict | set):
        return False
    slots = (name for base in type(value).__mro__ for name in _names(vars(base).get("__slots__", ())))
    return any(map(_is_lock, (*getattr(value, "__dict__", {}).values(), *(getattr(value, one, None) for one in slots))))


def _names(said: Any) -> tuple[str, ...]:
    return (said,) if isinstance(said, str) else tuple(said)


def _value(node: Node, name: str) -> object:
    return vars(node).get(name, inspect.getattr_static(type(node), name, None))


def _is_own(value: object) -> bool:
    """Whether its methods may mean anything: not one of Python's containers, and no array."""
    return type(value).__module__ not in ("builtins", "collections", "array", "numpy")


def _is_fixed(value: object) -> bool:
    """Whether no method of it changes it."""
    if isinstance(value, msgspec.Struct):
        return type(value).__struct_config__.frozen
    params = getattr(type(value), "__dataclass_params__", None)
    return isinstance(value, _FIXED) or (params is not None and params.frozen)


def attributes_at(cls: type[Node], handler: str, line: int) -> list[str]:
    """The attributes that a handler of the class uses in that line of its file, without ports."""
    function = inspect.unwrap(getattr(cls, handler))
    return list(
        dict.fromkeys(
            use.name
            for use in _uses(function)
            if function.__code__.co_firstlineno + use.line - 1 == line
            and use.way not in ("assigns", "augments")
            and not _is_the_graphs(use.name, inspect.getattr_static(cls, use.name, None))
            and not _functions_in(inspect.getattr_static(cls, use.name, None), use.way)
        )
    )
