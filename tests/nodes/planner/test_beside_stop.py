"""Claims about `nodes/planner/talk/beside_stop.py`: what is said beside a stop waits, or forbids what was under way."""

from __future__ import annotations

import pytest

from nodes.interrupts.intent import beside_stop, understand
from nodes.planner.talk.dialogue import Dialogue
from runtime.clock import to_ns
from tests.nodes.planner.heard import given_up, hear
from tests.nodes.planner.test_referents import holding
from tests.nodes.planner.test_rules import seen, works_on
from tests.support.sentences import sentence

ORDER = "Put the red cup in the bin"

BLUE_INSTEAD = (
    "Stop! Not the red cup, the blue cup!", "Stop, the blue one.", "Stop! I meant the blue cup.",
    "No, stop! The blue one!",
    "Stop! The blue cup instead.", "Halt! Blue, not red!", "Stop! Only the blue cup.", "No, stop, I said the blue cup!",
    "stop not the red cup the blue cup", "Stop! Put the blue cup in the bin instead.", "Stop, the blue cup, I said!",
    "Ouch! The blue one, not the red one!", "Hold it, the blue one.", "Stop! Not the red one, but the blue one.",
)  # fmt: skip
LEFT_ALONE = (
    "Stop, not that one!", "Stop! Not the red one.", "Stop! Wrong cup!", "Stop! Don't touch the red cup.",
    "Stop. Anna is still drinking from the red cup.", "Wait, stop, the red cup stays here.",
    "Stop, the red one is mine!",
    "Stop! I will do the red one myself.", "Stop, we still need that one!", "Please don't touch that cup.",
)  # fmt: skip
UNREAD = (
    "Stop! That is my favourite.", "Stop! Frobnicate the gloop.", "Stop! I want to wash it first.",
    "Stop! It is hot!", "Whoa, stop! It's not empty!", "Stop! Nicht die rote Tasse!", "Stop the red cup!",
    "Watch out for the red cup!", "Stop touching the red cup!", "Stop! Not before I have finished it.",
    "Stop! 🙂🙂 zzz", "Stop! Isn't the red cup still full?", "Stop! The bottle!", "Hey, the ball!",
    "Watch out, the ball!",
)  # fmt: skip
NOTHING_ELSE = (
    "Stop!", "Stop it, please.", "Stop right there!", "Stop! My toe!", "Ouch! That's my toe!",
    "Stop, you're hurting me!",
    "Stop doing that!", "No! Stop! Don't!", "Stop for a second, please.", "Stop the arm, please.", "Let go of me!",
)  # fmt: skip


def after(*texts: str) -> tuple[Dialogue, str]:
    """The plan and the last answer, where the red cup is in the hand from the order on."""
    plan, reply = hear(Dialogue(), ORDER, seen(), to_ns(1.0))
    for number, text in enumerate(texts):
        plan, reply = hear(plan, text, holding(), to_ns(20.0 + 5.0 * number))
    return plan, reply


def touches(plan: Dialogue) -> list[str]:
    """The colours of the cups that the robot would work on now, but for what it only puts back."""
    task = plan.subtask
    if task is None or task.state != "work" or task.skill == "put_back":
        return []
    left = {one.colour for one in task.excluding}
    return sorted({one.colour for one in task.things} - left)


@pytest.mark.parametrize("text", BLUE_INSTEAD)
def test_a_correction_beside_a_stop_is_taken_on_as_paused_and_said(text: str) -> None:
    assert understand(text).wants == "stop"
    plan, reply = after(text)
    assert reply.endswith(
        sentence("planner.told_as_paused", what="put back the red cup, then put the blue cup in the bin")
    )
    plan, _ = hear(plan, "Go on", holding(), to_ns(30.0))
    assert touches(plan) == ["blue"]


@pytest.mark.parametrize("text", ["Stop! The blue one!", "Oh no, the blue cup!"])
def test_a_cry_that_names_one_of_several_asks_about_that_one(text: str) -> None:
    plan, _ = hear(Dialogue(), "Put all the cups in the bin", seen(), to_ns(1.0))
    assert hear(plan, text, holding(), to_ns(20.0))[1].endswith(
        sentence("planner.whether_still", what="put the blue cup in the bin")
    )


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_what_is_to_be_left_is_left_when_the_robot_goes_on(text: str) -> None:
    plan, reply = after(text)
    assert reply.startswith(sentence("planner.leaves_a_thing", what="red cup"))
    plan, _ = hear(plan, "Go on", holding(), to_ns(30.0))
    assert touches(plan) == []


@pytest.mark.parametrize("text", UNREAD)
def test_what_cannot_be_read_forbids_what_was_under_way_and_is_asked(text: str) -> None:
    asked = sentence("planner.whether_still", what="put the red cup in the bin")
    plan, reply = after(text)
    assert reply.endswith(asked)
    assert touches(plan) == []
    plan, reply = hear(plan, "Go on", holding(), to_ns(30.0))
    assert (reply, touches(plan)) == (asked, [])  # who lifts the stop has answered nothing
    assert touches(hear(plan, "Yes", holding(), to_ns(35.0))[0]) == ["red"]
    assert touches(hear(plan, "No", holding(), to_ns(35.0))[0]) == []
    assert touches(given_up(plan, to_ns(90.0))[0]) == []


@pytest.mark.parametrize("text", NOTHING_ELSE)
def test_a_stop_alone_changes_no_plan(text: str) -> None:
    assert beside_stop(text) == ""
    plan, reply = after(text)
    assert reply == ""
    assert touches(plan) == ["red"]


def test_an_addition_beside_a_stop_comes_behind_what_was_under_way() -> None:
    plan, _ = after("Stop! And then the blue cup.", "Go on")
    assert [one.things[0].colour for one in plan.orders] == ["red", "blue"]


def test_a_stop_between_two_sentences_takes_back_the_first() -> None:
    assert beside_stop("Go to the table. Wait, no, go to the bin.") == "Go to the table. Wait, no, go to the bin."


@pytest.mark.parametrize(
    "text", ["The red cup is half full.", "It is hot.", "Anna takes the red cup.", "The red one has a crack."]
)
def test_i_see_is_never_said_of_what_is_worked_on(text: str) -> None:
    plan, reply = after(text)
    assert reply == sentence("planner.whether_still", what="put the red cup in the bin")
    assert touches(plan) == []


@pytest.mark.parametrize(
    "text",
    [
        "I will do the white one myself.", "The white one is mine.", "Let me do the white.", "I'm doing the white one.",
        "I take care of the white cup.", "White is mine.",
    ],
)  # fmt: skip
def test_what_a_person_owns_or_does_is_left(text: str) -> None:
    plan, _ = hear(Dialogue(), "Put all the cups in the bin", seen(), to_ns(1.0))
    plan, reply = hear(plan, text, holding(), to_ns(20.0))
    assert reply == sentence("planner.leaves_a_thing", what="white cup")
    assert [one.colour for one in works_on(plan).excluding] == ["white"]


def test_it_is_what_was_said_to_be_somebodys_and_not_what_the_robot_does() -> None:
    plan, _ = hear(Dialogue(), "Put all the cups in the bin", seen(), to_ns(1.0))
    plan, _ = hear(plan, "Anna's cup is the white one.", holding(), to_ns(20.0))
    plan, _ = hear(plan, "Leave it.", holding(), to_ns(25.0))
    assert [one.colour for one in works_on(plan).excluding] == ["white"]


@pytest.mark.parametrize("text", ["Only the red one.", "Only the red cup.", "Just the red cup, please."])
def test_only_one_is_only_that_one(text: str) -> None:
    plan, _ = hear(Dialogue(), "Put all the cups in the bin", seen(), to_ns(1.0))
    plan, _ = hear(plan, text, seen(), to_ns(20.0))
    assert [(one.colour, one.count) for order in plan.orders for one in order.things] == [("red", 1)]


@pytest.mark.parametrize(
    "text",
    [
        "First the red, then the blue.", "First the red cup, then the blue cup.",
        "First the red one and then the blue one.",
        "Put first the red cup, then the blue cup in the bin.",
    ],
)  # fmt: skip
def test_first_and_then_are_both_in_order(text: str) -> None:
    plan, _ = hear(Dialogue(), "Put all the cups in the bin", seen(), to_ns(1.0))
    plan, _ = hear(plan, text, seen(), to_ns(20.0))
    assert [[one.colour for one in order.things] for order in plan.orders] == [["red"], ["blue"]]


@pytest.mark.parametrize("text", ["Careful with that one, it is old.", "Be careful, don't spill it."])
def test_care_is_no_doubt_whether_it_is_meant(text: str) -> None:
    assert understand(text).wants == "stop"
    plan, reply = after(text)
    assert "?" not in reply
    plan, reply = hear(plan, "Go on", holding(), to_ns(30.0))
    assert touches(plan) == ["red"]


def test_a_change_of_mind_takes_the_order_back() -> None:
    plan, reply = after("On second thoughts, don't.")
    assert reply.endswith(sentence("planner.told_as_paused", what="put back the red cup"))
    plan, _ = hear(plan, "Go on", holding(), to_ns(30.0))
    assert touches(plan) == []
