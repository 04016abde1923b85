"""Which ports each handler of a node class reads and publishes by, as far as its code shows.

A handler uses a port where its code names `self.PORT`, or a method of the class that does. Code that cannot be seen,
that hands `self` on, or whose ports were given to another object, may use any port.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import msgspec

from runtime.launch.checks.function_source import Source, source_of
from runtime.node import Node, handlers_of, ports_of
from runtime.ports import Publisher, Subscription

_USES = ("latest", "stamped", "publish", "publish_all")
_LOOKS = "peek"  # which hands on no age


class PortUse(msgspec.Struct, frozen=True):
    """The attributes of the ports that one handler uses."""

    sure: frozenset[str]  # its code says so
    possible: frozenset[str]  # the others that it may use where nobody sees it
    peeked: frozenset[str]  # at which it looks without handing on an age
    kept: frozenset[str]  # of these: what may outlive the look, with its envelope, so that another handler names it
    told: frozenset[str]  # by which it publishes and says with `stems_from=` what a message is made from
    keeps_trigger: bool = True  # whether what it is called for may outlive the call, with its envelope
    asks_context: bool = True  # which knows that envelope, too


def port_uses(cls: type[Node]) -> Mapping[str, PortUse]:
    """What each handler of the class uses."""
    return _port_uses(cls)  # type: ignore[arg-type]  # classes are hashable


@cache
def _port_uses(cls: Any) -> Mapping[str, PortUse]:
    ports = frozenset(ports_of(cls, Publisher)) | frozenset(ports_of(cls, Subscription))
    own = {name for base in _bases(cls) for name, value in vars(base).items() if list(_functions(value))}
    reached = {handler.name: _reached(cls, handler.name, own) for handler in handlers_of(cls)}
    lent: frozenset[str] = frozenset()  # what another object may use in any handler
    for name in own.difference(*reached.values()):
        for said in _said(cls, name):
            lent |= said.given_away if said.is_seen else ports
    return MappingProxyType({name: _use(cls, name, methods, ports, ports & lent) for name, methods in reached.items()})


def _reached(cls: type, handler: str, own: Collection[str]) -> set[str]:
    """The methods that it may call, itself included."""
    waiting, found = [handler], {handler}
    while waiting:
        for said in _said(cls, waiting.pop()):
            more = {name for name in said.attributes if name in own} - found
            found |= more
            waiting += more
    return found


def _use(cls: type, handler: str, methods: Collection[str], ports: frozenset[str], lent: frozenset[str]) -> PortUse:
    said = [one for name in methods for one in _said(cls, name)]
    sure, peeked, kept, named, told = (
        ports & frozenset[str]().union(*(getattr(one, way) for one in said))
        for way in ("used", "looked_at", "kept", "given_away", "told")
    )
    attributes = frozenset[str]().union(*(one.attributes for one in said))
    possible = lent | named | {port for port in ports if any(port.startswith(f"_{name}_") for name in attributes)}
    if not said or not all(one.is_seen for one in said):
        return PortUse(sure, ports - sure, peeked, peeked, ports)
    asks = "context" in attributes
    keeps = asks or not all(one.opens_given for one in _said(cls, handler))
    return PortUse(sure, possible - sure, peeked, kept, told, keeps, asks)


class _Said(msgspec.Struct, frozen=True):
    """What one function says of the node."""

    attributes: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()  # of which it calls what reads or publishes
    looked_at: frozenset[str] = frozenset()  # at which it only peeks
    kept: frozenset[str] = frozenset()  # of which the look may outlive the function
    given_away: frozenset[str] = frozenset()  # which it hands on as they are
    told: frozenset[str] = frozenset()  # by which it publishes what it says stems from something
    is_seen: bool = True  # nothing else happens to the node in there
    opens_given: bool = False  # it takes only parts of what it is called with


def _bases(cls: type) -> list[type]:
    return [base for base in cls.__mro__ if issubclass(base, Node) and base is not Node]


def _said(cls: type, name: str) -> Iterator[_Said]:
    for base in _bases(cls):
        for function in _functions(vars(base).get(name)):
            yield _said_in(function)


def _functions(member: Any) -> Iterator[Any]:
    """The functions behind an attribute of a class."""
    inner = (member.fget, member.fset) if isinstance(member, property) else (getattr(member, "__func__", member),)
    for one in inner:
        if inspect.isfunction(one):
            yield inspect.unwrap(one)


@cache
def _said_in(function: Any) -> _Said:
    source = source_of(function)
    if source is None:  # of no file, as in a console
        return _Said(is_seen=False)
    parents = source.parents
    arguments = function.__code__.co_varnames[: function.__code__.co_argcount]
    node = arguments[0] if arguments else ""
    found: dict[str, set[str]] = {
        way: set() for way in ("attributes", "used", "looked_at", "kept", "given_away", "told")
    }
    is_seen = True
    for step in source.steps:
        if isinstance(step, ast.Attribute) and _is_super(step.value):
            found["attributes"].add(step.attr)
        if not (isinstance(step, ast.Name) and step.id == node and isinstance(step.ctx, ast.Load)):
            continue
        around = parents[step]
        if not isinstance(around, ast.Attribute):
            is_seen = is_seen and _asks_type(around)
            continue
        found["attributes"].add(around.attr)
        way, call = _way(around, parents)
        found[way].add(around.attr)
        if way == "looked_at" and call is not None and not _is_opened_at_once(call, source):
            found["kept"].add(around.attr)
        if call is not None and _states_source(call):
            found["told"].add(around.attr)
    opens_given = len(arguments) > 1 and _is_opened(arguments[1], source)
    return _Said(**{way: frozenset(names) for way, names in found.items()}, is_seen=is_seen, opens_given=opens_given)


def _way(attribute: ast.Attribute, parents: dict[ast.AST, ast.AST]) -> tuple[str, ast.Call | None]:
    """What is done with `self.NAME`, and the call where it is one of its methods."""
    around = parents[attribute]
    if not isinstance(around, ast.Attribute):
        return "given_away", None
    call = parents[around]
    if not isinstance(call, ast.Call) or call.func is not around:
        return ("given_away" if around.attr in (*_USES, _LOOKS) else "attributes"), None
    return ("used" if around.attr in _USES else "looked_at" if around.attr == _LOOKS else "attributes"), call


def _asks_type(around: ast.AST) -> bool:
    """Whether the node is only asked for its class: `type(self)`."""
    return isinstance(around, ast.Call) and isinstance(around.func, ast.Name) and around.func.id == "type"


def _is_opened_at_once(call: ast.Call, source: Source) -> bool:
    """Whether a function takes only parts of what it looks at: `peek().message`, or a local name that it so opens."""
    around = source.parents[call]
    if isinstance(around, ast.Attribute):
        return True
    if not (isinstance(around, ast.Assign) and len(around.targets) == 1 and isinstance(around.targets[0], ast.Name)):
        return False
    return _is_opened(around.targets[0].id, source)


def _is_opened(name: str, source: Source) -> bool:
    """Whether all that happens to a local name is that its parts are read, or that it is compared."""
    body = [
        step for part in source.steps if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) for step in part.body
    ]
    uses = [step for part in body for step in ast.walk(part) if isinstance(step, ast.Name) and step.id == name]
    return all(
        isinstance(use.ctx, ast.Store)
        or isinstance(source.parents[use], ast.Attribute | ast.Compare | ast.If | ast.UnaryOp)
        for use in uses
    )


def _states_source(call: ast.Call) -> bool:
    """Whether a call says what its message stems from, and that is not nothing: `stems_from=()`."""
    stated = [one.value for one in call.keywords if one.arg in ("stems_from", None)]
    return any(not isinstance(value, ast.Tuple) or bool(value.elts) for value in stated)


def _is_super(called: ast.expr) -> bool:
    return isinstance(called, ast.Call) and isinstance(called.func, ast.Name) and called.func.id == "super"
