"""The offset between the clocks of two hosts, as bounds that hold whatever the delays of the network are."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from runtime.message import UNKNOWN_NS, Envelope, Message, Stamped, fields_of

DRIFT = 200e-6
"""How far two clocks may drift apart, as a share of the time that passes; crystals keep within 100 ppm each."""


TRUST_NS = 100_000_000.0
"""How much younger than it is a message may seem, where the ways out and back may differ that much, ns."""


class ClockOffset:
    """Bounds of `other clock - own clock`, in ns, from questions that the other host answered with its time.

    An answer stamped `there_ns` to a question sent at `sent_ns` and answered by `received_ns` proves that the offset
    lay between `there_ns - received_ns` and `there_ns - sent_ns`. Bounds of several answers are intersected, each
    widened by the drift since its question.
    """

    def __init__(self) -> None:
        self._low_ns = 0.0
        self._high_ns = 0.0
        self._at_ns = 0
        self.answers = 0
        self.jumps = 0
        """How often the bounds contradicted each other: the other host was restarted, or its clock was halted."""

    def answered(self, sent_ns: int, there_ns: int, received_ns: int) -> None:
        """Take in one answer."""
        slack_ns = DRIFT * (received_ns - sent_ns)
        low, high = there_ns - received_ns - slack_ns, there_ns - sent_ns + slack_ns
        if self.answers:
            drift_ns = DRIFT * (received_ns - self._at_ns)
            old_low, old_high = self._low_ns - drift_ns, self._high_ns + drift_ns
            if low <= old_high and old_low <= high:
                low, high = max(low, old_low), min(high, old_high)
            else:
                self.jumps += 1
        self._low_ns, self._high_ns, self._at_ns = low, high, received_ns
        self.answers += 1

    @property
    def is_known(self) -> bool:
        """Whether any answer has come."""
        return self.answers > 0

    def error_ns(self, now_ns: int) -> float:
        """How far a moved stamp may be wrong either way: half of the distance between the bounds."""
        return (self._high_ns - self._low_ns) / 2 + DRIFT * max(0, now_ns - self._at_ns)

    def there_ns(self, now_ns: int) -> int:
        """The least time that the other clock shows while this one shows `now_ns`."""
        return round(now_ns + self._low_ns - DRIFT * max(0, now_ns - self._at_ns))

    def shift_ns(self, now_ns: int) -> int:
        """What turns a stamp of the other host into one of this host, too young by at most `TRUST_NS`."""
        middle = (self._low_ns + self._high_ns) / 2
        oldest = self._high_ns + DRIFT * max(0, now_ns - self._at_ns)
        return -round(max(middle, oldest - TRUST_NS))


def shifted(stamped: Stamped[Any], shift_ns: int) -> Stamped[Any]:
    """The same message with every stamp moved; 0 stays 0, which means that there is none."""
    return Stamped(_message(stamped.message, shift_ns), _envelope(stamped.envelope, shift_ns))


def _envelope(envelope: Envelope, shift_ns: int) -> Envelope:
    return msgspec.structs.replace(
        envelope,
        published_ns=envelope.published_ns + shift_ns,
        origins={
            name: stamp_ns if stamp_ns == UNKNOWN_NS else stamp_ns + shift_ns
            for name, stamp_ns in envelope.origins.items()
        },
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
    """The fields of a message type that hold a time: numbers named `*_ns` that are not listed as durations."""
    return tuple(
        field.name
        for field in fields_of(message)
        if field.name.endswith("_ns") and "tuple" not in str(field.type) and field.name not in message.message_durations
    )


@cache
def _nested_fields(message: type[Message]) -> tuple[str, ...]:
    found = []
    for field in fields_of(message):
        text = str(field.type)
        is_plain = field.type in (int, float, str, bool) or "Literal" in text or "ndarray" in text
        if not is_plain:
            found.append(field.name)
    return tuple(found)
