"""What can be wrong with a node class, in sentences that name class, line and remedy; `check` tells them."""

from __future__ import annotations

import dis
import inspect
import os
import re
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Union, Unpack, get_args, get_origin, get_type_hints

from runtime.errors import ParameterError
from runtime.message import Message, Stamped
from runtime.node import Handler, Listener, Node, ports_of
from runtime.ports import Port, Subscription

_RUNTIME = str(Path(__file__).resolve().parents[1]) + os.sep
_NO_SETTER = re.compile(r"property '(\w+)' of '\w+' object has no setter")


def handler_problems(cls: type[Node], handlers: Iterable[Handler]) -> list[str]:
    """Handlers that cannot be called as the runtime calls them, or expect another message than their port brings."""
    found = []
    for handler in handlers:
        method = inspect.getattr_static(cls, handler.name)
        if not inspect.isfunction(method):
            continue
        place = f"{cls.__name__}.{handler.name} ({place_of(method)})"
        message = ports_of(cls, Subscription)[handler.port].message if isinstance(handler, Listener) else None
        wanted = "self" if message is None else f"self, {handler.port}: {message.__name__}"  # type: ignore[union-attr]
        calls = "takes no message" if message is None else f"takes the {message.__name__} of port {handler.port!r}"  # type: ignore[union-attr]
        asks = f"a handler of this kind {calls}; write `def {handler.name}({wanted})`"
        parameters = list(inspect.signature(method).parameters.values())
        try:
            inspect.signature(method).bind(*(() if message is None else (None,)), None)
        except TypeError:
            own = ", ".join(map(str, parameters)).replace("'", "")
            found.append(f"{place} takes ({own}), but {asks}")
            continue
        if message is None or len(parameters) < 2:
            continue
        expected = _annotation(method, parameters[1].name)
        if expected is not None and not _fits(message, expected):
            said = getattr(expected, "__name__", str(expected))
            found.append(f"{place} annotates {parameters[1].name!r} as {said}, but {asks}")
    return found


def _annotation(method: types.FunctionType, parameter: str) -> Any:
    """What the method says of its parameter; None where it says nothing, or what cannot be looked up."""
    try:
        return get_type_hints(method).get(parameter)
    except (NameError, TypeError, AttributeError):
        return None  # a name for type checkers alone


def _fits(message: type[Message], expected: Any) -> bool:
    if expected is Any:
        return True
    origin = get_origin(expected)
    if origin in (Union, types.UnionType):
        return any(_fits(message, part) for part in get_args(expected))
    if expected is Stamped or origin is Stamped:
        return all(_fits(message, part) for part in get_args(expected))
    if isinstance(expected, type):
        return issubclass(message, expected)
    return True  # a type variable, say


def instance_problems(node: Node) -> list[str]:
    """Ports that were made in `__init__`: nobody connects them."""
    cls = type(node)
    found = []
    for name, value in vars(node).items():
        is_port = isinstance(value, Port)
        if is_port and not value.attribute:
            line = _line_that_says(cls.__init__, f"self.{name}")
            kind = type(value).__name__
            found.append(
                f"{cls.__name__}.__init__ ({line}) makes the port self.{name}, which nobody connects; declare it on "
                f"the class: `{name} = {kind}({value.message.__name__}, {value.topic!r})`"
            )
    return found


def parameters_of(cls: type) -> dict[str, inspect.Parameter]:
    """What `__init__` takes by name, with resolved types.

    Of `**others: Unpack[Settings]`, a TypedDict, each key counts; its default is that of the base class.
    """
    inits = [vars(base)["__init__"] for base in cls.__mro__ if base is not object and "__init__" in vars(base)]
    if not inits:
        return {}
    found: dict[str, inspect.Parameter] = {}
    hints = get_type_hints(inits[0]) if len(inspect.signature(inits[0]).parameters) > 1 else {}
    for name, parameter in list(inspect.signature(inits[0]).parameters.items())[1:]:
        hint = hints.get(name, Any)
        if parameter.kind is parameter.VAR_KEYWORD and get_origin(hint) is Unpack:
            for key, kind in get_type_hints(get_args(hint)[0]).items():
                found[key] = inspect.Parameter(
                    key, parameter.KEYWORD_ONLY, annotation=kind, default=_default_of(key, inits[1:])
                )
        elif parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            found[name] = parameter.replace(annotation=hint)
    return found


def _default_of(name: str, inits: Iterable[Any]) -> Any:
    """The default that the first of these methods gives the parameter; empty where none does."""
    taken = (inspect.signature(init).parameters.get(name) for init in inits)
    return next((parameter.default for parameter in taken if parameter is not None), inspect.Parameter.empty)


def idle_parameters(cls: type[Node], params: Iterable[str]) -> list[str]:
    """Parameters that a launch file sets and `__init__` takes, but never reads."""
    init = inspect.unwrap(cls.__init__)  # what a decorator has wrapped reads them
    if not inspect.isfunction(init):
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


def init_problem(cls: type[Node], problem: Exception) -> ParameterError:
    """What an exception of `__init__` means."""
    place = place_of_problem(problem)
    own = _NO_SETTER.match(str(problem)) if isinstance(problem, AttributeError) else None
    if own is not None and own[1] in vars(Node):
        return ParameterError(
            f"{cls.__name__}.__init__ ({place}) sets self.{own[1]}, which every node has from its graph; "
            f"call yours otherwise, such as self.own_{own[1]}"
        )
    if isinstance(problem, ValueError) or (isinstance(problem, TypeError) and _is_raised(problem)):
        return ParameterError(f"{cls.__name__} refuses its parameters: {problem}")
    return ParameterError(
        f"{cls.__name__}.__init__ ({place}) failed: {type(problem).__name__}: {problem}; "
        "what needs a device, a file or the network belongs into on_start"
    )


def _is_raised(problem: Exception) -> bool:
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
    """File and line of the last frame of the user's own that an exception came through; "" where there is none."""
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
