"""Claims about what an utterance may cost, and about bad input."""

from __future__ import annotations

import gc
import sys
from types import FrameType
from typing import Any

import pytest

from nodes.interrupts import intent
from nodes.interrupts.intent import says_yes, understand
from nodes.interrupts.phrase_matcher import load

OUCH = "Ouch! That's my toe!"


def calls_of(text: str) -> int:
    """How many calls, of Python's and of C's functions, understanding it takes; of a garbage collection none."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before, collects = sys.getprofile(), gc.isenabled()
    gc.collect()
    gc.disable()
    sys.setprofile(note)
    try:
        understand(text)
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return count


@pytest.fixture(autouse=True)
def _nothing_is_known() -> None:
    load()
    intent.forget()


@pytest.mark.parametrize(
    "text", [OUCH, "Please clear the table: put the cups in the bin", "停下来！", "रुक जाओ", "I like the rain."]
)
def test_an_utterance_costs_few_calls_and_next_to_none_the_second_time(text: str) -> None:
    assert calls_of(text) < 640
    assert calls_of(text) < 10


def test_the_cost_has_a_bound_however_long_the_utterance() -> None:
    assert calls_of("go on and on and " * 1_000_000) < 10_000
    assert calls_of("停" * 1_000_000) < 10_000
    assert calls_of("stop " * 120) < 10_000


@pytest.mark.parametrize("filler", ["bla ", "x", "嗯", "\u202e", "ﷺ"])
def test_a_stop_at_either_end_of_ten_megabytes_is_heard(filler: str) -> None:
    much = filler * (10_000_000 // len(filler.encode()))
    assert understand(f"Stop! {much}").wants == "stop"
    assert understand(f"{much}. Stop!").wants == "stop"
    assert understand(much).wants == "nothing"


def test_what_is_remembered_of_utterances_is_bounded() -> None:
    for number in range(2 * intent.KNOWN_UTTERANCES):
        understand(f"utterance number {number}")
    assert intent.known() <= intent.KNOWN_UTTERANCES


@pytest.mark.parametrize("text", ["", " ", "\x00", "\x00\x01\x1b[\x7f", "!?!", "…", "\ud800", "🛑🛑🛑", "\u0301" * 50])
def test_what_holds_no_word_wants_nothing(text: str) -> None:
    meaning = understand(text)
    assert (meaning.wants, meaning.is_unclear) == ("nothing", False)
    assert not says_yes(text)


def test_control_characters_hide_no_stop() -> None:
    for text in ("\x00stop\x00", "st\u200bop", "\u202estop", "s\u0301top!", "STOP\n\n\n", "ｓｔｏｐ"):
        assert understand(text).wants == "stop", repr(text)


@pytest.mark.parametrize("text", ["Зупинись!", "싫어!", "Σταμάτα!", "หยุด", "עצור"])
def test_a_script_without_a_table_is_unclear_and_never_lifts_a_stop(text: str) -> None:
    meaning = understand(text)
    assert meaning.is_unclear
    assert not meaning.lifts_stop
