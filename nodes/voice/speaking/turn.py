"""Whether the robot may speak (`SpeakingTurn`), and an utterance that waits for that (`SpokenUtterance`); without I/O.

An interruption takes with it what was being said and what was said before it and waited; what is said after it waits
until the person is silent. An utterance of which nothing was heard yet is not interrupted: it waits as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from nodes.msgs import Speech, SpokenSound
from nodes.voice.speaking.pieces import heard_words
from nodes.voice.speaking.playing import RATE_HZ, Player
from runtime.clock import to_s
from runtime.message import Envelope, Stamped

SPEECH_LASTS_S = 2.0
"""A microphone repeats that somebody speaks; after so long without a word from it nobody is waited for any more."""


class SpeakingTurn:
    """Who has it."""

    def __init__(self, barge_in_s: float) -> None:
        self.barge_in_s = barge_in_s
        self._silenced_ns, self._why = -1, ""  # nothing that was said before is spoken any more
        self._since_ns: int | None = None  # a person speaks
        self._told_ns = 0

    def hear(self, speech: Speech, now_ns: int) -> None:
        """What the microphone tells; a beginning that is not of this machine's clock is when it was told first."""
        self._told_ns = now_ns
        if not speech.is_speaking:
            self._since_ns = None
        elif 0 < speech.begun_ns <= now_ns:
            self._since_ns = speech.begun_ns
        elif self._since_ns is None:
            self._since_ns = now_ns

    def silence(self, from_ns: int, why: str) -> None:
        """Nothing more of what was said before that time; an answer to a stop may be of the same instant."""
        if from_ns > self._silenced_ns:
            self._silenced_ns, self._why = from_ns, why

    def why_silent(self, said_ns: int) -> str:
        """Why what was said then is not to be heard any more, or ""."""
        return self._why if said_ns < self._silenced_ns else ""

    def taken_for_s(self, now_ns: int) -> float:
        """For how long, as far as is known, a person goes on speaking; 0: nobody does, or nobody minds."""
        if self._since_ns is None or self.barge_in_s == math.inf:
            return 0.0
        return max(0.0, SPEECH_LASTS_S - to_s(now_ns - self._told_ns))

    def to_barge_in_s(self, now_ns: int) -> float:
        """How long until one who speaks now has interrupted the robot; inf where nobody speaks."""
        if self._since_ns is None or not self.taken_for_s(now_ns):
            return math.inf
        return self.barge_in_s - to_s(now_ns - self._since_ns)


@dataclass(slots=True, eq=False)
class SpokenUtterance:
    """What is told of it stems from the message that `said` it."""

    text: str
    said_ns: int
    said: Stamped[Any] | None = None
    spoken: list[str] = field(default_factory=list)  # pieces that were heard whole
    piece: str = ""  # that is played
    frames: int = 0  # of its sound
    player: Player | None = None  # which plays it
    has_begun: bool = False
    sound_id: str = ""  # of a SpokenSound; "": its sound is made here
    received: bytearray = field(default_factory=bytearray)  # of that sound, and not handed to the player yet
    received_ns: int = 0  # when the newest piece came
    is_whole: bool = False  # no piece comes any more

    def add(self, sound: SpokenSound, now_ns: int) -> None:
        """The next piece of its sound."""
        self.text = sound.text
        self.received += sound.samples.tobytes()
        self.received_ns, self.is_whole = now_ns, sound.is_last

    def take_received(self) -> bytes:
        """What has come since it was taken last."""
        taken = bytes(self.received)
        self.received.clear()
        return taken

    @classmethod
    def of(cls, text: str, said: Stamped[Any] | None, now_ns: int) -> SpokenUtterance:
        """The turn of a message; without one it was said now."""
        return cls(text, now_ns if said is None else said.envelope.published_ns, said)

    @property
    def envelope(self) -> Envelope | None:
        """Of the message that said it."""
        return None if self.said is None else self.said.envelope

    @property
    def ident(self) -> str:
        """As "said:planner:7", or as its SpokenSound is called."""
        if self.sound_id:
            return self.sound_id
        return "" if self.envelope is None else self.envelope.ident

    @property
    def played_s(self) -> float:
        """How much of the sound of the piece that is played went out."""
        return self.player.played / RATE_HZ if self.player is not None and self.frames else 0.0

    @property
    def heard(self) -> str:
        """The words that were really heard so far."""
        share = self.player.played / self.frames if self.player is not None and self.frames else 0.0
        piece = self.text if self.sound_id else self.piece
        return " ".join((*self.spoken, heard_words(piece, share))).strip()
