"""Where speech begins and ends, decided from probabilities alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.voice.hearing.blocks import BLOCK_NS, BLOCK_S
from nodes.voice.hearing.segments import SHORTEST_VOICED_S, Segmenter, SegmentRules, SpeechSegment

START_NS = 5_000_000_000


def block(number: int) -> bytes:
    """Tells which one it is."""
    return number.to_bytes(2, "little") * 512


def hear(probabilities: list[float], rules: SegmentRules | None = None) -> list[SpeechSegment]:
    segmenter = Segmenter(rules)
    heard = (
        segmenter.add(probability, block(number), START_NS + (number + 1) * BLOCK_NS)
        for number, probability in enumerate(probabilities)
    )
    return [one for one in heard if one is not None]


def blocks(seconds: float) -> int:
    return round(seconds / BLOCK_S)


def speech(seconds: float) -> list[float]:
    return [0.9] * blocks(seconds)


def quiet(seconds: float) -> list[float]:
    return [0.02] * blocks(seconds)


def test_one_word_is_looked_at_when_it_pauses_and_handed_on_when_it_has_ended() -> None:
    so_far, whole = hear(quiet(1.0) + speech(0.35) + quiet(1.0))
    assert (so_far.is_over, whole.is_over) == (False, True)
    assert so_far.number == whole.number == 1
    assert so_far.voiced_s == whole.voiced_s  # so its text is that of the whole
    assert so_far.begun_ns == whole.begun_ns == START_NS + blocks(1.0) * BLOCK_NS


def test_what_was_before_the_first_loud_block_is_kept() -> None:
    whole = hear(quiet(1.0) + speech(0.35) + quiet(1.0))[-1]
    before = blocks(0.3)
    assert whole.sound.startswith(block(blocks(1.0) - before))
    assert len(whole.sound) == 1024 * (before + blocks(0.35) + blocks(0.6))


def test_a_pause_within_a_sentence_does_not_end_it() -> None:
    heard = hear(speech(0.4) + quiet(0.4) + speech(0.5) + quiet(1.0))
    assert [one.is_over for one in heard] == [False, False, True]
    assert {one.number for one in heard} == {1}
    assert heard[0].voiced_s < heard[1].voiced_s


def test_two_sentences_are_two() -> None:
    whole = [one for one in hear(speech(0.5) + quiet(1.0) + speech(0.5) + quiet(1.0)) if one.is_over]
    assert [one.number for one in whole] == [1, 2]


def test_a_click_is_no_speech_and_says_nothing() -> None:
    assert hear(quiet(0.5) + [0.9] * (int(SHORTEST_VOICED_S / BLOCK_S)) + quiet(2.0)) == []


def test_who_talks_without_a_pause_is_looked_at_each_second_and_cut_in_the_end() -> None:
    heard = hear(speech(5.0), SegmentRules(longest_s=3.0))
    assert [one.is_over for one in heard[:3]] == [False, False, True]
    assert heard[2].voiced_s < 3.1
    assert heard[3].number == 2


def loud(number: int, quiet_at: int) -> bytes:
    """As loud as any, but at one place."""
    return (np.full(512, 3000 if abs(number - quiet_at) > 1 else 30) * (-1) ** np.arange(512)).astype("<i2").tobytes()


def test_what_is_too_long_is_cut_at_its_quietest_place_and_nothing_of_it_is_lost() -> None:
    segmenter, quiet_at, longest = Segmenter(SegmentRules(longest_s=8.0)), blocks(7.0), blocks(8.0)
    sounds = [loud(number, quiet_at) for number in range(longest + blocks(1.0))] + [bytes(1024)] * blocks(1.0)
    heard = [
        segmenter.add(0.9 if number < longest + blocks(1.0) else 0.0, sound, START_NS + (number + 1) * BLOCK_NS)
        for number, sound in enumerate(sounds)
    ]
    first, rest = [one for one in heard if one is not None and one.is_over]
    assert (first.goes_on, rest.goes_on) == (True, False)
    assert len(first.sound) == 1024 * quiet_at
    assert rest.begun_ns == START_NS + quiet_at * BLOCK_NS
    assert (first.sound + rest.sound) == b"".join(sounds)[: len(first.sound) + len(rest.sound)]
    assert first.voiced_s + rest.voiced_s == pytest.approx((longest + blocks(1.0)) * BLOCK_S)
    assert rest.number == first.number + 1


def test_the_end_of_what_was_cut_is_told_also_where_no_word_follows() -> None:
    heard = [one for one in hear(speech(3.0) + quiet(2.0), SegmentRules(longest_s=3.0)) if one.is_over]
    assert [one.goes_on for one in heard] == [True, False]


def test_what_is_neither_loud_nor_silent_keeps_speech_going() -> None:
    """A trailing word falls below the threshold before it ends."""
    heard = hear(speech(0.4) + [0.4] * blocks(1.0) + quiet(1.0))
    (whole,) = [one for one in heard if one.is_over]
    assert len(whole.sound) > 1024 * (blocks(0.4) + blocks(1.0) + blocks(0.5))


def test_where_sound_is_missing_what_was_said_is_all_of_it_and_nothing_is_kept_for_the_next() -> None:
    segmenter = Segmenter()
    for number, probability in enumerate(quiet(1.0) + speech(0.5)):
        segmenter.add(probability, block(number), START_NS + (number + 1) * BLOCK_NS)
    whole = segmenter.cut()
    assert whole is not None
    assert whole.is_over
    assert (segmenter.is_speech, segmenter.begun_ns) == (False, 0)
    assert segmenter.cut() is None
    later_ns = START_NS + 20_000_000_000
    for number in range(blocks(0.5)):
        heard = segmenter.add(0.9, block(number), later_ns + (number + 1) * BLOCK_NS)
    assert heard is None
    assert segmenter.begun_ns == later_ns
    whole = segmenter.cut()
    assert whole is not None
    assert whole.before_s == 0.0


@given(st.lists(st.floats(0, 1), max_size=400))
def test_whatever_comes_every_speech_ends_once_at_most_and_no_memory_grows(probabilities: list[float]) -> None:
    rules = SegmentRules(longest_s=2.0)
    heard = hear(probabilities, rules)
    ended = [one.number for one in heard if one.is_over]
    assert ended == sorted(set(ended))
    for one in heard:
        assert len(one.sound) <= 1024 * (blocks(2.0 + rules.before_s) + 2)
        assert one.voiced_s >= SHORTEST_VOICED_S - 1e-9
