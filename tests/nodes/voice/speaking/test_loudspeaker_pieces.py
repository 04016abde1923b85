"""Texts become sentences, and shares of a sound become words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.voice.speaking.pieces import LONGEST_PIECE, LONGEST_TEXT, heard_words, pieces_of
from tests.support.sentences import sentence


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Hello.", ["Hello."]),
        (sentence("voice.sorry"), ["Sorry!", "I have stopped."]),
        ("Really?! Yes... No", ["Really?!", "Yes...", "No"]),
        (
            "A cup of 3.5 dl, e.g. the blue one. Dr. No has it.",
            ["A cup of 3.5 dl, e.g. the blue one.", "Dr. No has it."],
        ),
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        ("one\ntwo\r\n\nthree", ["one", "two", "three"]),
        ("私は行きます。あなたは?", ["私は行きます。", "あなたは?"]),
        ("a\x00b\x1b[31m", ["a b [31m"]),
        ("", []),
    ],
)
def test_a_text_is_parted_where_sentences_end(text: str, pieces: list[str]) -> None:
    assert pieces_of(text) == (pieces, True)


def test_a_sentence_without_end_is_parted_at_commas_and_spaces() -> None:
    text = "and then, " * 60
    pieces, is_whole = pieces_of(text)
    assert is_whole
    assert all(piece.endswith(",") for piece in pieces)
    assert " ".join(pieces) == text.strip()


def test_a_word_without_end_is_parted_all_the_same() -> None:
    pieces, is_whole = pieces_of("x" * 10_000)
    assert not is_whole
    assert "".join(pieces) == "x" * LONGEST_TEXT


@given(st.text())
def test_no_piece_is_empty_or_too_long_and_no_letter_is_lost(text: str) -> None:
    pieces, is_whole = pieces_of(text)
    assert is_whole
    assert all(piece and len(piece) <= LONGEST_PIECE and piece == piece.strip() for piece in pieces)
    assert [c for piece in pieces for c in piece if c.isalnum()] == [c for c in text if c.isalnum()]


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, ""),
        (0.3, ""),
        (0.31, "Take"),
        (0.6, "Take"),
        (0.62, "Take the"),
        (0.99, "Take the"),
        (1.0, "Take the cup."),
    ],
)
def test_only_words_that_were_played_to_their_end_were_heard(share: float, words: str) -> None:
    assert heard_words("Take the cup.", share) == words


def test_where_no_spaces_are_written_each_character_counts() -> None:
    assert heard_words("私は行きます。", 0.5) == "私は行"


@given(st.text(min_size=1), st.floats(0, 1), st.floats(0, 1))
def test_what_was_heard_is_the_beginning_and_grows_with_what_was_played(text: str, one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert text.startswith(heard_words(text, less))
    assert heard_words(text, more).startswith(heard_words(text, less))
    assert heard_words(text, 1.0).split() == text.split()
