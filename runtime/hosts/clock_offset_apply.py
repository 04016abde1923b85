"""Stamps of another host's clock as stamps of ours, in the envelope and in the message."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from runtime.message import Envelope, Message, Stamped


def shifted(stamped: Stamped[Any], shift_ns: int) -> Stamped[Any]:
    """The same message with every stamp moved; 0 stays 0, for it means that there is none."""
    return Stamped(_message(stamped.message, shift_ns), _envelope(stamped.envelope, shift_ns))


def _envelope(envelope: Envelope, shift_ns: int) -> Envelope:
    return msgspec.structs.replace(
        envelope,
        published_ns=envelope.published_ns + shift_ns,
        image_ns=_moved(envelope.image_ns, shift_ns),
        utterance_ns=_moved(envelope.utterance_ns, shift_ns),
        plan_ns=_moved(envelope.plan_ns, shift_ns),
    )


def _message(message: Any, shift_ns: int) -> Any:
    changes: dict[str, Any] = {}
    kind: type[Message] = type(message)
    for name in stamp_fields(kind):
        value = getattr(message, name)
        if isinstance(value, int):
            changes[name] = _moved(value, shift_ns)
    for name in _nested_fields(kind):
        value = getattr(message, name)
        if isinstance(value, Message):
            changes[name] = _message(value, shift_ns)
        elif isinstance(value, tuple) and value and isinstance(value[0], Message):
            changes[name] = tuple(_message(part, shift_ns) for part in value)
    return msgspec.structs.replace(message, **changes) if changes else message


def _moved(stamp_ns: int, shift_ns: int) -> int:
    return stamp_ns + shift_ns if stamp_ns else 0


@cache
def stamp_fields(message: type[Message]) -> tuple[str, ...]:
    """The fields of a message type that hold a time: named `*_ns`, a number, and not listed as a duration."""
    return tuple(
        field.name
        for field in msgspec.structs.fields(message)  # type: ignore[arg-type]  # a Struct at run time
        if field.name.endswith("_ns") and "tuple" not in str(field.type) and field.name not in message.message_durations
    )


@cache
def _nested_fields(message: type[Message]) -> tuple[str, ...]:
    found = []
    for field in msgspec.structs.fields(message):  # type: ignore[arg-type]  # a Struct at run time
        text = str(field.type)
        is_plain = field.type in (int, float, str, bool) or "Literal" in text or "ndarray" in text
        if not is_plain:
            found.append(field.name)
    return tuple(found)
