"""Answers of the world outside, as a recording keeps them: what `clock.external` gave to a handler, or raised.

Plain values come back as they were: numbers, texts, bytes, lists, tuples, dicts, arrays, messages, dataclasses. What
was asked is not kept, nor is anything that a client is made of: no key and no header gets here. What an environment
variable calls a key, token, secret or password is blotted out of answers, too, where a server repeats it; so is what
an address (`?key=`, `user:password@`) or a header of an error shows of one that came from a file.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import re
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import msgspec

from runtime.clock import Clock, TimeSource, to_s
from runtime.context import current_call
from runtime.errors import NoAnswerError, RecordingError
from runtime.external_call import close_call, no_answer
from runtime.renamed import name_today

T = TypeVar("T")

SLEPT, WOKEN, CANCELLED = "", "woken", "cancelled"
"""In place of an answer: a sleep that was over, or cancelled; a call to the outside that was cancelled."""
SHORTEST_SECRET = 8
"""Characters; a shorter one would blot out words."""
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_HEADER = re.compile(r"(proxy-)?authorization|(x-)?api[-_]key|(set-)?cookie2?", re.IGNORECASE)
_SHOWN = re.compile(
    r"""(?P<kept>
        [?&\#;]([\w-]*(key|token|secret|passw(or)?d|signature|credential)|sig|auth)=
        |((proxy-)?authorization|(x-)?api[-_]key)(["'\\]+\s*[,:=]|\s*[:=])\s*["'\\]*((bearer|basic|token)\s+)?
        |\bbearer\s+(?=[^\s"']*\d)
    )[^\s"'\\&\#,;<>)\]}]{4,}
    |(?P<cookie>(set-)?cookie2?\s*:)[^\r\n"\\]+
    |(?P<address>://)[^/\s@:"]*:[^/\s@"]+(?=@)""",
    re.IGNORECASE | re.VERBOSE,
)
"""A key as addresses, headers and errors about them show it."""
_KIND, _VALUE = "$", "v"


def written(answer: object) -> str:
    """An answer as JSON. Raises RecordingError where it is no plain value."""
    return blotted(json.dumps(_plain(answer), ensure_ascii=False))


def written_failure(problem: BaseException) -> str:
    """What a call raised, as JSON; of its parts those that are plain values."""
    about = {name: value for name, value in vars(problem).items() if _is_plain(value)}
    args = [value if _is_plain(value) else str(value) for value in problem.args]
    return blotted(json.dumps({_KIND: "raised", _VALUE: [_name_of(type(problem)), _plain(args), _plain(about)]}))


def read(text: str) -> Any:
    """The answer again. Raises what the call raised, and RecordingError where it cannot be read."""
    try:
        document = json.loads(text)
        if isinstance(document, dict) and document.get(_KIND) == "raised":
            name, args, about = document[_VALUE]
            problem = _class(name).__new__(_class(name))
            problem.args = tuple(_value(args))
            vars(problem).update(_value(about))
        else:
            return _value(document)
    except (ValueError, KeyError, TypeError, AttributeError) as damage:
        raise RecordingError(f"an answer from outside cannot be read: {damage}") from damage
    raise problem


def blotted(text: str) -> str:
    """The text without what the environment calls secret, and without keys as addresses and headers show them."""
    for name, secret in os.environ.items() if text else ():  # of "", as each report of a healthy node has it, nothing
        if len(secret) >= SHORTEST_SECRET and _SECRET.search(name):
            text = text.replace(secret, "***").replace(json.dumps(secret)[1:-1], "***")
    return _SHOWN.sub(lambda found: f"{found['kept'] or found['cookie'] or found['address']}***", text)


def kept_of(node: str, parameter: str, value: Any) -> Any:
    """A parameter as a recording keeps it: for a key that was typed, the variable from which a replay takes it.

    The name of a variable that is set here, and of a file that lies here, is no key itself.
    """
    if not (isinstance(value, str) and value and _SECRET.search(parameter)) or value.startswith("${"):
        return value
    is_name = value in os.environ or os.path.exists(value)
    return value if is_name else f"${{{node}_{parameter.replace('.', '_')}}}".upper()


def _name_of(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _class(name: str) -> Any:
    """A class that the program has loaded by itself: a recording makes it load nothing."""
    module, _, qualname = name_today(name).partition(":")
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    is_value = dataclasses.is_dataclass(found) or (isinstance(found, type) and issubclass(found, msgspec.Struct))
    if not isinstance(found, type) or not (is_value or issubclass(found, Exception)):
        raise ValueError(f"{name} is no class of values that is loaded here")
    return found


def _is_plain(value: object) -> bool:
    try:
        _plain(value)
    except RecordingError:
        return False
    return True


def _plain(value: Any) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        return [_plain(part) for part in value]
    if kind is dict:
        if all(type(key) is str for key in value) and _KIND not in value:
            return {key: "***" if _HEADER.fullmatch(key) else _plain(part) for key, part in value.items()}
        return {_KIND: "dict", _VALUE: [[_plain(key), _plain(part)] for key, part in value.items()]}
    if kind is tuple:
        return {_KIND: "tuple", _VALUE: [_plain(part) for part in value]}
    if kind is bytes:
        return {_KIND: "bytes", _VALUE: base64.b64encode(value).decode()}
    if kind.__module__ == "numpy" and hasattr(value, "tobytes") and value.dtype.kind in "biufc":
        shape = list(value.shape) if kind.__name__ == "ndarray" else None
        return {_KIND: "array", _VALUE: [value.dtype.str, shape, base64.b64encode(value.tobytes()).decode()]}
    if isinstance(value, msgspec.Struct):
        return {_KIND: _name_of(kind), _VALUE: _plain(msgspec.structs.asdict(value))}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        return {_KIND: _name_of(kind), _VALUE: _plain(fields)}
    raise RecordingError(
        f"a {kind.__name__} came from outside, which is no plain value; give clock.external a call that returns the "
        "text or the numbers of the answer"
    )


def _value(document: Any) -> Any:
    if isinstance(document, list):
        return [_value(part) for part in document]
    if not isinstance(document, dict):
        return document
    if _KIND not in document:
        return {key: _value(part) for key, part in document.items()}
    return _READ.get(document[_KIND], lambda value: _class(document[_KIND])(**_value(value)))(document[_VALUE])


def _array(value: Any) -> Any:
    import numpy as np

    dtype, shape, data = value
    array = np.frombuffer(base64.b64decode(data), np.dtype(dtype))
    return array[0] if shape is None else array.reshape(shape).copy()


_READ: dict[str, Callable[[Any], Any]] = {
    "dict": lambda value: {_value(key): _value(part) for key, part in value},
    "tuple": lambda value: tuple(_value(part) for part in value),
    "bytes": base64.b64decode,
    "array": _array,
}


class AnsweredClock(TimeSource):
    """A node's clock in a virtual run whose calls to the outside are answered by a recording, in its order."""

    def __init__(self, clock: Clock, node: str, answers: Iterable[str]) -> None:
        self._clock = clock
        self._node = node
        self._answers = deque(answers)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)

    def now_ns(self) -> int:
        """The time of that run, ns."""
        return self._clock.now_ns()

    async def answered(self, call: Awaitable[T], latency_s: float, timeout_s: float) -> T:
        """The next recorded answer, `latency_s` later; the call itself is never made.

        Raises RecordingError where the recording has no more.
        """
        if current_call.get() is None:  # on_stop closes a client, say
            return await self._clock.external(call, latency_s, timeout_s=timeout_s)
        close_call(call)
        if not self._answers:
            raise RecordingError(
                f"{self._node} asks the world outside at {to_s(self._clock.now_ns()):.3f} s, and its recorded answers "
                "are used up"
            )
        text = self._answers.popleft()
        try:
            if text == CANCELLED:  # and who asks cancels it now, or waits in vain
                raise no_answer(timeout_s)
            answer: T = read(text)
        except Exception as problem:
            await self._clock.sleep(problem.waited_s if isinstance(problem, NoAnswerError) else latency_s)
            raise
        await self._clock.sleep(latency_s)
        return answer
