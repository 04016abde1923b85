"""Drafts of the planner: held back, decided once, and never forgotten or sent by mistake."""

from __future__ import annotations

from bridges.web.console.draft_review import Drafts
from runtime.clock import to_ns
from runtime.msgs import Reference, Subtask

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
        assert (drafts.waiting.subtask, drafts.waiting.sentence, drafts.waiting.number) == (RED, "I will.", 1)


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
    assert replaced.subtask == RED
    assert drafts.left_s(to_ns(6)) == 7.0
    assert drafts.decide(1) is None  # a late yes to the old one sends nothing
    assert drafts.waiting is not None


def test_the_time_is_up_when_it_is_up() -> None:
    drafts = opened()
    drafts.plan(RED, 0)
    assert drafts.expired(to_ns(7.9)) is None
    expired = drafts.expired(to_ns(8))
    assert expired is not None
    assert expired.subtask == RED
    assert drafts.waiting is None


def test_what_is_being_done_already_is_no_draft() -> None:
    drafts = Drafts()
    drafts.open(8.0, "send", RED)
    drafts.plan(RED, 0)
    assert drafts.waiting is None
