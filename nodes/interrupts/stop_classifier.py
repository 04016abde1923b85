"""`StopClassifier`: a small multilingual network for the probability that an utterance means a stop.

`examples/train_stop_classifier` trains it on the labelled utterances that are for tuning, and on the phrase tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import ClassVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from nodes.interrupts.intent import Meaning, understand
from nodes.interrupts.phrase_matcher import clauses_in, clipped, words_of
from nodes.models.onnx_runtime import open_session

MODEL = Path(__file__).with_name("stop_classifier.onnx")
BUCKETS = 4096
"""Of letters and words."""
SIGN_BUCKETS = 512
"""Of what the tables found."""
INPUTS = BUCKETS + SIGN_BUCKETS
LONGEST_NGRAM = 4
SIGN = 0.2
"""What a sign counts beside the letters and words, which are 1 together."""
MOST_WORDS = 12


def features_of(text: str) -> NDArray[np.float32]:
    """The features of a text; (INPUTS,).

    First its runs of one to four characters and its words, hashed into buckets, with length 1; then its signs, hashed
    into buckets of their own.
    """
    words = words_of(clipped(text))
    counts = np.zeros(INPUTS, np.float32)
    for part in _parts(words):
        counts[crc32(part.encode()) % BUCKETS] += 1.0
    features: NDArray[np.float32] = np.sqrt(counts / counts.sum())  # np.linalg.norm would ask BLAS
    for sign in signs_of(text, len(words)):
        features[BUCKETS + crc32(sign.encode()) % SIGN_BUCKETS] = SIGN
    return features


def _parts(words: tuple[str, ...]) -> Iterator[str]:
    line = f" {' '.join(words)} "
    for length in range(1, LONGEST_NGRAM + 1):
        for start in range(len(line) - length + 1):
            yield line[start : start + length]
    yield from (f"w{word}" for word in words)
    yield from (f"b{one} {other}" for one, other in pairwise(words))
    if words:
        yield f"^{words[0]}"
        yield f"${words[-1]}"


def signs_of(text: str, words: int) -> set[str]:
    """What is known of a text in any language, by name.

    These are the tables that have a phrase of it, those that begin or end a clause, what the tables take it for, and
    how long it is.
    """
    meaning = understand(text)
    signs = {f"wants {meaning.wants}", f"talk {meaning.talk}", f"words {min(words, MOST_WORDS)}"}
    signs |= {name for name in ("may_stop", "is_told", "is_short") if getattr(meaning, name)}
    for clause in clauses_in(text):
        signs.update(clause.found)
        signs |= {f"opens {table}" for table in clause.found if clause.opens(table, "courtesy", "lead")}
        signs |= {f"ends {table}" for table in clause.found if clause.ends(table, "tail")}
        signs |= {name for name in ("is_asked", "is_quoted") if getattr(clause, name)}
    return signs


class StopClassifier:
    """Says how certain it is that an utterance means a stop: enough to add one, to hold, or to shorten a soft hold."""

    HARMLESS_BELOW: ClassVar[float] = 0.1
    STOPS_FROM: ClassVar[float] = 0.9
    HOLDS_FROM: ClassVar[float] = 0.35
    """On the seventh unseen set it adds a stop from 0.9 on to 5 of 240 lines that mean one and to none of 200 others
    (from 0.7 on: 7, and 4)."""

    def __init__(self, model: Path = MODEL) -> None:
        self._session, _ = open_session(model.read_bytes(), name=model.name, providers=("CPUExecutionProvider",))

    def certainty(self, text: str) -> float:
        """How likely the text means a stop, 0 to 1."""
        (answer,) = self._session.run(None, {"features": features_of(text)[np.newaxis]})
        return float(answer[0, 0])

    @classmethod
    def harmless_below(cls, meaning: Meaning) -> float:
        """The certainty below which a hold ends early; never where a stop may stand behind other words."""
        return 0.0 if meaning.may_stop else cls.HARMLESS_BELOW

    @classmethod
    def stops_from(cls, meaning: Meaning) -> float:
        """The least certainty that adds a stop; infinite for what is told of others, and where no stop is needed."""
        return inf if _is_no_call(meaning) else cls.STOPS_FROM

    @classmethod
    def holds_from(cls, meaning: Meaning) -> float:
        """The least certainty that holds the robot softly; infinite as for a stop, and where the reflex holds."""
        return inf if _is_no_call(meaning) or meaning.is_unclear else cls.HOLDS_FROM


def _is_no_call(meaning: Meaning) -> bool:
    return meaning.is_told or meaning.talk == "denial" or meaning.wants in ("stop", "resume") or meaning.takes_back
