"""`Message` (frozen, typed), the `Envelope` the framework wraps it in, and `Stamped`: both together.

A message's kind is part of its type. *State* is newest-wins (an image, a joint state); an *event* is ordered and
never overwritten (an utterance, an interrupt). `origin` names an age that begins with this type and that everything
made from it inherits: with an `Image` the age "image", with an `Utterance` "utterance". A field named `*_ns` is a stamp
of the run's clock, which moves when the message crosses to another host, unless `message_durations` lists it. What
tells of the world outside, a file's name or a full disk, sets `message_is_traced` to False: two runs are equal without.
A large type names in `message_link_codec` what makes it small for the link between two hosts, as "module:Class".
One that cancels what others do sets `message_wants_fences`: somebody has to issue the fences by which it does.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

import msgspec

from runtime.clock import to_s

Kind = Literal["state", "event"]

KINDS: tuple[Kind, ...] = ("state", "event")


@dataclass_transform(frozen_default=True, kw_only_default=True)
class FrozenMeta(msgspec.StructMeta):
    """Makes every message class frozen and keyword-only, for type checkers and at run time."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        kind: Kind | None = None,
        origin: str | None = None,
        **options: Any,
    ) -> FrozenMeta:
        options.setdefault("frozen", True)
        options.setdefault("kw_only", True)
        options.setdefault("eq", True)
        cls = super().__new__(mcls, name, bases, namespace, **options)
        if kind is not None:
            if kind not in KINDS:
                raise TypeError(f"message {name}: kind {kind!r} is unknown; known: {', '.join(KINDS)}")
            cls.message_kind = kind  # type: ignore[attr-defined]  # declared on Message below
        if origin is not None:
            if not origin.isidentifier() or not origin.islower():
                raise TypeError(
                    f"message {name}: origin {origin!r} is no name; expected a lower-case word, like 'image'"
                )
            cls.message_origin = origin  # type: ignore[attr-defined]  # declared on Message below
        return cls


if TYPE_CHECKING:
    # Type checkers do not inherit `frozen` from a Struct base; without one they take it from the metaclass.

    class Message(metaclass=FrozenMeta):
        """A frozen value of typed fields that travels on a topic; created with keywords.

        Fields are plain values, messages, tuples, dicts or numpy arrays. An array is read-only once it is published.
        """

        message_kind: ClassVar[Kind] = "event"
        message_origin: ClassVar[str | None] = None
        message_durations: ClassVar[frozenset[str]] = frozenset()
        message_is_traced: ClassVar[bool] = True
        message_link_codec: ClassVar[str] = ""
        message_wants_fences: ClassVar[bool] = False

        @property
        def message_is_urgent(self) -> bool:
            """Whether a full queue drops it last, and a late one still counts, since it stops a robot."""
            return False

else:

    class Message(msgspec.Struct, metaclass=FrozenMeta):
        """A frozen value of typed fields that travels on a topic; created with keywords.

        Fields are plain values, messages, tuples, dicts or numpy arrays. An array is read-only once it is published.
        """

        message_kind: ClassVar[Kind] = "event"
        message_origin: ClassVar[str | None] = None
        message_durations: ClassVar[frozenset[str]] = frozenset()
        message_is_traced: ClassVar[bool] = True
        message_link_codec: ClassVar[str] = ""
        message_wants_fences: ClassVar[bool] = False

        @property
        def message_is_urgent(self) -> bool:
            """Whether a full queue drops it last, and a late one still counts, since it stops a robot."""
            return False


M = TypeVar("M", bound=Message)
M_co = TypeVar("M_co", bound=Message, covariant=True)


@cache
def fields_of(message: type) -> tuple[msgspec.structs.FieldInfo, ...]:
    """A message's fields, with the names of types written out. Raises what evaluating an annotation raises."""
    fields = msgspec.structs.fields(message)
    return tuple(msgspec.structs.replace(field, type=written_out(field.type)) for field in fields)


def written_out(declared: Any) -> Any:
    """A type with what `type X = ...` names written out, as numpy's NDArray has been such a name since 2.5."""
    origin, arguments = get_origin(declared), get_args(declared)
    named = declared if origin is None else origin
    if type(named).__name__ == "TypeAliasType":
        value = named.__value__
        if arguments:
            given = dict(zip(named.__type_params__, arguments, strict=False))
            value = value[tuple(given[one] for one in value.__parameters__)]
        return written_out(value)
    if origin is None or origin is Literal:
        return declared
    parts = tuple(map(written_out, arguments[:1] if origin is Annotated else arguments))
    if all(part is before for part, before in zip(parts, arguments, strict=False)):
        return declared
    if origin is Annotated:
        return Annotated[parts[0], *arguments[1:]]
    return functools.reduce(operator.or_, parts) if origin in (Union, UnionType) else origin[parts]


@cache
def array_fields(message: type[Message]) -> tuple[str, ...]:
    """Return the names of a message's arrays, which make it large."""
    return tuple(field.name for field in fields_of(message) if "numpy.ndarray" in str(field.type))


Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
"""Further than any counter or monotonic clock gets: what a damaged frame says beyond it is not believed."""
Epochs = Annotated[Mapping[str, Count], msgspec.Meta(max_length=64)]
"""The fences passed so far, by seat; a seat that is not named has seen none."""
Stamp = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
"""Of a thing that may be older than the run's clock."""
Origins = Annotated[Mapping[str, Stamp], msgspec.Meta(max_length=64)]
"""By origin, when the oldest such thing behind a message was captured; not named: there is none behind it."""
UNKNOWN_NS = -(1 << 62)
"""In place of a stamp: there may be such a thing behind the message, and how old it is cannot be known. It is older
than any stamp, so it wins over all others where ages are put together, and is beyond every limit."""


class Envelope(msgspec.Struct, frozen=True, array_like=True):
    """What the framework writes around a message: where from, when, and out of what.

    `origins` are monotonic stamps of the oldest image, utterance, plan, ... behind the message. `cause` names the
    event that started the chain as "topic:source:seq". `provenance` says who made it: a model with version, a script,
    or a person. `seat` is that of the node that made it, or "".
    """

    topic: str
    source: str
    seq: Count
    published_ns: Count
    origins: Origins = {}
    epochs: Epochs = {}
    cause: str = ""
    provenance: str = ""
    seat: str = ""

    @property
    def ident(self) -> str:
        """The message's name in a run: "topic:source:seq"."""
        return f"{self.topic}:{self.source}:{self.seq}"

    def born_ns(self, origin: str) -> int | None:
        """Return when the oldest thing of that origin was captured, in ns; None for none, and where not known."""
        stamp_ns = self.origins.get(origin)
        return None if stamp_ns == UNKNOWN_NS else stamp_ns

    def begun_ns(self, origin: str) -> int:
        """Return the same; in place of None, when the message was published."""
        born_ns = self.born_ns(origin)
        return self.published_ns if born_ns is None else born_ns

    def later(self, number: int) -> Envelope:
        """Return the envelope of a message of the same call, that many numbers after this one."""
        seq, now_ns, epochs, cause, provenance = (
            self.seq + number,
            self.published_ns,
            self.epochs,
            self.cause,
            self.provenance,
        )
        return Envelope(
            self.topic, self.source, seq, now_ns, self.origins, epochs, cause, provenance, self.seat
        )  # by place: made for each message, and names cost as much as all the rest


class Stamped(msgspec.Struct, Generic[M_co], frozen=True):
    """A message with its envelope, which says its source and ages.

    `Subscription.stamped()` returns it, a handler may take it, and a node may keep it.
    """

    message: M_co
    envelope: Envelope

    def age_s(self, now_ns: int | None = None) -> float:
        """Return the seconds since it was published. Raises LookupError outside of a handler, which has a clock."""
        return to_s((_now_ns() if now_ns is None else now_ns) - self.envelope.published_ns)

    def origin_age_s(self, origin: str, now_ns: int | None = None) -> float | None:
        """Return the age in s of the oldest image, utterance, ... behind it: None for none, infinite if not known."""
        stamp_ns = self.envelope.origins.get(origin)
        if stamp_ns is None or stamp_ns == UNKNOWN_NS:
            return None if stamp_ns is None else math.inf
        return to_s((_now_ns() if now_ns is None else now_ns) - stamp_ns)


running_call: ContextVar[Any] = ContextVar("running_call", default=None)
"""The `HandlerContext` of the handler that runs now; `runtime.context` gives it its type."""


def _now_ns() -> int:
    """What the clock of the handler says that runs now."""
    call = running_call.get()
    if call is None or call.clock is None:
        raise LookupError("no handler runs here, so there is no clock; say age_s(clock.now_ns())")
    now_ns: int = call.clock.now_ns()
    return now_ns
