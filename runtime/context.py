"""`HandlerContext`: what one run of a handler has read so far, from which everything it publishes inherits age and
cause."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from runtime.context_log import ContextLog
from runtime.message import Envelope, Epochs, Message, Stamped
from runtime.snapshot import NodeSnapshot

current_call: ContextVar[HandlerContext | None] = ContextVar("current_call", default=None)


_NO_EPOCHS: Epochs = (0, 0, 0)


class HandlerContext:
    """One run of a handler: when it started, under which fence, what it read, and what it may still publish."""

    __slots__ = (
        "_cause",
        "_cause_is_in",
        "epochs",
        "image_ns",
        "newest_event_ns",
        "not_before_ns",
        "notes",
        "plan_ns",
        "snapshot",
        "started_ns",
        "trigger",
        "utterance_ns",
        "view",
    )

    def __init__(self, started_ns: int, epochs: Epochs = (0, 0, 0), trigger: Stamped[Any] | None = None) -> None:
        self.started_ns = started_ns
        self.epochs = epochs
        self.trigger = trigger
        self._cause = ""
        self._cause_is_in: Envelope | None = None  # named only where somebody asks
        self.not_before_ns = 0  # virtual time: when what this call publishes leaves the node
        self.notes: ContextLog | None = None  # where a recorder wants to know
        self.snapshot: dict[str, Stamped[Any] | None] | None = (
            None  # of a blocking handler: port -> newest at its start
        )
        self.view: NodeSnapshot | None = None  # of a blocking handler beside others: the node as it sees it
        if trigger is None:
            self.image_ns = self.utterance_ns = self.plan_ns = self.newest_event_ns = 0
            return
        envelope = self._cause_is_in = trigger.envelope
        self.image_ns = envelope.image_ns if trigger.message.message_kind == "state" else 0
        self.utterance_ns = envelope.utterance_ns
        self.plan_ns = envelope.plan_ns
        self.newest_event_ns = -1  # a trigger is the cause; later reads do not change it

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
        """Note that the handler looked at this message.

        A state hands on all its ages. An event is a decision that stands until the next one: it hands on the
        utterance and the plan behind it, while the image that it was made from is its own affair.
        """
        envelope = stamped.envelope
        kind = stamped.message.message_kind
        if kind == "state":
            self.image_ns = oldest(self.image_ns, envelope.image_ns)
        self.utterance_ns = oldest(self.utterance_ns, envelope.utterance_ns)
        self.plan_ns = oldest(self.plan_ns, envelope.plan_ns)
        if kind == "event" and 0 <= self.newest_event_ns < envelope.published_ns:
            self.newest_event_ns = envelope.published_ns
            self._cause_is_in = envelope


def oldest(one_ns: int, other_ns: int) -> int:
    """The smaller of two stamps, where 0 means none."""
    if not one_ns or not other_ns:
        return one_ns or other_ns
    return min(one_ns, other_ns)


def captured_ns_of(message: Message, now_ns: int) -> int:
    """When what a message is about was captured, where it says so; otherwise now."""
    return getattr(message, "captured_ns", 0) or now_ns


def inherit(
    call: HandlerContext | None,
    topic: str,
    source: str,
    seq: int,
    now_ns: int,
    origin: str | None,
    own_ns: int,
    provenance: str,
    seat: int = -1,
) -> Envelope:
    """The envelope of a message that this call publishes; `own_ns` renews the slot that its type names."""
    if call is None:
        image_ns = utterance_ns = plan_ns = 0
        epochs, cause = _NO_EPOCHS, ""
    else:
        image_ns, utterance_ns, plan_ns = call.image_ns, call.utterance_ns, call.plan_ns
        epochs = call.epochs
        cause = call._cause if call._cause_is_in is None else call.cause  # named once: then it costs no call
    if origin is not None:
        if origin == "image":
            image_ns = own_ns
        elif origin == "utterance":
            utterance_ns = own_ns
        else:
            plan_ns = own_ns
    return Envelope(
        topic, source, seq, now_ns, image_ns, utterance_ns, plan_ns, epochs, cause, provenance, seat
    )  # by place: made for each message, and names cost as much as all the rest
