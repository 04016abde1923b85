"""The robot's voice and ears at the operators' pages: what it is about to say, and what its microphone hears."""

from __future__ import annotations

import base64
from collections import deque
from dataclasses import dataclass
from typing import Any

from nodes.msgs import SOUND_RATE_HZ, Saying, Sound

MOST_WAITING = 12
PIECES_KEPT = 20


class RobotWords:
    """What the loudspeaker says now and what waits, in the order in which it was said; words come by two threads."""

    def __init__(self) -> None:
        self._waiting: deque[str] = deque(maxlen=MOST_WAITING)
        self._now = ""
        self._has_loudspeaker = False

    def queue(self, text: str) -> None:
        """The robot is to say this."""
        self._waiting.append(text)

    def learn(self, saying: Saying) -> None:
        """How far the loudspeaker has got; what came before that is not said any more."""
        self._has_loudspeaker = True
        if saying.text in self._waiting:
            self._waiting.remove(saying.text)
        self._now = saying.text if saying.phase == "begun" else ""

    def document(self) -> dict[str, Any] | None:
        """For operators; None where nothing in the graph makes sound of it, so that nothing waits."""
        return {"now": self._now, "waiting": list(self._waiting)} if self._has_loudspeaker else None


@dataclass(frozen=True, slots=True)
class _Piece:
    number: int
    speaker: str
    pcm: str


class RobotSound:
    """What a microphone of the graph hears of people, in pieces, each once: of a growing sound only what is new."""

    def __init__(self) -> None:
        self._pieces: deque[_Piece] = deque(maxlen=PIECES_KEPT)
        self._count = 0
        self._sent: dict[str, tuple[int, int]] = {}  # speaker -> number of the sound, samples of it so far

    def take(self, sound: Sound) -> None:
        """What is heard so far, or the whole of it (the node's thread)."""
        number, length = self._sent.get(sound.speaker, (-1, 0))
        new = sound.samples[length:] if number == sound.number else sound.samples
        self._sent[sound.speaker] = sound.number, max(len(sound.samples), length if number == sound.number else 0)
        if len(new):
            self._count += 1
            pcm = base64.b64encode(new.astype("<i2").tobytes()).decode()
            self._pieces.append(_Piece(self._count, sound.speaker, pcm))

    def since(self, number: int) -> tuple[dict[str, Any] | None, int]:
        """What came after that piece, for a page that listens; and the number of the newest."""
        pieces = tuple(self._pieces)
        new = [{"speaker": one.speaker, "pcm": one.pcm} for one in pieces if one.number > number]
        return ({"rate": SOUND_RATE_HZ, "pieces": new} if new else None), self._count
