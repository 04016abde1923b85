"""Where somebody's speech begins and ends in a stream of sound: a pure decision over blocks and their probabilities."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nodes.voice.hearing.blocks import BLOCK_NS, BLOCK_S

SHORTEST_VOICED_S = 0.12  # "Ouch!" is about three times as long; a click is shorter
CUT_WITHIN = 0.25
"""Speech that is too long is cut at its quietest place in so much of its end: between two words, where there is one."""


@dataclass(frozen=True, slots=True)
class SpeechSegment:
    """Speech so far (`is_over` False: the speaker may go on) or as a whole."""

    number: int
    sound: bytes  # 16-bit samples at 16 kHz, with a little of what was before
    begun_ns: int
    before_s: float  # of the sound, from before that
    voiced_s: float  # of it really speech: the same as before means that nothing was added but silence
    is_over: bool
    goes_on: bool = False  # it was cut since it is too long, and what comes next is its rest


@dataclass(frozen=True, slots=True)
class SegmentRules:
    """When it counts as speech, and when as its end."""

    threshold: float = 0.5  # probability from which a block is speech; well below it, it is silence
    silence_s: float = 0.6  # of silence end it
    pause_s: float = 0.2  # of silence: perhaps this was all, so it is worth a first look
    look_s: float = 1.0  # while somebody speaks without a pause, it is looked at so often
    before_s: float = 0.3  # of sound that is kept from before: the first consonant is no voice yet
    longest_s: float = 20.0  # then it is cut in two, at the quietest place


class Segmenter:
    """Takes one block after the other; says what there is to recognise."""

    def __init__(self, rules: SegmentRules | None = None) -> None:
        self.rules = rules or SegmentRules()
        self.begun_ns = 0  # when the speech that goes on began; 0: nobody speaks
        self._number = 0
        self._before: deque[bytes] = deque(maxlen=max(1, round(self.rules.before_s / BLOCK_S)))
        self._blocks: list[bytes] = []
        self._is_voiced: list[bool] = []  # each of them
        self._is_rest = False  # of speech that was cut
        self._before_s = 0.0
        self._voiced = self._silent = self._since_look = self._looked_at = 0  # blocks
        self._state: Literal["silence", "speech"] = "silence"

    @property
    def is_speech(self) -> bool:
        """Whether somebody speaks, or has only just stopped; False for a click that may become speech."""
        return self._state == "speech" and self._voiced * BLOCK_S >= SHORTEST_VOICED_S

    @property
    def silent_s(self) -> float:
        """For how long nothing was heard, since the last word of the speech that goes on."""
        return self._silent * BLOCK_S if self._state == "speech" else 0.0

    def add(self, probability: float, block: bytes, end_ns: int) -> SpeechSegment | None:
        """The next block, and what there is to recognise because of it; `end_ns`: when its last sample was taken."""
        rules = self.rules
        if self._state == "silence":
            if probability < rules.threshold:
                self._before.append(block)
                return None
            self._begin(end_ns - BLOCK_NS)
        self._blocks.append(block)
        self._is_voiced.append(probability >= rules.threshold)
        self._since_look += 1
        if probability >= rules.threshold:
            self._voiced += 1
            self._silent = 0
        elif probability < rules.threshold * 0.7 or self._silent:
            self._silent += 1
        if self._silent * BLOCK_S >= rules.silence_s:
            return self._end()
        if len(self._blocks) * BLOCK_S >= rules.longest_s:
            return self._cut_in_two()
        is_pause = self._silent == round(rules.pause_s / BLOCK_S)
        if is_pause or self._since_look * BLOCK_S >= rules.look_s:
            return self._look()
        return None

    def end(self) -> SpeechSegment | None:
        """What was said until now is all of it; what follows is somebody else's."""
        return self._end() if self._state == "speech" else None

    def cut(self) -> SpeechSegment | None:
        """The same where sound is missing from here on."""
        heard = self.end()
        self._before.clear()
        return heard

    def _begin(self, begun_ns: int) -> None:
        self._state = "speech"
        self._number += 1
        self.begun_ns = begun_ns
        self._blocks = list(self._before)
        self._is_voiced = [False] * len(self._blocks)
        self._is_rest = False
        self._before_s = len(self._blocks) * BLOCK_S
        self._before.clear()
        self._voiced = self._silent = self._since_look = self._looked_at = 0

    def _look(self) -> SpeechSegment | None:
        self._since_look = 0
        if not self.is_speech or self._looked_at == self._voiced:
            return None  # nothing was added but silence
        self._looked_at = self._voiced
        return self._heard(is_over=False)

    def _cut_in_two(self) -> SpeechSegment:
        """The first part; the rest goes on as speech of its own that begins where it was cut."""
        at = _quietest(self._blocks)
        rest, is_voiced = self._blocks[at:], self._is_voiced[at:]
        self._blocks, self._voiced = self._blocks[:at], sum(self._is_voiced[:at])
        first = self._heard(is_over=True, goes_on=True)
        self._number += 1
        self.begun_ns += (at - round(self._before_s / BLOCK_S)) * BLOCK_NS
        self._blocks, self._is_voiced, self._before_s, self._is_rest = rest, is_voiced, 0.0, True
        self._voiced, self._since_look, self._looked_at = sum(is_voiced), 0, 0
        return first

    def _end(self) -> SpeechSegment | None:
        heard = self._heard(is_over=True) if self.is_speech or self._is_rest else None  # a rest ends what was cut
        self._before.extend(self._blocks)  # the last of them: what follows may be the next word
        self._state, self._blocks, self.begun_ns = "silence", [], 0
        return heard

    def _heard(self, *, is_over: bool, goes_on: bool = False) -> SpeechSegment:
        sound = b"".join(self._blocks)
        voiced_s = self._voiced * BLOCK_S
        return SpeechSegment(self._number, sound, self.begun_ns, self._before_s, voiced_s, is_over, goes_on)


def _quietest(blocks: list[bytes]) -> int:
    """Before which block to cut: in the middle of the three quietest in a row, near the end."""
    first = max(1, len(blocks) - round(CUT_WITHIN * len(blocks)))
    samples = np.frombuffer(b"".join(blocks[first:]), np.int16).reshape(len(blocks) - first, -1)
    loud = np.square(samples.astype(np.float64)).mean(axis=1)
    if len(loud) < 3:
        return first
    return first + 1 + int(np.argmin(loud[:-2] + loud[1:-1] + loud[2:]))
