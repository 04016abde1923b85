"""Claims about what the stop classifier reads: it was trained on these features, and reads no others."""

from __future__ import annotations

from itertools import pairwise
from zlib import crc32

import numpy as np
import pytest

from nodes.interrupts.stop_classifier import features_of, signs_of

LETTERS, SIGNS = 4096, 512


def test_letters_are_read_in_runs_of_one_to_four_and_words_alone_and_in_pairs() -> None:
    words = ["please", "stop", "it"]
    line = f" {' '.join(words)} "
    parts = [line[at : at + long] for long in (1, 2, 3, 4) for at in range(len(line) - long + 1)]
    parts += [*(f"w{one}" for one in words), *(f"b{one} {other}" for one, other in pairwise(words)), "^please", "$it"]
    counts = np.zeros(LETTERS)
    for part in parts:
        counts[crc32(part.encode()) % LETTERS] += 1
    assert features_of("Please stop it!")[:LETTERS] == pytest.approx(np.sqrt(counts / len(parts)))


def test_each_sign_counts_a_fifth_in_a_place_of_its_own_behind_the_letters() -> None:
    text = "Mommy, wait a moment!"
    found = features_of(text)[LETTERS:]
    places = {crc32(sign.encode()) % SIGNS for sign in signs_of(text, 4)}
    assert found == pytest.approx([0.2 * (place in places) for place in range(SIGNS)])


@pytest.mark.parametrize(("words", "sign"), [(1, "words 1"), (11, "words 11"), (12, "words 12"), (13, "words 12")])
def test_how_long_a_text_is_counts_up_to_twelve_words(words: int, sign: str) -> None:
    assert sign in signs_of("a " * words, words)
