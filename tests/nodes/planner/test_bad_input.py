"""Words that mean nothing, or agree to everything: the robot asks or says so, and moves nothing on a guess."""

from __future__ import annotations

import msgspec
import pytest

from nodes.planner.talk.dialogue import Dialogue
from runtime.clock import to_ns
from tests.nodes.planner.heard import hear
from tests.nodes.planner.test_beside_stop import ORDER, touches
from tests.nodes.planner.test_rules import seen

LONG = "so " + " ".join(f"and then I told her {number} times about my cousin's garden" for number in range(200))
SENSELESS = {
    "none": "", "blank": "   ", "a dot": ".", "emoji": "🙂🙂👍", "a hand": "👉🗑️", "2,000 words": LONG,
    "2,000 times one word": "cup " * 2000, "Greek": "βάλε το κόκκινο φλιτζάνι", "Japanese": "赤いカップを捨てて",
    "Arabic": "ضع الكوب الأحمر في السلة", "Cyrillic": "положи красную чашку", "marks": "?!?!?!", "a zero": "\0",
    "combining": "e" + "\u0301" * 500,
}  # fmt: skip


@pytest.mark.parametrize("text", SENSELESS.values(), ids=list(SENSELESS))
def test_what_means_nothing_moves_nothing(text: str) -> None:
    plan, reply = hear(Dialogue(), text, seen(), to_ns(1.0))
    assert touches(plan) == []
    assert reply or not any(letter.isalnum() for letter in text), "who was spoken to answers"


@pytest.mark.parametrize("text", SENSELESS.values(), ids=list(SENSELESS))
def test_what_means_nothing_adds_nothing_to_an_order(text: str) -> None:
    plan, _ = hear(Dialogue(), ORDER, seen(), to_ns(1.0))
    plan, _ = hear(plan, text, seen(), to_ns(3.0))
    assert set(touches(plan)) <= {"red"}


@pytest.mark.parametrize(
    "text", ["Put the cup in the bin", "Put it in the bin", "Take that one", "Clean up a bit", "Hm"]
)
def test_who_says_yes_to_everything_has_chosen_nothing(text: str) -> None:
    plan, _ = hear(Dialogue(), text, seen(), to_ns(1.0))
    for number in range(10):
        plan, _ = hear(plan, "Yes", seen(), to_ns(5.0 + 5.0 * number))
        assert len(touches(plan)) != 1, "of several cups one was guessed"


@pytest.mark.parametrize("number", ["9" * 30, "9" * 5000, "²", "①", "٣", "0", "-3", "2.5"])
def test_a_number_of_any_kind_is_heard_and_goes_into_a_message(number: str) -> None:
    plan, reply = hear(Dialogue(), f"Put {number} cups in the bin", seen(), to_ns(1.0))
    assert reply
    assert msgspec.msgpack.encode(plan.subtask)
