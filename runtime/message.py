"""`Message` (frozen, typed), the `Envelope` the framework wraps it in, and `Stamped`: both together.

A message's kind is part of its type. *State* is newest-wins (an image, a joint state); an *event* is ordered and
never overwritten (an utterance, an interrupt). `origin` names the slot of the envelope that this type renews:
an `Image` renews `image_ns`, an `Utterance` `utterance_ns`, a `Subtask` `plan_ns`. A field named `*_ns` is a stamp of
the run's clock, which moves when the message crosses to another host, unless `message_durations` lists it. What
tells of the world outside, a file's name or a full disk, sets `message_is_traced` to False: two runs are equal without.
A large type names in `message_link_codec` what makes it small for the link between two hosts, as "module:Class".
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, TypeVar, dataclass_transform

import msgspec

Kind = Literal["state", "event"]
Origin = Literal["image", "utterance", "plan"]

KINDS: tuple[Kind, ...] = ("state", "event")
ORIGINS: tuple[Origin, ...] = ("image", "utterance", "plan")


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
        origin: Origin | None = None,
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
            if origin not in ORIGINS:
                raise TypeError(f"message {name}: origin {origin!r} is unknown; known: {', '.join(ORIGINS)}")
            cls.message_origin = origin  # type: ignore[attr-defined]  # declared on Message below
        return cls


if TYPE_CHECKING:
    # Type checkers do not inherit `frozen` from a Struct base; without one they take it from the metaclass.

    class Message(metaclass=FrozenMeta):
        """What travels on a topic: a frozen value of typed fields, created with keywords."""

        message_kind: ClassVar[Kind] = "event"
        message_origin: ClassVar[Origin | None] = None
        message_durations: ClassVar[frozenset[str]] = frozenset()
        message_is_traced: ClassVar[bool] = True
        message_link_codec: ClassVar[str] = ""

        @property
        def message_is_urgent(self) -> bool:
            """Whether it is better late than never: it stops a robot."""
            return False

else:

    class Message(msgspec.Struct, metaclass=FrozenMeta):
        """What travels on a topic: a frozen value of typed fields, created with keywords."""

        message_kind: ClassVar[Kind] = "event"
        message_origin: ClassVar[Origin | None] = None
        message_durations: ClassVar[frozenset[str]] = frozenset()
        message_is_traced: ClassVar[bool] = True
        message_link_codec: ClassVar[str] = ""

        @property
        def message_is_urgent(self) -> bool:
            """Whether it is better late than never: it stops a robot."""
            return False


M = TypeVar("M", bound=Message)
M_co = TypeVar("M_co", bound=Message, covariant=True)


@cache
def array_fields(message: type[Message]) -> tuple[str, ...]:
    """The names of its arrays, which make a message large."""
    fields = msgspec.structs.fields(message)  # type: ignore[arg-type]  # a Struct at run time
    return tuple(field.name for field in fields if "numpy.ndarray" in str(field.type))


Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
"""Further than any counter or monotonic clock gets: what a damaged frame says beyond it is not believed."""
Epochs = tuple[Count, Count, Count]
"""The fences passed so far, as (planner, vlm, policy)."""
Stamp = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
"""Of a thing that may be older than the run's clock."""
SeatPlace = Annotated[int, msgspec.Meta(ge=-1, le=2)]


class Envelope(msgspec.Struct, frozen=True, array_like=True):
    """What the framework writes around a message: where from, when, and out of what.

    `image_ns`, `utterance_ns` and `plan_ns` are monotonic stamps of the oldest image, utterance and plan behind the
    message (0: none). `cause` names the event that started the chain as "topic:source:seq". `provenance` says who
    made it: a model with version, a script, or a person.
    """

    topic: str
    source: str
    seq: Count
    published_ns: Count
    image_ns: Stamp = 0
    utterance_ns: Stamp = 0
    plan_ns: Stamp = 0
    epochs: Epochs = (0, 0, 0)
    cause: str = ""
    provenance: str = ""
    seat: SeatPlace = -1  # of the node that made it, in the epoch vector; -1: none

    @property
    def ident(self) -> str:
        """The message's name in a run: "topic:source:seq"."""
        return f"{self.topic}:{self.source}:{self.seq}"

    def later(self, number: int) -> Envelope:
        """The envelope of a message published in the same call, that many numbers after this one."""
        image_ns, utterance_ns, plan_ns = self.image_ns, self.utterance_ns, self.plan_ns
        seq, now_ns, epochs, cause, provenance = (
            self.seq + number,
            self.published_ns,
            self.epochs,
            self.cause,
            self.provenance,
        )
        return Envelope(
            self.topic, self.source, seq, now_ns, image_ns, utterance_ns, plan_ns, epochs, cause, provenance, self.seat
        )  # by place: made for each message, and names cost as much as all the rest


class Stamped(msgspec.Struct, Generic[M_co], frozen=True):
    """A message with its envelope; `Subscription.stamped()` returns it, and a node may keep it."""

    message: M_co
    envelope: Envelope

    def age_s(self, now_ns: int) -> float:
        """Seconds since the message was published."""
        return (now_ns - self.envelope.published_ns) * 1e-9
