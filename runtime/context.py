"""`HandlerContext`: what one run of a handler has read so far, from which everything it publishes inherits age and
cause.

An age that the runtime cannot know is refused, never guessed. A message is as old as what its handler read in that
call: by its trigger, by a port or by `stems_from=`. A node may have been given an image in some other call, and read
none of its topic in this one. Then what it publishes has the age UNKNOWN_NS, which is beyond every limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

import msgspec

from runtime.clock import LONGEST_NS, Clock
from runtime.errors import UserError
from runtime.message import UNKNOWN_NS, Envelope, Epochs, Message, Origins, Stamped, running_call

if TYPE_CHECKING:
    from runtime.execution.worker_view import WorkerView

current_call = cast("ContextVar[HandlerContext | None]", running_call)

_NOTHING: Mapping[str, int] = {}  # never written to
_NO_TOPICS: frozenset[str] = frozenset()
KEPT_READS = 4096
"""Most reads that are kept of one call."""


class ContextLog(msgspec.Struct):
    """What a recorder needs of one handler call, noted while it runs."""

    started_ns: int
    reads: list[str] = msgspec.field(default_factory=list)
    nows_ns: list[int] = msgspec.field(default_factory=list)
    sent: list[str] = msgspec.field(default_factory=list)
    waits: list[tuple[int, str]] = msgspec.field(default_factory=list)
    is_cut: bool = False
    begun: int = 0

    def read(self, port: str, stamped: Stamped[Any] | None) -> None:
        """Note that the handler looked at a port."""
        if len(self.reads) < KEPT_READS:
            self.reads.append(f"{port}={stamped.envelope.ident if stamped is not None else ''}")
        else:
            self.is_cut = True

    def looked_at_clock(self, now_ns: int) -> None:
        """Note that the handler asked for the time."""
        if len(self.nows_ns) < KEPT_READS:
            self.nows_ns.append(now_ns - self.started_ns)
        else:
            self.is_cut = True


class AgeRules(msgspec.Struct, frozen=True):
    """What a graph says of ages."""

    sampled: frozenset[str] = frozenset()
    """Origins of states, such as images; an event does not hand them on, because it stands until the next event."""

    limited: dict[str, tuple[str, ...]] = {}
    """For each topic, the origins whose age one of its subscribers limits."""

    @classmethod
    def of(cls, run_info: Mapping[str, Any]) -> AgeRules:
        """The rules that the run was given."""
        return msgspec.convert(run_info.get("ages", {}), cls)

    def as_data(self) -> dict[str, Any]:
        """The rules as plain data, for `run_info`."""
        return {"sampled": sorted(self.sampled), "limited": {name: list(some) for name, some in self.limited.items()}}


class NodeAges:
    """What a node has been given in any of its calls so far, and so may have kept: by origin, the topics it came by."""

    __slots__ = ("counted", "rules", "topics")

    def __init__(self, rules: AgeRules | None = None) -> None:
        self.rules = rules or AgeRules()
        self.counted = self.rules.sampled.union(*self.rules.limited.values())
        """Those origins of which it is told where their age is not known."""
        self.topics: dict[str, frozenset[str]] = {}

    def handed_on(self, stamped: Stamped[Any]) -> Origins:
        """The origins that whatever is made from this message inherits; from now on the node may have kept it.

        A state hands on all its ages. An event is a decision that stands until the next one. It hands on the utterance
        and the plan behind it; the image that it was made from is its own affair.
        """
        message, envelope = stamped.message, stamped.envelope
        origins = envelope.origins
        if message.message_kind == "event" and not self.rules.sampled.isdisjoint(origins):
            sampled, own = self.rules.sampled, message.message_origin
            origins = {name: stamp_ns for name, stamp_ns in origins.items() if name not in sampled or name == own}
        for name in origins:
            if name in self.counted and envelope.topic not in (known := self.topics.get(name, _NO_TOPICS)):
                self.topics[name] = known | {envelope.topic}
        return origins


class HandlerContext(msgspec.Struct, eq=False):
    """One run of a handler: when it started, under which fence, what it read, and what it may still publish.

    Made for every message: as a Struct it takes a third of the time. `of` makes one that has read its trigger.
    """

    started_ns: int
    epochs: Epochs = {}
    trigger: Stamped[Any] | None = None
    """The message that the handler runs for; None in a timer."""
    ages: NodeAges | None = None
    clock: Clock | None = None
    origins: Origins = {}
    not_before_ns: int = 0
    """In virtual time, when what this call publishes leaves the node."""
    notes: ContextLog | None = None
    """Notes for a recorder; None where there is none."""
    snapshot: dict[str, Stamped[Any] | None] | None = None
    """In a blocking handler: the newest message of each port at its start."""
    view: WorkerView | None = None
    """In a blocking handler beside others: the view of the node that it works on."""
    newest_event_ns: int = -1
    _topics: set[str] | None = None
    _is_stated: bool = False
    _cause: str = ""
    _cause_is_in: Envelope | None = None  # named only where somebody asks

    @classmethod
    def of(
        cls,
        started_ns: int,
        epochs: Epochs,
        trigger: Stamped[Any] | None,
        ages: NodeAges | None = None,
        clock: Clock | None = None,
    ) -> HandlerContext:
        """A call that has read its trigger, where it has one."""
        if ages is None:
            ages = NodeAges()
        if trigger is None:
            return cls(started_ns, epochs, None, ages, clock)
        envelope = trigger.envelope
        call = cls(
            started_ns,
            epochs,
            trigger,
            ages,
            clock,
            _NOTHING,
            0,
            None,
            None,
            None,
            LONGEST_NS,
            None,
            False,
            "",
            envelope,
        )  # by place: made for each message; a trigger is the cause, which later reads do not change
        if envelope.origins or ages.topics:
            call._inherit(trigger, ages)
        return call

    @property
    def cause(self) -> str:
        """The event that started the chain, as "topic:source:seq"; "" for none."""
        if self._cause_is_in is not None:
            self._cause = self._cause_is_in.cause or self._cause_is_in.ident
            self._cause_is_in = None
        return self._cause

    @cause.setter
    def cause(self, name: str) -> None:
        self._cause, self._cause_is_in = name, None

    def read(self, stamped: Stamped[Any]) -> None:
        """Note that the handler looked at this message: what it publishes is as old, and a newer event is its cause."""
        self._inherit(stamped, self._all_ages)
        envelope = stamped.envelope
        if stamped.message.message_kind == "event" and self.newest_event_ns < envelope.published_ns:
            self.newest_event_ns = envelope.published_ns
            self._cause_is_in = envelope

    @property
    def _all_ages(self) -> NodeAges:
        if self.ages is None:
            self.ages = NodeAges()
        return self.ages

    def _inherit(self, stamped: Stamped[Any], ages: NodeAges) -> None:
        origins = ages.handed_on(stamped)
        if ages.topics:
            if self._topics is None:
                self._topics = {stamped.envelope.topic}
            else:
                self._topics.add(stamped.envelope.topic)
        if origins:
            self.origins = oldest(self.origins, origins) if self.origins else origins

    def stating(self, stems_from: Stamped[Any] | Iterable[Stamped[Any]]) -> HandlerContext:
        """The same call for one message of which is said what it stems from, besides what was read."""
        other = HandlerContext(self.started_ns, self.epochs, None, self.ages, self.clock)
        other.trigger, other.origins, other.newest_event_ns = self.trigger, self.origins, self.newest_event_ns
        other._cause, other._cause_is_in = self._cause, self._cause_is_in
        other.not_before_ns, other.notes = self.not_before_ns, self.notes
        other._is_stated = True
        for stamped in _stamped(stems_from):
            other.read(stamped)
        return other

    def inherited(self) -> Origins:
        """The origins of what is published now; UNKNOWN_NS where the node may have kept what it did not read here."""
        ages = self._all_ages
        if self._is_stated or not ages.topics:
            return self.origins
        return unread(ages, self.origins, self._topics or _NO_TOPICS)


def _stamped(stems_from: object) -> tuple[Stamped[Any], ...]:
    """What `stems_from` names. Raises UserError where that is no message with its envelope."""
    if isinstance(stems_from, Stamped):
        return (stems_from,)
    found = tuple(stems_from) if isinstance(stems_from, Iterable) and not isinstance(stems_from, type) else (None,)
    if all(isinstance(one, Stamped) for one in found):
        return found
    raise UserError(
        f"publish(..., stems_from={stems_from!r:.60}): expected a Stamped message or several, as a handler "
        "that takes `Stamped[Image]` is given it; () where nothing is behind it"
    )


def unread(ages: NodeAges, origins: Origins, read: Iterable[str] = _NO_TOPICS) -> Origins:
    """These origins, with UNKNOWN_NS for those that the node was given by topics that are not among the ones read."""
    unknown = [name for name, topics in tuple(ages.topics.items()) if not topics.issubset(read)]
    return {**origins, **dict.fromkeys(unknown, UNKNOWN_NS)} if unknown else origins


def unknown_age(place: str, topic: str, origin: str, kept: Iterable[str]) -> str:
    """What to tell of a message whose age is limited and not known. `kept`: the topics that it may stem from."""
    topics = ", ".join(sorted(kept))
    if not topics:
        return (
            f"{place} publishes {topic!r}, which is refused: what it was made from has an {origin} behind it of an age "
            "that is not known, as the log of its publisher says"
        )
    return (
        f"{place} publishes {topic!r}, which is refused: it may stem from an {origin} that another call was given "
        f"({topics}), and how old that is cannot be known. Read the port in this handler, or keep the Stamped message "
        "and say publish(message, stems_from=kept); stems_from=() says that there is none behind it"
    )


def oldest(one: Origins, other: Origins) -> Origins:
    """The older stamp of each origin."""
    merged = dict(one)
    for name, stamp_ns in other.items():
        merged[name] = min(stamp_ns, merged.get(name, stamp_ns))
    return merged


def captured_ns_of(message: Message, now_ns: int) -> int:
    """When the subject of a message was captured, where the message says so; otherwise now."""
    captured_ns: int | None = getattr(message, "captured_ns", None)
    return now_ns if captured_ns is None else captured_ns


def inherit(
    call: HandlerContext | None,
    ages: NodeAges,
    topic: str,
    source: str,
    seq: int,
    now_ns: int,
    origin: str | None,
    own_ns: int,
    provenance: str,
    seat: str = "",
) -> Envelope:
    """The envelope of a message that this call publishes; `own_ns` renews the origin that its type names."""
    if call is None:  # a thread of the node's own: nobody knows what it looked at
        origins = unread(ages, _NOTHING) if ages.topics else _NOTHING
        epochs, cause = _NOTHING, ""
    else:
        origins, epochs = call.inherited(), call.epochs
        cause = call._cause if call._cause_is_in is None else call.cause  # named once: then it costs no call
    if origin is not None:
        origins = {**origins, origin: own_ns}
    return Envelope(
        topic, source, seq, now_ns, origins, epochs, cause, provenance, seat
    )  # by place: made for each message, and names cost as much as all the rest
