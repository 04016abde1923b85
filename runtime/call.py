"""`Call`: what one run of a handler has read so far, from which everything it publishes inherits age and cause."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from runtime.call_notes import CallNotes
from runtime.message import Envelope, Epochs, Stamped
from runtime.worker_view import WorkerView

current_call: ContextVar[Call | None] = ContextVar("current_call", default=None)


class Call:
    """One run of a handler: when it started, under which fence, what it read, and what it may still publish."""

    __slots__ = (
        "cause",
        "epochs",
        "image_ns",
        "newest_event_ns",
        "not_before_ns",
        "notes",
        "plan_ns",
        "reads",
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
        self.image_ns = self.utterance_ns = self.plan_ns = 0
        self.newest_event_ns = 0
        self.cause = ""
        self.not_before_ns = 0  # virtual time: when what this call publishes leaves the node
        self.reads: list[str] = []
        self.notes: CallNotes | None = None  # where a recorder wants to know
        self.snapshot: dict[str, Stamped[Any] | None] | None = (
            None  # of a blocking handler: port -> newest at its start
        )
        self.view: WorkerView | None = None  # of a blocking handler beside others: the node as it sees it
        if trigger is not None:
            self.read(trigger)
            self.cause = trigger.envelope.cause or trigger.envelope.ident
            self.newest_event_ns = -1  # a trigger is the cause; later reads do not change it

    def read(self, stamped: Stamped[Any]) -> None:
        """Note that the handler looked at this message.

        A state hands on all its ages. An event is a decision that stands until the next one: it hands on the
        utterance and the plan behind it, while the image that it was made from is its own affair.
        """
        envelope = stamped.envelope
        self.reads.append(envelope.ident)
        kind = stamped.message.message_kind
        if kind == "state":
            self.image_ns = oldest(self.image_ns, envelope.image_ns)
        self.utterance_ns = oldest(self.utterance_ns, envelope.utterance_ns)
        self.plan_ns = oldest(self.plan_ns, envelope.plan_ns)
        if kind == "event" and 0 <= self.newest_event_ns < envelope.published_ns:
            self.newest_event_ns = envelope.published_ns
            self.cause = envelope.cause or envelope.ident


def oldest(one_ns: int, other_ns: int) -> int:
    """The smaller of two stamps, where 0 means none."""
    if not one_ns or not other_ns:
        return one_ns or other_ns
    return min(one_ns, other_ns)


def inherit(
    call: Call | None,
    *,
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
    image_ns, utterance_ns, plan_ns = (call.image_ns, call.utterance_ns, call.plan_ns) if call else (0, 0, 0)
    if origin == "image":
        image_ns = own_ns
    elif origin == "utterance":
        utterance_ns = own_ns
    elif origin == "plan":
        plan_ns = own_ns
    return Envelope(
        topic=topic,
        source=source,
        seq=seq,
        published_ns=now_ns,
        image_ns=image_ns,
        utterance_ns=utterance_ns,
        plan_ns=plan_ns,
        epochs=call.epochs if call else (0, 0, 0),
        cause=call.cause if call else "",
        provenance=provenance,
        seat=seat,
    )
