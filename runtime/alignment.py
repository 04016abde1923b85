"""Inputs of one moment: `aligned` runs a handler when their stamps meet, and `Interpolate` reads between two readings.

Both are ordinary handlers underneath: one call for each message, in both clocks. So a replay is exact, and ages are
those of all that was read. The stamp of a message is its `captured_ns` where it has one, else when it was published.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, overload

import msgspec

from runtime.clock import to_ns
from runtime.context import captured_ns_of, current_call
from runtime.errors import UserError
from runtime.message import M, Message, Stamped
from runtime.node import Node, on
from runtime.ports import Subscription
from runtime.qos import is_number

M2 = TypeVar("M2", bound=Message)
M3 = TypeVar("M3", bound=Message)
N = TypeVar("N")
A = TypeVar("A", bound=Message, covariant=True)
B = TypeVar("B", bound=Message, covariant=True)
C = TypeVar("C", bound=Message, covariant=True)

MOST_KEPT = 64
"""Messages of one input that wait for the others; of more the oldest is left out, and counted."""
_MARK = "__polyrhythm_alignment__"


class Interpolate(Generic[M]):
    """An input of `aligned` that is read at the first input's stamp, between the two readings around it.

    Numbers with a fraction are interpolated linearly, also in tuples and arrays; all else is that of the nearer
    reading. Angles that wrap are not known as such. Readings further apart than `longest_gap_s` are no neighbours.
    Raises UserError for what is no subscription, and for a gap that is not positive.
    """

    def __init__(self, port: Subscription[M], *, longest_gap_s: float = 0.5) -> None:
        _check_port(port, "Interpolate")
        if not (is_number(longest_gap_s) and 0 < longest_gap_s <= 60):
            raise UserError(f"Interpolate(longest_gap_s={longest_gap_s!r}): expected more than 0 s, and at most 60")
        self.port = port
        self.longest_gap_s = longest_gap_s


class AlignedMark2(Protocol[A, B]):
    """Marks a method that takes one message of each input."""

    def __call__(self, method: Callable[[N, A, B], None], /) -> Callable[[N, Stamped[Any]], None]: ...


class AlignedMark3(Protocol[A, B, C]):
    """Marks a method that takes one message of each input."""

    def __call__(self, method: Callable[[N, A, B, C], None], /) -> Callable[[N, Stamped[Any]], None]: ...


class Alignment(msgspec.Struct, frozen=True):
    """How the inputs of one handler are read, as data: for `check`, for `graph` and for the recording."""

    ports: tuple[Subscription[Any], ...]
    tolerance_s: float
    gaps_s: tuple[float | None, ...]  # longest gap between two readings of an interpolated input; None: taken as it is

    def as_data(self) -> dict[str, Any]:
        """By the ports' declared topics."""
        return {
            "topics": [port.topic for port in self.ports],
            "tolerance_s": self.tolerance_s,
            "interpolated_over_s": list(self.gaps_s),
        }

    def words(self) -> str:
        """For people: "colour with depth within 20 ms, posture interpolated over at most 0.5 s"."""
        said = [
            f"{port.attribute} interpolated over at most {gap_s:g} s"
            if gap_s is not None
            else f"{port.attribute} within {self.tolerance_s * 1000:g} ms"
            for port, gap_s in zip(self.ports[1:], self.gaps_s[1:], strict=True)
        ]
        return f"{self.ports[0].attribute} with {', '.join(said)}"


@overload
def aligned(
    one: Subscription[M], two: Subscription[M2] | Interpolate[M2], /, *, tolerance_s: float
) -> AlignedMark2[M, M2]: ...
@overload
def aligned(
    one: Subscription[M],
    two: Subscription[M2] | Interpolate[M2],
    three: Subscription[M3] | Interpolate[M3],
    /,
    *,
    tolerance_s: float,
) -> AlignedMark3[M, M2, M3]: ...
@overload
def aligned(
    one: Subscription[Any], /, *others: Subscription[Any] | Interpolate[Any], tolerance_s: float
) -> Callable[[Callable[..., None]], Callable[[Any, Stamped[Any]], None]]: ...
def aligned(one: Subscription[Any], /, *others: Subscription[Any] | Interpolate[Any], tolerance_s: float) -> Any:
    """Run the method for a message of the first input with those of the others whose stamps are nearest to its own.

    It is decided once each other input has brought a message at least as new, so that none nearer can come. A message
    of the first input that finds no other within `tolerance_s` (0 to 60 s) is left out; the log tells how many. Each
    is used once at most, in the order of the first input. The method is plain, and takes one message of each input. A
    `Subscription` of states should be deep enough to keep each: `QoS(depth=10)`. Raises UserError for what cannot be.
    """
    if not others:
        raise UserError("@aligned takes two inputs or more; for one alone write @on(port)")
    if not (is_number(tolerance_s) and 0 <= tolerance_s <= 60):
        raise UserError(f"aligned(tolerance_s={tolerance_s!r}): expected 0 to 60 s")
    inputs = [one, *others]
    ports = tuple(part.port if isinstance(part, Interpolate) else part for part in inputs)
    for port in ports:
        _check_port(port, "@aligned")
    if len({id(port) for port in ports}) < len(ports):
        raise UserError("@aligned names one port twice; each input is a port of its own")
    gaps_s = tuple(part.longest_gap_s if isinstance(part, Interpolate) else None for part in inputs)
    alignment = Alignment(ports, tolerance_s, gaps_s)

    def mark(method: Callable[..., None]) -> Callable[[Any, Stamped[Any]], None]:
        if inspect.iscoroutinefunction(method):
            raise UserError(f"{method.__qualname__}: an aligned handler is plain; let it start what takes long")
        parameters = [one for one in inspect.signature(method).parameters.values() if one.default is one.empty]
        if len(parameters) != len(ports) + 1:
            names = ", ".join(port.message.__name__.lower() for port in ports)
            raise UserError(f"{method.__qualname__}: expected one message of each input, as in (self, {names})")
        key = f"_aligned_{method.__name__}"

        def take(self: Node, stamped: Stamped[Any]) -> None:
            meeting: _Meeting | None = self.__dict__.get(key)
            if meeting is None:
                meeting = self.__dict__[key] = _Meeting(alignment, self)
            for messages in meeting.take(stamped):
                method(self, *messages)

        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(take, name, getattr(method, name))
        setattr(take, "__signature__", inspect.signature(take))  # noqa: B010  # not that of the method that it wraps
        setattr(take, "__wrapped__", method)  # noqa: B010  # by which file and line are found
        setattr(take, _MARK, alignment)
        marked: Callable[[Any, Stamped[Any]], None] = on(*ports)(take)
        return marked

    return mark


def alignments_of(cls: type[Node]) -> dict[str, Alignment]:
    """The aligned handlers of a node class, by name."""
    found = ((name, getattr(getattr(cls, name, None), _MARK, None)) for name in dir(cls))
    return {name: one for name, one in found if isinstance(one, Alignment)}


@dataclass
class _Meeting:
    """The messages of one node's aligned handler that wait for each other."""

    alignment: Alignment
    node: Node
    waiting: dict[str, deque[tuple[int, Stamped[Any]]]] = field(default_factory=dict)  # by topic, oldest stamp first
    alone: int = 0

    def __post_init__(self) -> None:
        self.topics = [getattr(self.node, port.attribute).topic for port in self.alignment.ports]
        self.waiting = {topic: deque() for topic in self.topics}

    def take(self, stamped: Stamped[Any]) -> Iterator[tuple[Message, ...]]:
        """Take in a message; the messages of each moment that is complete by it."""
        envelope = stamped.envelope
        kept = self.waiting[envelope.topic]
        stamp_ns = captured_ns_of(stamped.message, envelope.published_ns)
        later = []
        while kept and kept[-1][0] > stamp_ns:  # it was overtaken on its way
            later.append(kept.pop())
        kept.append((stamp_ns, stamped))
        kept.extend(reversed(later))
        if len(kept) > MOST_KEPT:
            kept.popleft()
            if envelope.topic == self.topics[0]:
                self._leave_out()
        first, *others = (self.waiting[topic] for topic in self.topics)
        while first and all(other and other[-1][0] >= first[0][0] for other in others):
            at_ns, leading = first.popleft()
            found = [
                self._nearest(other, at_ns) if gap_s is None else self._between(other, at_ns, to_ns(gap_s))
                for other, gap_s in zip(others, self.alignment.gaps_s[1:], strict=True)
            ]
            if any(one is None for one in found):
                self._leave_out()
                continue
            call = current_call.get()
            read = [leading, *(stamped for one in found if one is not None for stamped in one[1])]
            for part in read if call is not None else ():
                call.read(part)  # type: ignore[union-attr]  # there is a call
            yield (leading.message, *(one[0] for one in found if one is not None))

    def _nearest(
        self, kept: deque[tuple[int, Stamped[Any]]], at_ns: int
    ) -> tuple[Message, tuple[Stamped[Any], ...]] | None:
        while len(kept) > 1 and abs(kept[1][0] - at_ns) <= abs(kept[0][0] - at_ns):
            kept.popleft()
        if abs(kept[0][0] - at_ns) > to_ns(self.alignment.tolerance_s):
            return None
        stamped = kept.popleft()[1]
        return stamped.message, (stamped,)

    def _between(
        self, kept: deque[tuple[int, Stamped[Any]]], at_ns: int, longest_ns: int
    ) -> tuple[Message, tuple[Stamped[Any], ...]] | None:
        while len(kept) > 1 and kept[1][0] <= at_ns:
            kept.popleft()
        before_ns, before = kept[0]
        if before_ns == at_ns:
            return before.message, (before,)
        if before_ns > at_ns or len(kept) < 2 or kept[1][0] - before_ns > longest_ns:
            return None
        after_ns, after = kept[1]
        share = (at_ns - before_ns) / (after_ns - before_ns)
        return interpolated(before.message, after.message, share), (before, after)

    def _leave_out(self) -> None:
        self.alone += 1
        if self.alone & (self.alone - 1) == 0:  # the first, the second, the fourth...
            self.node.log.warning(
                "%d messages of %s met none of %s", self.alone, self.topics[0], ", ".join(self.topics[1:])
            )


def interpolated(before: M, after: M, share: float) -> M:
    """A message between two, at that share of the way from 0 to 1.

    Numbers with a fraction lie between both, also in tuples and arrays of one length; all else is of the nearer one.
    """
    nearer = before if share < 0.5 else after
    names: tuple[str, ...] = type(before).__struct_fields__
    values = {name: _mix(getattr(before, name), getattr(after, name), share) for name in names}
    mixed: M = msgspec.structs.replace(
        nearer,  # type: ignore[type-var]  # a Struct at run time
        **{name: value for name, value in values.items() if value is not None},
    )
    return mixed


def _mix(one: object, other: object, share: float) -> Any:
    """None where the nearer one's is to be taken."""
    if isinstance(one, float) and isinstance(other, float):
        return one + (other - one) * share
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other) and one:
        parts = [_mix(a, b, share) for a, b in zip(one, other, strict=True)]
        return None if any(part is None for part in parts) else tuple(parts)
    kind = getattr(getattr(one, "dtype", None), "kind", "")
    if kind == "f" and getattr(one, "shape", None) == getattr(other, "shape", ()):
        dtype = one.dtype  # type: ignore[attr-defined]  # an array
        return (one + (other - one) * share).astype(dtype)  # type: ignore[operator]
    return None


def _check_port(port: object, where: str) -> None:
    if not isinstance(port, Subscription):
        raise UserError(f"{where} takes subscriptions, not {port!r}; declare image = Subscription(Image, 'image')")
