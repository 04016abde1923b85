"""The page of a failed virtual run shows every topic, and where the run parted from the one that passed."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from runtime.virtual.timeline_page import MARKS, page
from tests.support.sentences import sentence

PASSED = [
    "0.000000000 beat:talker:1 aa Beat(count=1)",
    "1.500000000 heard/<all>:ear:1 bb",
    "2.000000000 beat:talker:2 cc Beat(count=2)",
]
FAILED = [PASSED[0], "1.500000000 heard/<all>:ear:1 dd", PASSED[2]]
FACTS = [("seed", "7"), ("again", 'python -m pytest "x" --virtual-seed 7')]


def drawing(text: str) -> ElementTree.Element:
    start = text.index("<svg")
    return ElementTree.fromstring(text[start : text.index("</svg>") + 6])


def words(drawn: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in drawn.iter("text")]


def test_every_topic_has_a_row_and_every_message_a_mark_that_says_it() -> None:
    drawn = drawing(page("it failed", FACTS, FAILED, None))
    assert {"beat", "heard/<all>"} <= set(words(drawn))
    said = [mark.findtext("title", "") for mark in drawn.iter("rect")]
    assert said == [
        "0.000000 s from talker #1 Beat(count=1)",
        "2.000000 s from talker #2 Beat(count=2)",
        "1.500000 s from ear #1 arrays, hash dd",
    ]


def test_the_first_difference_is_marked_and_both_messages_are_shown() -> None:
    text = page("it failed", FACTS, FAILED, PASSED)
    assert "first difference, 1.500 s" in words(drawing(text))
    was, parted = text.index('<tr class="was">'), text.index('<tr class="parted">')
    assert was < text.index("hash bb") < parted < text.index("hash dd", parted)


@pytest.mark.parametrize("failed", [PASSED[:1], []])
def test_a_run_that_ended_early_parted_at_its_end(failed: list[str]) -> None:
    text = page("it failed", FACTS, failed, PASSED)
    assert sentence("runtime.failed_run_ended") in text
    assert failed or sentence("runtime.no_message") in text


def test_a_run_equal_to_the_one_that_passed_has_no_such_mark() -> None:
    assert "first difference," not in page("it failed", FACTS, PASSED, PASSED)


def test_what_messages_say_is_text_and_nothing_is_loaded() -> None:
    text = page("<b>", FACTS, ['0.100000000 heard:me:1 aa Utterance(text="<script>alert(1)</script>")'], None)
    assert "<script" not in text
    assert "<b>" not in text
    assert "http" not in text


def test_many_messages_share_marks() -> None:
    lines = [f"{number / 1000:.9f} state:robot:{number} aa" for number in range(20_000)]
    marks = list(drawing(page("long", FACTS, lines, None)).iter("rect"))
    assert len(marks) <= MARKS + 1
    assert "messages from" in marks[1].findtext("title", "")
