"""`StopClassifier`: a small multilingual network for the probability that an utterance means a stop.

`examples/train_stop_classifier` trains it on the tuning half of the labelled set and on the phrase tables.
"""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import ClassVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from nodes.interrupts.intent import Meaning
from nodes.interrupts.phrase_matcher import clipped, words_of
from nodes.models.onnx_runtime import open_session

MODEL = Path(__file__).with_name("stop_classifier.onnx")
BUCKETS = 4096
LONGEST_NGRAM = 4


def features_of(text: str) -> NDArray[np.float32]:
    """The features of a text: its runs of one to four characters, hashed into buckets, with length 1; (BUCKETS,)."""
    line = f" {' '.join(words_of(clipped(text)))} "
    counts = np.zeros(BUCKETS, np.float32)
    for length in range(1, LONGEST_NGRAM + 1):
        for start in range(len(line) - length + 1):
            counts[crc32(line[start : start + length].encode()) % BUCKETS] += 1.0
    features: NDArray[np.float32] = np.sqrt(counts / counts.sum())  # np.linalg.norm would ask BLAS
    return features


class StopClassifier:
    """Says how certain it is that an utterance means a stop: enough to add one, or to shorten a soft hold."""

    HARMLESS_BELOW: ClassVar[float] = 0.1

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

    @staticmethod
    def stops_from(meaning: Meaning) -> float:
        """The least certainty that adds a stop: 0.7 where one may stand behind other words, 0.98 for words that nobody
        understood. Else infinite, as for what others are told to have said; five folds of the tuning lines say so."""
        if meaning.is_told or (meaning.wants != "nothing" and not meaning.may_stop):
            return inf
        if meaning.may_stop:
            return 0.7
        return inf if meaning.talk else 0.98
