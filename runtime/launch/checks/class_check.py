"""What can be wrong with a node class, in sentences that name class, line and remedy; `check` prints them."""

from __future__ import annotations

import ast
import dis
import inspect
import linecache
import logging
import os
import random
import re
import sys
import types
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Union, Unpack, get_args, get_origin, get_type_hints

import msgspec

from runtime.clock import Clock
from runtime.context import HandlerContext
from runtime.errors import ParameterError
from runtime.launch.checks.function_source import source_of
from runtime.message import Message, Stamped, fields_of
from runtime.node import Handler, MessageHandler, Node, is_marked, ports_of
from runtime.ports import Port, Publisher, Subscription
from runtime.run_facts import RunFacts
from runtime.serialization.toml_errors import guess

_RUNTIME = str(Path(__file__).resolve().parents[2]) + os.sep
_OF_A_RUN = ("clock", "random", "run_info")
_NO_SETTER = re.compile(r"property '(\w+)' of '\w+' object has no setter")


@lru_cache(maxsize=1024)
def handler_problems(cls: type[Node], handlers: tuple[Handler, ...]) -> tuple[str, ...]:
    """Handlers that the runtime cannot call, or that expect another message than their port brings.

    Each class is examined once: thousands of episodes use the same few.
    """
    found = [*_hidden_members(cls), *_lost_marks(cls), *_covered_marks(cls), *_missing_ports(cls)]
    for name in ("on_start", "on_stop"):
        found += _call_problem(cls, name, f"is called with self alone; write `def {name}(self)`", None)
    found += [*_ports_inside(cls), *_unawaited_calls(cls), *_misplaced_names(cls)]
    for handler in handlers:
        message = ports_of(cls, Subscription)[handler.port].message if isinstance(handler, MessageHandler) else None
        ports = [other.port for other in handlers if isinstance(other, MessageHandler) and other.name == handler.name]
        if message is None:
            wanted, calls = "self", "takes no message"
        elif len(ports) == 1:
            wanted, calls = (
                f"self, {ports[0]}: {message.__name__}",
                f"takes the {message.__name__} of port {ports[0]!r}",
            )
        else:
            types = dict.fromkeys(ports_of(cls, Subscription)[port].message.__name__ for port in ports)
            wanted, calls = f"self, message: {' | '.join(types)}", f"takes one message at a time, of {', '.join(ports)}"
        asks = f"a handler of this kind {calls}; write `def {handler.name}({wanted})`"
        found += [*_call_problem(cls, handler.name, asks, message), *_returned_messages(cls, handler.name)]
    return tuple(dict.fromkeys(found))


def _call_problem(cls: type[Node], name: str, asks: str, message: Any) -> list[str]:
    """What is wrong with a method that is called with such a message, or with nothing where that is None."""
    method = inspect.getattr_static(cls, name)
    if not inspect.isfunction(method):
        return []
    place = f"{cls.__name__}.{name} ({place_of(method)})"
    if inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
        return [f"{place} has a `yield`, so that a call runs none of it; publish what it yields, or leave that out"]
    parameters = list(inspect.signature(method).parameters.values())
    try:
        inspect.signature(method).bind(*(() if message is None else (None,)), None)
    except TypeError:
        own = ", ".join(map(str, parameters)).replace("'", "")
        return [f"{place} takes ({own}), but {asks}"]
    if message is None or len(parameters) < 2:
        return []
    expected = _annotation(method, parameters[1].name)
    if expected is None or _fits(message, expected):
        return []
    return [f"{place} annotates {parameters[1].name!r} as {_said(expected)}, but {asks}"]


def _said(annotation: Any) -> str:
    """A type as a user writes it, without its modules."""
    if args := get_args(annotation):
        return f"{get_origin(annotation).__name__}[{', '.join(map(_said, args))}]"
    return str(getattr(annotation, "__name__", annotation))


def _services() -> types.ModuleType | None:
    """The module of services and goals; where nobody has imported it, a graph has none."""
    return sys.modules.get("runtime.services")


def service_problems(cls: type[Node]) -> list[str]:
    """Services and goals that no method serves, or whose method cannot be called with a request or a goal."""
    services = _services()
    found = []
    for name, server in ({} if services is None else services.servers_of(cls)).items():
        if not server.method:
            found.append(f"{cls.__name__}.{name}: no method serves {server.service!r}; mark one with @serve({name})")
            continue
        taken = _said(server.takes)
        word = "goal" if get_args(server.takes) else "request"
        asks = f"what serves {server.service!r} takes a {word}; write `def {server.method}(self, {word}: {taken})`"
        found += _call_problem(cls, server.method, asks, server.takes)
    return found


def _hidden_members(cls: type[Node]) -> list[str]:
    """Ports, handlers and values by a name under which the graph gives every node something."""
    return [
        f"{cls.__name__}.{name} ({_line_of_class(cls, name)}) takes the place of the {name} that every node has from "
        f"its graph; call yours otherwise, such as own_{name}"
        for name, member in vars(Node).items()
        if isinstance(member, property | cached_property) and inspect.getattr_static(cls, name) is not member
    ]


def _lost_marks(cls: type[Node]) -> list[str]:
    """Methods that take the place of a base class's handler and are none themselves."""
    found = []
    for name, method in vars(cls).items():
        marked = [base.__name__ for base in cls.__mro__[1:] if is_marked(vars(base).get(name))]
        if marked and inspect.isfunction(method) and not is_marked(method):
            found.append(
                f"{cls.__name__}.{name} ({place_of(method)}) takes the place of the handler {marked[0]}.{name} and has "
                f"no mark, so nobody calls it; mark it with @every or @on, too, or write `{name} = None`"
            )
    return found


def _enclosed(method: types.FunctionType) -> Iterator[object]:
    """What a function has from the one that made it."""
    for cell in method.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue  # it is not set yet


def _covered_marks(cls: type[Node]) -> list[str]:
    """Handlers under a decorator that has made another function of them, so that their mark is gone."""
    return [
        f"{base.__name__}.{name} ({_line_of_class(base, name)}) has a decorator above its @every or @on, which hides "
        "that mark, so nobody calls it; put @every or @on on top"
        for base in cls.__mro__
        for name, method in vars(base).items()
        if inspect.isfunction(method) and not is_marked(method)
        if any(inspect.isfunction(one) and is_marked(one) for one in _enclosed(method))
    ]


def _missing_ports(cls: type[Node]) -> list[str]:
    """Ports that are annotated and not made."""
    found = []
    for base in cls.__mro__:
        for name, hint in inspect.get_annotations(base).items():
            origin = get_origin(hint)
            said = hint if isinstance(hint, str) else getattr(hint if origin is None else origin, "__name__", "")
            kind = said.rpartition(".")[2].partition("[")[0]
            if kind in ("Publisher", "Subscription") and not hasattr(cls, name):
                found.append(
                    f"{base.__name__}.{name} ({_line_of_class(base, name)}) names a type and makes no port; write "
                    f"`{name} = {kind}(Beat, 'beat')`, with its message and topic"
                )
    return found


def _ports_inside(cls: type[Node]) -> list[str]:
    """Ports that stand in a tuple, a list or a dict, where nothing finds them."""
    found = []
    for base in cls.__mro__:
        for name, value in vars(base).items():
            parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
            port = next((part for part in parts if isinstance(part, Port)), None)
            if port is None:
                continue
            is_comma = isinstance(value, tuple) and len(value) == 1
            remedy = (
                "leave out the comma behind it" if is_comma else f"give each port a line of its own: `one = {port!r}`"
            )
            found.append(
                f"{base.__name__}.{name} ({_line_of_class(base, name)}) is a {type(value).__name__} with a port in it, "
                f"which nobody connects; {remedy}"
            )
    return found


def _unawaited_calls(cls: type[Node]) -> list[str]:
    """Calls that nobody awaits, so that none of them runs: of the clock, and of the class's own `async def`."""
    names = {name for base in cls.__mro__ for name in vars(base)}
    own = {f"self.{name}" for name in names if inspect.iscoroutinefunction(inspect.getattr_static(cls, name))}
    waits = own | {"self.clock.sleep", "self.clock.external", "asyncio.sleep"}
    last = {wait.rpartition(".")[2] for wait in waits}
    found = []
    for base in cls.__mro__:
        for name, method in vars(base).items():
            if not inspect.isfunction(method) or not last & {*method.__code__.co_names}:
                continue
            for step in _steps_of(method):
                if not isinstance(step, ast.Expr) or not isinstance(step.value, ast.Call):
                    continue
                if (called := ast.unparse(step.value.func)) in waits:
                    place = _place_of_step(method, step)
                    is_async = inspect.iscoroutinefunction(method)
                    remedy = f"write `await {called}(...)`" + ("" if is_async else f" in an `async def {name}`")
                    found.append(f"{base.__name__}.{name} ({place}) calls {called} and does not wait for it; {remedy}")
    return found


_HOLDERS: dict[str, type] = {
    "clock": Clock, "log": logging.Logger, "random": random.Random, "context": HandlerContext, "run_info": RunFacts,
}  # fmt: skip
"""What every node has from its graph, and what is in there."""
_HELD = {name: holder for holder, kind in reversed(_HOLDERS.items()) for name in dir(kind) if name[0] != "_"}
"""Each name in there, and where; a name in several is the first one's."""
_OF_SELF = re.compile(r"\bself\.(\w+)(?:\.(\w+))?(\()?")
_LOOSE = frozenset(("setattr", "vars", "__dict__"))
"""Who uses these may have any attribute."""


def _misplaced_names(cls: type[Node]) -> list[str]:
    """Uses of what a node does not have, where the graph gives it by another name: `self.now_ns()` is the clock's."""
    found = []
    for base in cls.__mro__:
        methods = [method for method in vars(base).values() if inspect.isfunction(method)]
        if base is Node or not methods or not (hints := _suspects(cls, methods[0].__code__.co_filename)):
            continue
        for method in methods:
            for step in _steps_of(method) if hints & {*method.__code__.co_names} else ():
                said, remedy = _misplaced(cls, step)
                if said:
                    place = _place_of_step(method, step)
                    found.append(f"{base.__name__}.{method.__name__} ({place}) uses {said}; {remedy}")
    return found


def _suspects(cls: type[Node], file: str) -> set[str]:
    """Names in a file that may be misplaced: most files have none, and need no closer look."""
    found = {name for name, _, _ in _uses_in(file) if _holder(cls, name)}
    for name, inner, call in _uses_in(file):
        if inner and (thing := _thing(cls, name)) is not None:
            member = getattr(thing, inner, None)
            if member is None or (callable(member) and not call):
                found.add(inner)
    return found


@cache
def _uses_in(file: str) -> frozenset[tuple[str, str, str]]:
    return frozenset((one[1], one[2] or "", one[3] or "") for one in _OF_SELF.finditer(_text_of(file)))


@cache
def _text_of(file: str) -> str:
    return "".join(linecache.getlines(file))


def _thing(cls: type[Node], name: str) -> object:
    """What `self.NAME` is, a port or a class of `_HOLDERS`; None where that is known in the run only."""
    own = getattr(cls, name, None)
    return own if isinstance(own, Publisher | Subscription) else _HOLDERS.get(name)


def _holder(cls: type[Node], name: str) -> str:
    """Where what was asked of the node is to be found; "" where the node may have it, or nobody has."""
    holder = _HELD.get(name, "")
    return holder if holder and not hasattr(cls, name) and not _may_be_set(cls, name) else ""


def _may_be_set(cls: type[Node], name: str) -> bool:
    """Whether a class declares the attribute, or one of its methods may set it."""
    bases = cls.__mro__[: cls.__mro__.index(Node)]
    codes = [member.__code__ for base in bases for member in vars(base).values() if inspect.isfunction(member)]
    if hasattr(cls, "__getattr__") or any(_LOOSE & {*code.co_names} for code in codes):
        return True
    sets = re.compile(rf"\bself\.{name}\b[^=(\n]*=(?!=)")
    is_set = any(sets.search(_text_of(file)) for file in {code.co_filename for code in codes})
    return is_set or any(name in inspect.get_annotations(base) for base in bases)


def _misplaced(cls: type[Node], step: ast.AST) -> tuple[str, str]:
    """Of one part of a method: what it uses that is not there, and the remedy; ("", "") where nothing is wrong."""
    if isinstance(step, ast.BinOp | ast.Compare | ast.AugAssign | ast.FormattedValue):
        for value in ast.iter_child_nodes(step):
            of = _OF_SELF.fullmatch(ast.unparse(value)) if isinstance(value, ast.Attribute) else None
            if of is not None and of[2] and callable(getattr(_thing(cls, of[1]), of[2], None)):
                return of[0], f"that is a method: write `{of[0]}()`"
        return "", ""
    if not isinstance(step, ast.Attribute) or not isinstance(step.ctx, ast.Load):
        return "", ""
    of = _OF_SELF.fullmatch(ast.unparse(step))
    if of is None:
        return "", ""
    if not of[2]:
        holder = _holder(cls, of[1])
        call = "(...)" if holder and callable(getattr(_HOLDERS[holder], of[1])) else ""
        return (of[0], f"write `self.{holder}.{of[1]}{call}`") if holder else ("", "")
    thing = _thing(cls, of[1])
    if thing is None or hasattr(thing, of[2]):
        return "", ""
    kind = thing if isinstance(thing, type) else type(thing)
    return of[0], f"a {kind.__name__} has no {of[2]!r}; {guess(of[2], (name for name in dir(thing) if name[0] != '_'))}"


def _steps_of(method: types.FunctionType) -> Sequence[ast.AST]:
    """All parts of a method's source; none where it has no file."""
    source = source_of(method)
    return source.steps if source is not None else ()


def _place_of_step(method: types.FunctionType, step: ast.AST) -> str:
    code, line = method.__code__, getattr(step, "lineno", 1)
    return f"{Path(code.co_filename).name}:{code.co_firstlineno + line - 1}"


def narrow_comparisons(cls: type[Node]) -> list[str]:
    """Comparisons of a field with one word, where a property of the message, as `is_stopped`, may take in others."""
    wide = {
        (field.name, word): message.__name__
        for message in (port.message for port in ports_of(cls, Subscription).values())
        if isinstance(message, type) and not message_problem(message)  # type: ignore[arg-type]  # classes are hashable
        for field in fields_of(message)  # type: ignore[arg-type]
        for word in get_args(field.type)
        if isinstance(getattr(message, f"is_{word}", None), property)
    }
    return [
        f"{base.__name__}.{method.__name__} ({_place_of_step(method, step)}) compares {field} with {word!r} alone; "
        f"`is_{word}` of {message} may be true of other words, too"
        for base in cls.__mro__
        for method in vars(base).values()
        if wide and base is not Node and inspect.isfunction(method)
        for step in _steps_of(method)
        if isinstance(step, ast.Compare)
        for (field, word), message in wide.items()
        if {field, word} <= {getattr(one, "attr", getattr(one, "value", None)) for one in ast.walk(step)}
    ]


def _returned_messages(cls: type[Node], name: str) -> list[str]:
    """Messages that a handler returns, as if somebody got them."""
    method = inspect.getattr_static(cls, name)
    if not inspect.isfunction(method) or "return" in method.__annotations__:
        return []  # whoever says what it returns has been told by a type checker
    found = []
    for step in _steps_of(method):
        if isinstance(step, ast.Return) and isinstance(step.value, ast.Call) and isinstance(step.value.func, ast.Name):
            made = method.__globals__.get(step.value.func.id)
            if isinstance(made, type) and issubclass(made, Message):
                place = f"{cls.__name__}.{name} ({_place_of_step(method, step)})"
                found.append(
                    f"{place} returns a {made.__name__}, which nobody gets; publish it: `self.NAME.publish(...)`"
                )
    return found


def _untyped_values(message: type) -> list[str]:
    """Values of a message class that were meant to be fields."""
    return [
        f"{message.__name__}.{name} ({_line_of_class(message, name)}) is no field, since it has no type; "
        f"write `{name}: {type(value).__name__} = {value!r}`"
        for name, value in vars(message).items()
        if isinstance(value, bool | int | float | str) and not name.startswith(("_", "message_"))
        if name not in inspect.get_annotations(message)
    ]


@cache
def message_problem(message: type) -> str:
    """Which part of a message type cannot be sent; "" where all of it can."""
    if untyped := _untyped_values(message):
        return untyped[0]
    try:
        kinds = msgspec.inspect.type_info(message)
    except (NameError, TypeError) as problem:
        return f"the fields of {message.__name__} cannot be read: {problem}"
    strange = next((kind for kind in _custom_types(kinds, set()) if kind.__module__ != "numpy"), None)
    if strange is None:
        return ""
    return (
        f"a {message.__name__} holds a {strange.__name__}, which cannot travel; give it plain values, messages or "
        f"numpy arrays, or make it one: `class {strange.__name__}(Message)`"
    )


def _custom_types(kind: object, seen: set[object]) -> Iterator[type]:
    """The classes inside a type that msgspec has no form for."""
    if isinstance(kind, msgspec.inspect.CustomType):
        yield kind.cls
    elif isinstance(kind, tuple | list):
        for part in kind:
            yield from _custom_types(part, seen)
    elif isinstance(kind, msgspec.inspect.Type | msgspec.inspect.Field):
        cls = getattr(kind, "cls", None)
        if cls is None or cls not in seen:
            seen.add(cls)
            for name in kind.__struct_fields__:
                yield from _custom_types(getattr(kind, name), seen)


def _annotation(method: types.FunctionType, parameter: str) -> Any:
    """What the method says of its parameter; None where it says nothing, or what cannot be looked up."""
    try:
        return get_type_hints(method).get(parameter)
    except (NameError, TypeError, AttributeError):
        return None  # a name for type checkers alone


def _fits(message: Any, expected: Any) -> bool:
    if expected is Any:
        return True
    origin = get_origin(expected)
    if origin in (Union, types.UnionType):
        return any(_fits(message, part) for part in get_args(expected))
    if get_args(message):  # a goal's handle
        return expected in (message, get_origin(message)) or not isinstance(origin or expected, type)
    if expected is Stamped or origin is Stamped:
        return all(_fits(message, part) for part in get_args(expected))
    if isinstance(expected, type):
        return issubclass(message, expected)
    return True  # a type variable, say


def instance_problems(node: Node, *, is_new: bool = True) -> list[str]:
    """What `__init__` did in vain: ports that nobody connects, messages that nobody hears yet.

    Only a new node is examined; another was made by the caller, who may have called its handlers.
    """
    cls = type(node)
    found = []
    for name, port in {**ports_of(cls, Publisher), **ports_of(cls, Subscription)}.items():
        own = vars(node).get(name)
        if own is not None and not isinstance(own, Port):
            line = _line_that_says(cls.__init__, f"self.{name}")
            found.append(
                f"{cls.__name__}.__init__ ({line}) sets self.{name}, which is the port of topic {port.topic!r}; "
                f"call yours otherwise, such as self.own_{name}"
            )
        elif is_new and isinstance(own, Publisher) and own.sent:
            line = _line_that_says(cls.__init__, f"self.{name}")
            found.append(f"{cls.__name__}.__init__ ({line}) publishes, and nobody is connected yet; do it in on_start")
    found += [
        f"{cls.__name__}.__init__ ({place_of(cls.__init__)}) uses self.{name}, which is the run's only from on_start on"
        for name in _used_too_early(cls.__init__)
    ]
    services = _services()
    for name, value in vars(node).items():
        is_port = isinstance(value, Port)
        if is_port and not value.attribute:
            line = _line_that_says(cls.__init__, f"self.{name}")
            kind = type(value).__name__
            found.append(
                f"{cls.__name__}.__init__ ({line}) makes the port self.{name}, which nobody connects; declare it on "
                f"the class: `{name} = {kind}({value.message.__name__}, {value.topic!r})`"
            )
        elif services is not None and isinstance(value, services.ServiceEnd) and not value.attribute:
            line = _line_that_says(cls.__init__, f"self.{name}")
            found.append(
                f"{cls.__name__}.__init__ ({line}) makes self.{name}, a {value!r} that nobody connects; declare it on "
                f"the class: `{name} = {type(value).__name__}(...)`"
            )
    return found


def _used_too_early(init: Any) -> list[str]:
    """What `__init__` takes of itself that only a run gives to a node."""
    init = inspect.unwrap(init)
    if not inspect.isfunction(init) or not {*_OF_A_RUN} & {*init.__code__.co_names}:
        return []
    steps = list(dis.get_instructions(init))
    names = {
        after.argval for step, after in pairwise(steps) if step.argval == "self" and after.opname.endswith("_ATTR")
    }
    return [name for name in _OF_A_RUN if name in names]


def parameters_of(cls: type) -> dict[str, inspect.Parameter]:
    """The parameters of `__init__` by name, with resolved types; one that cannot be resolved stays a string.

    Each key of `**others: Unpack[Settings]`, a TypedDict, counts; its default is that of the base class.
    """
    return _parameters_of(cls)


@cache
def _parameters_of(cls: type) -> dict[str, inspect.Parameter]:
    inits = [vars(base)["__init__"] for base in cls.__mro__ if base is not object and "__init__" in vars(base)]
    if not inits:
        return {}
    found: dict[str, inspect.Parameter] = {}
    for name, parameter in list(inspect.signature(inits[0]).parameters.items())[1:]:
        hint = _hint_of(inits[0], parameter)
        if parameter.kind is parameter.VAR_KEYWORD and get_origin(hint) is Unpack:
            for key, kind in get_type_hints(get_args(hint)[0]).items():
                found[key] = inspect.Parameter(
                    key, parameter.KEYWORD_ONLY, annotation=kind, default=_default_of(key, inits[1:])
                )
        elif parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            found[name] = parameter.replace(annotation=hint)
    return found


def _hint_of(init: Any, parameter: inspect.Parameter) -> Any:
    """The type of one parameter, so that one that cannot be looked up leaves the others be."""
    if parameter.annotation is parameter.empty:
        return Any
    alone = types.SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        return get_type_hints(alone, inspect.unwrap(init).__globals__)[parameter.name]
    except NameError:
        return parameter.annotation


def _default_of(name: str, inits: Iterable[Any]) -> Any:
    """The default that the first of these methods gives the parameter; empty where none does."""
    taken = (inspect.signature(init).parameters.get(name) for init in inits)
    return next((parameter.default for parameter in taken if parameter is not None), inspect.Parameter.empty)


def idle_parameters(cls: type[Node], params: Collection[str]) -> list[str]:
    """Parameters that a launch file sets and `__init__` takes, but never reads."""
    init = inspect.unwrap(cls.__init__)  # what a decorator has wrapped reads them
    if not params or not inspect.isfunction(init):
        return []
    read = {step.argval for step in dis.get_instructions(init) if step.opname.startswith(("LOAD_FAST", "LOAD_DEREF"))}
    read |= {name for pair in read if isinstance(pair, tuple) for name in pair}  # Python 3.13 loads two at a time
    read |= {*init.__code__.co_cellvars}  # a function inside may read it
    if "locals" in init.__code__.co_names:
        return []
    own = inspect.signature(init).parameters
    return [
        f"parameter {name!r} of {cls.__name__} does nothing: __init__ ({place_of(init)}) never reads it; leave it out"
        for name in params
        if name in own and name not in read
    ]


def init_problem(cls: type[Node], problem: BaseException) -> ParameterError:
    """What an exception raised by `__init__` means, as a sentence."""
    if inspect.isabstract(cls):
        unwritten = ", ".join(sorted(vars(cls)["__abstractmethods__"]))
        return ParameterError(
            f"{cls.__name__} does not say what its {unwritten} does; write it, or name a class that does"
        )
    init = inspect.unwrap(cls.__init__)
    place = place_of_problem(problem) or (place_of(init) if inspect.isfunction(init) else cls.__module__)
    own = _NO_SETTER.match(str(problem)) if isinstance(problem, AttributeError) else None
    if own is not None and own[1] in vars(Node):
        return ParameterError(
            f"{cls.__name__}.__init__ ({place}) sets self.{own[1]}, which every node has from its graph; "
            f"call yours otherwise, such as self.own_{own[1]}"
        )
    if str(problem).startswith("object.__init__() takes exactly one argument"):
        return ParameterError(
            f"{cls.__name__}.__init__ ({place}) gives its base class arguments, which takes none; write "
            "`super().__init__()`: a node has its name from its table in the launch file"
        )
    if isinstance(problem, ValueError | TypeError) and _is_raised(problem):
        return ParameterError(f"{cls.__name__} refuses its parameters: {problem}")
    if isinstance(problem, ValueError):
        return ParameterError(f"{cls.__name__}.__init__ ({place}) refuses its parameters: {problem}")
    return ParameterError(
        f"{cls.__name__}.__init__ ({place}) failed: {type(problem).__name__}: {problem}; "
        "what needs a device, a file or the network belongs into on_start"
    )


def _is_raised(problem: BaseException) -> bool:
    """Whether a `raise` statement raised it, and no operation that went wrong."""
    frame = problem.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    if frame is None:
        return False
    try:
        lines, first = inspect.getsourcelines(frame.tb_frame.f_code)
    except (OSError, TypeError):
        return True
    return any(line.lstrip().startswith("raise") for line in lines[max(0, frame.tb_lineno - first - 3) :][:4])


def place_of(function: Any) -> str:
    """File and line of a function."""
    code = function.__code__
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}"


def place_of_problem(problem: BaseException) -> str:
    """File and line of the last frame of the user's own code that an exception passed; "" where there is none."""
    place, frame = "", problem.__traceback__
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        if not file.startswith((_RUNTIME, "<")):
            place = f"{Path(file).name}:{frame.tb_lineno}"
        frame = frame.tb_next
    return place


def _line_that_says(function: Any, words: str) -> str:
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return place_of(function)
    numbers = [first + number for number, line in enumerate(lines) if words in line]
    return f"{Path(function.__code__.co_filename).name}:{numbers[0]}" if numbers else place_of(function)


def _line_of_class(cls: type, name: str) -> str:
    """File and line at which a class, or a base of it, says what `name` is."""
    owner = next(base for base in cls.__mro__ if name in vars(base) or name in inspect.get_annotations(base))
    try:
        lines, first = inspect.getsourcelines(owner)
    except (OSError, TypeError):
        return owner.__module__
    says = re.compile(rf"\s*((async )?def {name}\(|{name}\s*[:=])")
    number = next((number for number, line in enumerate(lines) if says.match(line)), 0)
    return f"{Path(inspect.getsourcefile(owner) or '').name}:{first + number}"
