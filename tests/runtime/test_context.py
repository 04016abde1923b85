"""What a handler publishes inherits the ages and the cause of what it read."""

from __future__ import annotations

from typing import Any

from nodes.msgs import GuardState, Image, Interrupt, Subtask, Utterance
from runtime.context import AgeRules, HandlerContext, NodeAges, inherit, oldest
from runtime.message import UNKNOWN_NS, Envelope, Message, Stamped


class Seen(Message, kind="state"):
    """A state made from others."""


class Decided(Message):
    """An event made from others."""


def stamped(message: Message, name: str, **fields: Any) -> Stamped[Any]:
    topic, source, seq = name.split(":")
    return Stamped(message, Envelope(topic, source, int(seq), fields.pop("published_ns", 100), **fields))


def published(call: HandlerContext | None, message: type[Message] = Seen, own_ns: int = 0) -> Envelope:
    return inherit(
        call,
        NodeAges(RULES),
        topic="out",
        source="node",
        seq=1,
        now_ns=1_000,
        origin=message.message_origin,
        own_ns=own_ns,
        provenance="script:Node",
    )


def ages(envelope: Envelope) -> dict[str, int]:
    return dict(envelope.origins)


RULES = AgeRules(frozenset({"image"}))


def test_of_two_stamps_the_older_one_counts_and_zero_is_one() -> None:
    assert oldest({"image": 5, "plan": 0}, {"image": 3, "plan": 4}) == {"image": 3, "plan": 0}
    assert oldest({"image": 5}, {"image": UNKNOWN_NS, "lidar": 2}) == {"image": UNKNOWN_NS, "lidar": 2}


def test_outside_of_a_handler_nothing_is_inherited() -> None:
    assert published(None) == Envelope("out", "node", 1, 1_000, provenance="script:Node")


def test_a_state_hands_on_all_its_ages() -> None:
    call = HandlerContext(0, ages=NodeAges(RULES))
    call.read(stamped(Seen(), "seen:vlm:1", origins={"image": 10, "utterance": 20, "plan": 30}))
    assert ages(published(call)) == {"image": 10, "utterance": 20, "plan": 30}


def test_an_event_hands_on_utterance_and_plan_but_not_its_image() -> None:
    call = HandlerContext.of(
        0, {}, stamped(Decided(), "decided:vlm:1", origins={"image": 10, "utterance": 20, "plan": 30}), NodeAges(RULES)
    )
    assert ages(published(call)) == {"utterance": 20, "plan": 30}


def test_the_oldest_of_what_was_read_is_handed_on() -> None:
    call = HandlerContext(0, ages=NodeAges(RULES))
    call.read(stamped(Seen(), "seen:a:1", origins={"image": 50, "plan": 70}))
    call.read(stamped(Seen(), "seen:b:1", origins={"image": 40, "plan": 90}))
    assert ages(published(call)) == {"image": 40, "plan": 70}


def test_an_origin_renews_its_own_slot_only() -> None:
    call = HandlerContext(0, ages=NodeAges(RULES))
    call.read(stamped(Seen(), "seen:a:1", origins={"image": 10, "utterance": 20, "plan": 30}))
    assert ages(published(call, Image, own_ns=900)) == {"image": 900, "utterance": 20, "plan": 30}
    assert ages(published(call, Utterance, own_ns=900)) == {"image": 10, "utterance": 900, "plan": 30}
    assert ages(published(call, Subtask, own_ns=900)) == {"image": 10, "utterance": 20, "plan": 900}
    assert ages(published(call, GuardState, own_ns=900)) == {"image": 10, "utterance": 20, "plan": 30}


def test_the_cause_is_the_triggers_cause_or_else_the_trigger() -> None:
    first = HandlerContext.of(0, {}, stamped(Utterance(speaker="user", text="Ouch!"), "heard:user:7"))
    assert published(first).cause == "heard:user:7"
    second = HandlerContext.of(0, {}, stamped(Decided(), "interrupt:reflex:1", cause="heard:user:7"))
    assert published(second).cause == "heard:user:7"


def test_later_reads_do_not_change_the_cause_of_a_triggered_call() -> None:
    call = HandlerContext.of(0, {}, stamped(Decided(), "decided:vlm:1", published_ns=100))
    call.read(stamped(Interrupt(id="1", depth="stop", text="", by=""), "interrupt:reflex:1", published_ns=500))
    assert published(call).cause == "decided:vlm:1"


def test_the_cause_of_a_tick_is_the_newest_event_that_it_read() -> None:
    call = HandlerContext(0, ages=NodeAges(RULES))
    assert published(call).cause == ""
    call.read(stamped(Decided(), "decided:vlm:2", published_ns=200))
    call.read(stamped(Decided(), "decided:vlm:1", published_ns=100))
    call.read(stamped(Seen(), "seen:vlm:9", published_ns=900))
    assert published(call).cause == "decided:vlm:2"


def test_the_epochs_latched_at_the_start_are_handed_on() -> None:
    assert published(HandlerContext(0, epochs={"planner": 1, "vlm": 2, "policy": 3})).epochs == {
        "planner": 1,
        "vlm": 2,
        "policy": 3,
    }
