"""Drafts of the planner and the VLM: held back, decided once, and never forgotten or sent by mistake."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from bridges.web.console.draft_review import DraftReview, Drafts, ReviewedSeat, check_review
from bridges.web.console.node import Console
from bridges.web.http.wire import Decide, Supervise
from nodes.msgs import Action, Reference, Subtask, Utterance
from runtime.clock import to_ns
from runtime.errors import ParameterError
from tests.bridges.web.console.test_seat_requests import Sent
from tests.support.sentences import sentence

RED = Subtask(
    id="p-1",
    text="Put the red cup in the bin",
    state="work",
    skill="place",
    things=(Reference(label="cup", count=0),),
    relation="in",
    place="bin",
)
BLUE = Subtask(
    id="p-2",
    text="Put the blue cup in the bin",
    state="work",
    skill="place",
    things=(Reference(label="cup", count=0),),
    relation="in",
    place="bin",
)


def opened() -> Drafts:
    drafts = Drafts()
    drafts.open(8.0, "drop", None)
    return drafts


def test_nothing_is_held_back_before_anybody_decides() -> None:
    drafts = Drafts()
    drafts.plan(RED, 0)
    drafts.say("hello", 0)
    assert drafts.waiting is None


def test_a_sentence_joins_the_subtask_that_it_came_with_in_either_order() -> None:
    for first in ("sentence", "subtask"):
        drafts = opened()
        if first == "sentence":
            drafts.say("I will.", 0)
            drafts.plan(RED, 1)
        else:
            drafts.plan(RED, 0)
            drafts.say("I will.", 1)
        assert drafts.waiting is not None
        assert (drafts.waiting.plan, drafts.waiting.sentence, drafts.waiting.number) == (RED, "I will.", 1)


def test_a_repetition_changes_nothing_and_what_was_decided_does_not_come_again() -> None:
    drafts = opened()
    drafts.plan(RED, 0)
    drafts.plan(RED, to_ns(2))
    assert drafts.left_s(to_ns(3)) == 5.0
    assert drafts.decide(1) is not None
    drafts.plan(RED, to_ns(4))
    assert drafts.waiting is None
    assert drafts.decide(1) is None


def test_a_newer_draft_replaces_the_one_that_waits_and_has_its_own_time() -> None:
    drafts = opened()
    drafts.plan(RED, 0)
    replaced = drafts.plan(BLUE, to_ns(5))
    assert replaced is not None
    assert replaced.plan == RED
    assert drafts.left_s(to_ns(6)) == 7.0
    assert drafts.decide(1) is None  # a late yes to the old one sends nothing
    assert drafts.waiting is not None


def test_the_time_is_up_when_it_is_up() -> None:
    drafts = opened()
    drafts.plan(RED, 0)
    assert drafts.expired(to_ns(7.9)) is None
    expired = drafts.expired(to_ns(8))
    assert expired is not None
    assert expired.plan == RED
    assert drafts.waiting is None


def test_what_is_being_done_already_is_no_draft() -> None:
    drafts = Drafts()
    drafts.open(8.0, "send", RED)
    drafts.plan(RED, 0)
    assert drafts.waiting is None


def reviewing(seat: ReviewedSeat) -> tuple[DraftReview, SimpleNamespace]:
    """Drafts of that seat's model wait for a yes; and what goes out."""
    ports = SimpleNamespace(name="console", act=Sent(), plan=Sent(), say_said=Sent(), draft_decision=Sent())
    review = DraftReview(cast(Any, ports), "robot", seat)
    review.set(Supervise(on=True, seat=seat), None)
    return review, ports


PICK = Action(id="vlm-1", skill="pick", text="pick up the red cup")


def test_what_the_vlm_would_do_and_say_waits_for_a_yes_too() -> None:
    review, ports = reviewing("vlm")
    review.propose(PICK)
    review.propose(Utterance(speaker="robot", text="I take the red cup."))
    review.beat(0, is_seated=True)
    assert (ports.act.messages, ports.say_said.messages) == ([], [])
    draft = review.document(0)["draft"]
    assert (draft["text"], draft["sentence"]) == ("pick up the red cup", "I take the red cup.")
    decision = Decide(draft=draft["n"], do="edit", seat="vlm", text="ignored", sentence="The red one, then.")
    assert review.decide(decision, "Wiz", 1) == ""
    assert ports.act.messages == [PICK]
    assert [one.text for one in ports.say_said.messages] == ["The red one, then."]


def test_a_stop_is_never_held_back_for_a_yes() -> None:
    for seat, stop in (
        ("vlm", Action(id="vlm-2", skill="hold")),
        ("planner", Subtask(id="p-9", text="Wait", state="wait")),
    ):
        review, ports = reviewing(cast(ReviewedSeat, seat))
        review.propose(PICK if seat == "vlm" else RED)
        review.propose(stop)
        review.propose(stop)  # it is sent once
        review.beat(0, is_seated=True)
        assert [*ports.act.messages, *ports.plan.messages] == [stop]
        assert review.document(0)["draft"] is None  # what it interrupts is not done after it
        assert [one.by for one in ports.draft_decision.messages] == [sentence("bridges.stop_waits_not")]


def test_with_a_second_to_take_it_back_a_draft_goes_out_by_itself() -> None:
    review, ports = reviewing("planner")
    review.set(Supervise(on=True, wait_s=1.0, at_end="send"), None)
    review.propose(RED)
    review.beat(0, is_seated=True)
    review.beat(to_ns(0.9), is_seated=True)
    assert ports.plan.messages == []
    review.beat(to_ns(1.0), is_seated=True)
    assert ports.plan.messages == [RED]


def test_a_launch_file_says_per_seat_how_a_person_begins() -> None:
    check_review({"planner": "approve", "vlm": "undo"})
    for wrong in ({"policy": "approve"}, {"vlm": "maybe"}):
        with pytest.raises(ParameterError, match="expected planner or vlm, each with one of write, approve, undo"):
            Console(review=wrong)
