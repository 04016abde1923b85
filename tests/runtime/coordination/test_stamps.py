"""Stamps of another host's clock: every one in envelope and message moves, durations and missing ones do not."""

from __future__ import annotations

import inspect

import msgspec
import pytest

import nodes.msgs
import nodes.sim.messages
import runtime.coordination.fence
import runtime.coordination.health
import runtime.coordination.lease
import runtime.journal.calls
from nodes.hosts.clock_offset import shifted, stamp_fields
from nodes.msgs import GuardState
from runtime.journal.calls import CallRecord, Calls, LogLine
from runtime.message import Envelope, Message, Stamped

MODULES = (
    nodes.msgs,
    runtime.coordination.fence,
    runtime.coordination.lease,
    runtime.coordination.health,
    runtime.journal.calls,
    nodes.sim.messages,
)
TYPES = [
    kind
    for module in MODULES
    for _, kind in inspect.getmembers(module, inspect.isclass)
    if issubclass(kind, Message) and kind is not Message and kind.__module__ == module.__name__
]


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_every_field_in_nanoseconds_is_a_stamp_or_a_declared_duration(kind: type[Message]) -> None:
    for field in msgspec.structs.fields(kind):  # type: ignore[arg-type]  # a Struct at run time
        if field.name.endswith("_ns"):
            is_duration = field.name in kind.message_durations or "tuple" in str(field.type)
            assert (field.name in stamp_fields(kind)) is not is_duration


def test_envelope_and_message_move_and_none_stays_none() -> None:
    envelope = Envelope("guard/state", "guard", 3, published_ns=1000, origins={"image": 900})
    message = GuardState(mode="stopped", reason="", stop_heard_ns=800, held_ns=0)
    moved = shifted(Stamped(message, envelope), -500)
    assert (moved.envelope.published_ns, moved.envelope.born_ns("image"), moved.envelope.born_ns("plan")) == (
        500,
        400,
        None,
    )
    assert (moved.message.stop_heard_ns, moved.message.held_ns) == (300, 0)
    assert moved.envelope.seq == 3


def test_messages_inside_a_message_move_too() -> None:
    call = CallRecord(handler="tick", started_ns=700, took_ns=40, epochs={}, nows_ns=(1, 2))
    calls = Calls(node="vlm", calls=(call,), logs=(LogLine(at_ns=600, level=20, text="x"),))
    moved = shifted(Stamped(calls, Envelope("calls/vlm", "vlm", 1, 1000)), 50).message
    assert (moved.calls[0].started_ns, moved.calls[0].took_ns, moved.calls[0].nows_ns) == (750, 40, (1, 2))
    assert moved.logs[0].at_ns == 650
