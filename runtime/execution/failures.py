"""`Failures` logs what handlers raise."""

from __future__ import annotations

import linecache
import logging
import os
import re
import threading
from asyncio import AbstractEventLoop, CancelledError, Task
from pathlib import Path
from traceback import walk_tb
from types import CoroutineType
from typing import Any

from runtime.clock import NS_PER_S, Clock
from runtime.errors import MessageTypeError, MissedTickError, NoAnswerError, UserError
from runtime.extras import lacking
from runtime.message import Message
from runtime.ports import Publisher, Subscription
from runtime.serialization.toml_errors import guess

_REMEDIES = (
    (r"'Publisher' object is not callable", "publish by `self.NAME.publish(message)`"),
    (r"'Subscription' object is not callable", "read the newest message by `self.NAME.latest()`"),
    (r"'(Service|Goal)Client' object is not callable", "ask by `await self.NAME.call(message)`"),
    (
        r"(Publisher|ServiceClient|GoalClient)\.\w+\(\) (got an unexpected|missing)",
        "give it a message: `Beat(count=1)`",
    ),
    (r"object NoneType can't be used in 'await' expression", "leave out `await`: what it waits for is done already"),
    (r"Extra positional arguments provided", "a message is made with keywords: `Beat(count=1)`"),
    (r"immutable type: ", "a message never changes; make a new one"),
)
"""What to do about errors that Python or msgspec words: how the message begins, and the remedy."""
_SAID = (UserError, MessageTypeError, MissedTickError, NoAnswerError)
"""Of these the sentence says all, with the line where there is one."""
_RUNTIME = str(Path(__file__).resolve().parents[1]) + os.sep
_FIELD = re.compile(r"(Unexpected keyword|Missing required) argument '(\w+)'")
"""How msgspec says that a message was made with fields that are not its own."""
_LOOKS = ("latest()", "stamped()", "peek()")

OF_A_HANDLER = (Exception, CancelledError, GeneratorExit)
"""What a handler raises as its own, and the node goes on; a future that it asks raises the second."""

_MOST_KNOWN = 32
"""Most kinds of failure per node that are logged with their traceback."""


class Failures:
    """What the handlers of one node have raised, and what of it was logged; for any thread."""

    def __init__(self, log: logging.Logger, clock: Clock) -> None:
        self.count = 0
        self.last = ""
        """The last one, with its handler and place."""
        self._log = log
        self._clock = clock
        self._known: set[tuple[str, str, str]] = set()
        self._untold: dict[str, int] = {}  # by handler, since its last line
        self._told_ns: dict[str, int] = {}
        self._lock = threading.Lock()

    def tell(self, handler: str, problem: BaseException) -> None:
        """Count a failure; log a new kind with its traceback, a repeated one in one line a second."""
        name, place = type(problem).__name__, _place(problem)
        is_said = isinstance(problem, _SAID)
        with self._lock:
            self.count += 1
            what = str(problem) if is_said else f"at {place}: {name}: {problem}".removesuffix(": ")
            self.last = f"{handler}: {what}" if is_said else f"{handler} {what}"
            now_ns = self._clock.now_ns()
            is_new = (handler, name, place) not in self._known and len(self._known) < _MOST_KNOWN
            if is_new:
                self._known.add((handler, name, place))
                self._told_ns[handler] = now_ns
            else:
                number = self._untold[handler] = self._untold.get(handler, 0) + 1
                if now_ns - self._told_ns.get(handler, 0) < NS_PER_S:
                    return
                self._untold[handler], self._told_ns[handler] = 0, now_ns
        if is_new:
            extra = lacking(problem)
            why = f": {said}" if (said := extra or (str(problem) if is_said else remedy_of(problem))) else ""
            self._log.error("handler %s failed%s", handler, why, exc_info=None if extra or is_said else problem)
        else:
            times = "again" if number == 1 else f"{number} times more"
            what = str(problem) if is_said else f"{name}: {problem}"
            where = f", the last time at {place}" if problem.__traceback__ is not None else ""
            self._log.error("handler %s failed %s%s: %s", handler, times, where, what)


def tell_of_callbacks(loop: AbstractEventLoop, clock: Clock) -> None:
    """What a callback, or a task that nobody awaits, raises on this loop is told as a handler's failure is."""
    failures = Failures(logging.getLogger("loop"), clock)

    def tell(loop: AbstractEventLoop, context: dict[str, Any]) -> None:
        if isinstance(problem := context.get("exception"), Exception):
            failures.tell(_callback_of(context), problem)
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(tell)


def _callback_of(context: dict[str, Any]) -> str:
    """Which function it was, as its author calls it."""
    if (task := context.get("task") or context.get("future")) is not None:
        made = task.get_coro() if isinstance(task, Task) else task
    else:
        made = getattr(context.get("handle"), "_callback", None)
    return str(getattr(made, "__qualname__", "")) or str(context.get("message", "a callback"))[:200]


def failure_of(task: Task[None]) -> BaseException | None:
    """What an async handler raised; also a cancel of something that it awaits, where nobody cancelled the handler."""
    if not task.cancelled():
        return task.exception()
    if task.cancelling():
        return None
    try:
        return task.exception()
    except CancelledError as problem:
        return problem


def remedy_of(problem: BaseException) -> str:
    """What to do about a beginner's mistake with ports, messages and calls; "" where it is none that is known."""
    if isinstance(problem, AttributeError) and problem.name is not None:
        return _attribute_remedy(problem.obj, problem.name, problem)
    if isinstance(problem, TypeError) and (said := _FIELD.match(str(problem))):
        return _field_remedy(said[2], problem)
    if isinstance(problem, AttributeError | TypeError):
        return next((remedy for words, remedy in _REMEDIES if re.match(words, str(problem))), "")
    return ""


def _attribute_remedy(thing: object, name: str, problem: BaseException) -> str:
    """What to do where something was asked for what it has not."""
    if isinstance(thing, CoroutineType):
        return "it is there once the call is awaited; write `await` before the call"
    if isinstance(thing, Publisher) and hasattr(Subscription, name):
        return f"a Publisher only sends; to read its topic declare `Subscription({thing.message.__name__}, ...)`"
    if isinstance(thing, Subscription):
        if hasattr(Publisher, name):
            return f"a Subscription only hears; to send on its topic declare `Publisher({thing.message.__name__}, ...)`"
        if name in thing.message.__annotations__:
            return f"the newest message is `self.{thing.attribute}.latest()`, which is None before the first one"
    for inner in ("message", "goal"):  # of a Stamped and a GoalHandle
        if isinstance(getattr(thing, inner, None), Message) and hasattr(getattr(thing, inner), name):
            return f"it is in the {inner} inside: `.{inner}.{name}`"
    if thing is None and any(look in linecache.getline(*_raised_at(problem)) for look in _LOOKS):
        return "it is None before the first message, and once that is older than its lifespan_s; test for None first"
    return ""


def _field_remedy(field: str, problem: BaseException) -> str:
    """Which message has no such field, or was made without it; "" where the call does not say the class."""
    made = _called(problem)
    if not (isinstance(made, type) and issubclass(made, Message)):
        return ""
    fields = made.__struct_fields__
    if field in fields:
        return f"a {made.__name__} is made with its field {field!r}"
    return f"{made.__name__} has no field {field!r}; {guess(field, fields)}"


def _called(problem: BaseException) -> object:
    """What was called at the place that raised; None where its name is not to be found there."""
    step = problem.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    if step is None:
        return None
    frame = step.tb_frame
    line, _, start, _ = list(frame.f_code.co_positions())[step.tb_lasti // 2]
    text = linecache.getline(frame.f_code.co_filename, line or 0).encode()[start or 0 :].decode()  # counted in bytes
    first, *others = text.partition("(")[0].split(".")
    found = {**frame.f_globals, **frame.f_locals}.get(first)
    for name in others:
        found = getattr(found, name, None)
    return found


def _place(problem: BaseException) -> str:
    """File and line, for people."""
    file, line = _raised_at(problem)
    return f"{Path(file).name}:{line}" if file else "an unknown place"


def _raised_at(problem: BaseException) -> tuple[str, int]:
    """The last step that the user's own code took; the very last where none of it did."""
    steps = [(frame.f_code.co_filename, line) for frame, line in walk_tb(problem.__traceback__)]
    own = [step for step in steps if not step[0].startswith(_RUNTIME)]
    return (own or steps or [("", 0)])[-1]
