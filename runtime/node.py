"""`Node`, `every` and `on`: what a user subclasses and marks.

There are three kinds of handler. Plain ones run on the node's loop. `async def` ones are tasks; the same handler never
overlaps itself. `blocking=True` ones run in a worker thread of the node. The marks leave the method as it is, so
calling it in a test just calls it.
"""

from __future__ import annotations

import inspect
import logging
import random
import re
from collections.abc import Awaitable, Callable, Iterable
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal, Never, Protocol, TypeVar, get_args, overload

import msgspec

from runtime.clock import Clock, SystemClock
from runtime.context import HandlerContext, current_call
from runtime.errors import ParameterError, UserError, choices
from runtime.message import M, Message, Stamped
from runtime.ports import Port, Publisher, Subscription
from runtime.run_facts import RunFacts

N = TypeVar("N")
S = TypeVar("S")
R = TypeVar("R", None, Awaitable[None])
M2 = TypeVar("M2", bound=Message)
M3 = TypeVar("M3", bound=Message)

Style = Literal["plain", "async", "blocking"]
Overrun = Literal["skip", "catch-up", "error"]

MOST_TO_CATCH_UP = 100
"""Ticks; what a timer with `overrun="catch-up"` missed before them is skipped."""

_MARK = "__polyrhythm_handler__"

SLOWEST_HZ = 1e-5
"""Once in 28 hours; what happens more rarely is no timer of a run."""
FASTEST_HZ = 10_000.0
"""Beyond this a handler in Python takes longer than its period, and a run does nothing but tick."""


def rate_problem(hz: object) -> str:
    """Say what is wrong with a rate in Hz, as the end of a sentence that has named it; "" where nothing is."""
    is_number = isinstance(hz, int | float) and not isinstance(hz, bool)
    if is_number and SLOWEST_HZ <= hz <= FASTEST_HZ:  # type: ignore[operator]  # False for NaN
        return ""
    return f"expected {SLOWEST_HZ:.5f} to {FASTEST_HZ:.0f} times a second"


class Timer(msgspec.Struct, frozen=True):
    """A method that runs `hz` times a second, at start + (k + phase) / hz."""

    name: str
    style: Style
    hz: float
    overrun: Overrun = "skip"
    phase: float = 0.0


class MessageHandler(msgspec.Struct, frozen=True):
    """A method that runs for each message of a port."""

    name: str
    style: Style
    port: str
    takes_stamped: bool = False  # the message with its envelope


class DeadlineWatch(msgspec.Struct, frozen=True):
    """A method that runs when a port has been silent for longer than its QoS allows."""

    name: str
    style: Style
    port: str


Handler = Timer | MessageHandler | DeadlineWatch


class _Mark(msgspec.Struct, frozen=True):
    hz: float | None
    ports: tuple[Port[Any], ...]
    blocking: bool
    is_deadline: bool = False
    overrun: Overrun = "skip"
    phase: float = 0.0


def _mark_method(method: Any, mark: _Mark) -> None:
    if not callable(method) or isinstance(method, type | staticmethod | classmethod):
        raise UserError(f"a handler is a method, not {method!r}; put `def` below the mark")
    if is_marked(method):
        raise UserError(
            f"{method.__qualname__} (line {method.__code__.co_firstlineno}) has two marks, and the second would take "
            "the place of the first; give each a method of its own that calls this one"
        )
    setattr(method, _MARK, mark)


def is_marked(method: object) -> bool:
    """Whether a method is a handler."""
    return hasattr(method, _MARK)


def every(
    *unnamed: Never,
    hz: float = 0.0,
    blocking: bool = False,
    overrun: Overrun = "skip",
    phase: float = 0.0,
    **unknown: Never,
) -> Callable[[Callable[[N], R]], Callable[[N], R]]:
    """Run the method `hz` times a second, 0.00001 to 10000, at start + k / hz.

    A tick that runs long overruns later ones. They are skipped and counted; with `overrun="catch-up"` they run at once
    one after another, at most the last 100; with `overrun="error"` they are skipped, and a failure of the handler says
    how late it was. `phase`, from 0 to below 1, is the part of a period by which the first tick
    comes after the start: it keeps timers of one process apart that hand something on to each other. `blocking` runs
    the method in a worker thread. Raises UserError for a value out of range.
    """
    if unnamed or unknown:
        said = f"knows no {choices(unknown)}" if unknown else "takes its rate by name"
        raise UserError(f"@every {said}; write @every(hz=2) for twice a second")
    if problem := rate_problem(hz):
        raise UserError(f"every(hz={hz!r}): {problem}")
    if overrun not in get_args(Overrun):
        raise UserError(f"every(overrun={overrun!r}): known: {', '.join(get_args(Overrun))}")
    if not 0 <= phase < 1:
        raise UserError(f"every(phase={phase}): expected a part of a period, from 0 to below 1")

    def mark(method: Callable[[N], R]) -> Callable[[N], R]:
        _mark_method(method, _Mark(hz=hz, ports=(), blocking=blocking, overrun=overrun, phase=phase))
        return method

    return mark


class OnMark(Protocol[M]):
    """Marks a method that takes such a message, or `Stamped` with its envelope."""

    @overload
    def __call__(self, method: Callable[[N, M], R], /) -> Callable[[N, M], R]: ...
    @overload
    def __call__(self, method: Callable[[N, Stamped[M]], R], /) -> Callable[[N, Stamped[M]], R]: ...


@overload
def on(port: Subscription[M], /, *, blocking: bool = False) -> OnMark[M]: ...
@overload
def on(one: Subscription[M], two: Subscription[M2], /, *, blocking: bool = False) -> OnMark[M | M2]: ...
@overload
def on(
    one: Subscription[M], two: Subscription[M2], three: Subscription[M3], /, *, blocking: bool = False
) -> OnMark[M | M2 | M3]: ...
@overload
def on(*ports: Subscription[Any], blocking: bool = False) -> OnMark[Message]: ...
def on(*ports: Subscription[Any], blocking: bool = False) -> Any:
    """Run the method for each message of the ports.

    It takes the message; annotated as `Stamped[...]`, the message with its envelope. `blocking` runs it in a worker
    thread, which gets the newest message of a state. Of four ports and more, type checkers let it take any `Message`.
    Raises UserError where a port is no subscription.
    """
    if not ports:
        raise UserError("@on names no port; write @on(beat) for beat = Subscription(Beat, 'beat')")
    for port in ports:
        if not isinstance(port, Subscription):
            raise UserError(
                f"@on takes a subscription, not {port!r}; write @on(beat) for beat = Subscription(Beat, 'beat')"
            )

    def mark(method: Callable[..., Any]) -> Callable[..., Any]:
        _mark_method(method, _Mark(hz=None, ports=ports, blocking=blocking))
        return method

    return mark


def _takes_stamped(method: Callable[..., Any], name: str) -> bool:
    """Whether a handler's message is annotated as `Stamped`."""
    parameters = list(inspect.signature(method).parameters.values())
    said = parameters[1].annotation if len(parameters) > 1 else ""
    text = said if isinstance(said, str) else getattr(said, "__name__", "") if isinstance(said, type) else str(said)
    while (outer := re.sub(r"\[[^\[\]]*\]", "", text)) != text:
        text = outer  # without what stands in brackets
    parts = [part.strip().rpartition(".")[2] for part in text.split("|")]
    if "Stamped" in parts and set(parts) != {"Stamped"}:
        raise UserError(f"{name}: it takes {text}; a handler takes messages, or Stamped ones, and not both")
    return "Stamped" in parts


def on_deadline(port: Subscription[Any]) -> Callable[[Callable[[N], R]], Callable[[N], R]]:
    """Run the method once when the port has been silent for its `deadline_s`, and again at its next such silence."""

    def mark(method: Callable[[N], R]) -> Callable[[N], R]:
        _mark_method(method, _Mark(hz=None, ports=(port,), blocking=False, is_deadline=True))
        return method

    return mark


class Node:
    """A class with ports, handlers and constructor arguments as parameters; no `super().__init__()` needed.

    `runtime.abilities` has what a class may tell or take besides.
    """

    realtime: ClassVar[bool] = False
    """True: plain handlers run on an absolute-deadline thread of the node's own, away from the asyncio loop."""

    subscribes_all: ClassVar[bool] = False
    """True: `on_any` is called for each message of every topic, from queues too deep for a newest one to overwrite."""

    stops_late: ClassVar[bool] = False
    """True: a run that ends stops it after the others, so that people who look through it see their last words."""

    thread_safe: ClassVar[tuple[str, ...]] = ()
    """Attributes whose objects look after themselves: a blocking handler and the others may both change these."""

    run_info: RunFacts = RunFacts()
    """What is known of the run (seed, folder, launch_text...); set before `on_start`, and empty outside of a run.

    At the end a recorder finds the outcome in `run_info.known`, where a node gave one: {"ok": ..., "reason": ...}.
    """

    fixed: ClassVar[frozenset[str]] = frozenset()
    """Topics that no launch file renames for this class, and timers whose rate it leaves alone: what stops a robot."""

    seat: ClassVar[str] = ""
    """The seat whose policy this node is: an interrupt that fences the seat voids what it is about to say."""

    provenance: ClassVar[str] = ""
    """Who makes this node's messages, as "model:NAME", "script:NAME" or "person"; default "script:CLASS"."""

    def __delattr__(self, name: str) -> None:
        if isinstance(vars(self).get(name), Port):  # it would come back unconnected, and nobody would hear of it
            raise UserError(
                f"{type(self).__name__}.{name} is a port, which stays for the whole run; delete nothing of it"
            )
        super().__delattr__(name)

    @property
    def name(self) -> str:
        """The node's name in the graph."""
        name: str = self.__dict__.get("_name", type(self).__name__.lower())
        return name

    @property
    def log(self) -> logging.Logger:
        """The node's logger; its lines carry the node's name."""
        return logging.getLogger(f"node.{self.name}")

    @cached_property
    def clock(self) -> Clock:
        """The graph's clock; the machine's until the node runs in a graph. A test of a node alone may set it."""
        return SystemClock()

    @property
    def random(self) -> random.Random:
        """The node's own random numbers, split from the run's seed."""
        generator: random.Random | None = self.__dict__.get("_random")
        if generator is None:
            generator = self.__dict__["_random"] = random.Random(0)
        return generator

    @property
    def context(self) -> HandlerContext:
        """The handler call that runs now: its `trigger`, a Stamped message or None in a timer, and its `cause`."""
        return current_call.get() or HandlerContext(self.clock.now_ns(), clock=self.clock)

    def problems(self) -> list[str]:
        """Return in sentences what its parameters and this machine lack; asked by `check`, and before a run."""
        return []

    def on_any(self, stamped: Stamped[Any]) -> None:
        """Called for each message of every topic where `subscribes_all` is set."""

    def on_start(self) -> Awaitable[None] | None:
        """Called once, before the first handler; it may be async. Load models here, not in `__init__`, which `check`
        runs too.
        """
        return None

    @classmethod
    def preload(cls) -> None:
        """Load what `on_start` would load and processes may share, like tables and libraries; it starts no thread.

        Called at most once, before the processes of a run are forked; where they are started afresh, not at all.
        """

    def on_stop(self) -> Awaitable[None] | None:
        """Called once after the last handler; it may be async, so that a client is closed."""
        return None

    def of_process(self, kind: type[S]) -> S:
        """Return the one object of that class that all nodes of this process share, such as a web server.

        It is made when it is first asked for. Its constructor takes no arguments, and any thread may use it.
        """
        known: dict[type, Any] = self.__dict__.setdefault("_process", {})
        found: S = known[kind] if kind in known else known.setdefault(kind, kind())
        return found

    def finish(self, *, ok: bool, reason: str) -> None:
        """End the whole run, with its outcome and the reason for it."""
        callback: Callable[[bool, str], None] | None = self.__dict__.get("_finish")
        if callback is not None:
            callback(ok, reason)


def needs_real_time(node: Node, what: str, otherwise: str = "") -> None:
    """Raise ParameterError in virtual time, for which `what` does not wait; `otherwise` is what else can be done."""
    if node.clock.is_virtual:
        to_do = f", or {otherwise}" if otherwise else ""
        raise ParameterError(f"node {node.name}: {what} does not wait for virtual time; run without --virtual{to_do}")


@overload
def ports_of(cls: type[Node], kind: type[Publisher[Any]]) -> dict[str, Publisher[Any]]: ...
@overload
def ports_of(cls: type[Node], kind: type[Subscription[Any]]) -> dict[str, Subscription[Any]]: ...
def ports_of(cls: type[Node], kind: type[Port[Any]]) -> Any:
    """Return the ports of that kind that a node class declares, by attribute, in order of declaration."""
    return dict(_ports_of(cls, kind))  # type: ignore[arg-type]  # classes are hashable


@cache
def _ports_of(cls: Any, kind: Any) -> dict[str, Port[Any]]:
    found: dict[str, Port[Any]] = {}
    for base in reversed(cls.__mro__):
        for attribute, value in vars(base).items():
            if isinstance(value, kind):
                found[attribute] = value
            else:
                found.pop(attribute, None)
    return found


def handlers_of(cls: type[Node]) -> list[Handler]:
    """Return the handlers of a node class, in order of declaration. Raises UserError for marks that cannot work."""
    return list(_handlers_of(cls))  # type: ignore[arg-type]  # classes are hashable


def _at(cls: type, name: str, method: Any) -> str:
    """A method with its file and line, for a sentence that says what is wrong with it."""
    code = getattr(inspect.unwrap(method), "__code__", None)
    place = f" ({Path(code.co_filename).name}:{code.co_firstlineno})" if code is not None else ""
    return f"{cls.__name__}.{name}{place}"


@cache
def _handlers_of(cls: Any) -> list[Handler]:
    found: dict[str, list[Handler]] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            _refuse_wrapped(cls, name, value)
            mark: _Mark | None = getattr(value, _MARK, None) if callable(value) else None
            if mark is None:
                found.pop(name, None)
                continue
            others = chain(*(handlers for other, handlers in found.items() if other != name))
            found[name] = _marked_handlers(cls, name, value, mark, others)
    handlers = list(chain(*found.values()))
    watched = {handler.port for handler in handlers if isinstance(handler, DeadlineWatch)}
    for attribute, subscription in ports_of(cls, Subscription).items():
        if subscription.qos.deadline_s is not None and attribute not in watched:
            raise UserError(
                f"{cls.__name__}.{attribute} has a deadline that nobody watches; mark a method with "
                f"@on_deadline({attribute}), or take deadline_s away"
            )
    return handlers


def _refuse_wrapped(cls: Any, name: str, value: object) -> None:
    """Raise UserError for a mark on what is called without a node."""
    if isinstance(value, staticmethod | classmethod) and is_marked(value.__func__):
        raise UserError(f"{_at(cls, name, value.__func__)}: a handler takes self; leave out @{type(value).__name__}")
    if isinstance(value, property) and is_marked(value.fget):
        raise UserError(f"{_at(cls, name, value.fget)}: a handler is no property; leave out @property")


def _marked_handlers(cls: Any, name: str, value: Any, mark: _Mark, others: Iterable[Handler]) -> list[Handler]:
    """What one marked method handles; `others` are the handlers of other methods."""
    is_async = inspect.iscoroutinefunction(value)
    if is_async and mark.blocking:
        raise UserError(f"{_at(cls, name, value)}: an async handler cannot be blocking; choose one of the two")
    style: Style = "async" if is_async else "blocking" if mark.blocking else "plain"
    if style == "async" and cls.realtime:
        raise UserError(f"{_at(cls, name, value)}: a realtime node has no async handlers; make it plain")
    if mark.hz is not None:
        return [Timer(name, style, mark.hz, mark.overrun, mark.phase)]
    ports = [_port_of(cls, name, value, marked) for marked in mark.ports]
    if mark.is_deadline:
        return [_deadline_watch(cls, name, value, style, port) for port in ports]
    taken = {other.port: other.name for other in others if isinstance(other, MessageHandler)}
    for port in ports:
        if port in taken:
            raise UserError(
                f"{cls.__name__}.{name}: port {port!r} has the handler {taken[port]!r} already; call one from the other"
            )
    takes_stamped = _takes_stamped(value, f"{cls.__name__}.{name}")
    return [MessageHandler(name, style, port, takes_stamped) for port in ports]


def _port_of(cls: Any, name: str, value: Any, marked: object) -> str:
    """The attribute of a port that a mark names."""
    for attribute, port in ports_of(cls, Subscription).items():
        if port is marked:
            return str(attribute)
    raise UserError(
        f"{_at(cls, name, value)}: @on names a port that is no subscription of this class; declare one "
        "on this class, under a name of its own"
    )


def _deadline_watch(cls: Any, name: str, value: Any, style: Style, port: str) -> DeadlineWatch:
    if ports_of(cls, Subscription)[port].qos.deadline_s is None:
        raise UserError(
            f"{_at(cls, name, value)}: @on_deadline names port {port!r}, which has no deadline; "
            "give it QoS(deadline_s=...)"
        )
    return DeadlineWatch(name, style, port)
