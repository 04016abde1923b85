"""`SpokenUtterance`: one utterance that waits for its turn to be spoken, or is spoken, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nodes.msgs import SpokenSound
from nodes.voice.speaking.pieces import heard_words
from nodes.voice.speaking.playing import RATE_HZ, Player
from runtime.message import Envelope, Stamped


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
