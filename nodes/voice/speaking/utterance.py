"""`SpokenUtterance`: one utterance that waits for its turn to be spoken, or is spoken, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nodes.voice.speaking.pieces import heard_words
from nodes.voice.speaking.playing import Player
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
        """As "said:planner:7"."""
        return "" if self.envelope is None else self.envelope.ident

    @property
    def heard(self) -> str:
        """The words that were really heard so far."""
        share = self.player.played / self.frames if self.player is not None and self.frames else 0.0
        return " ".join((*self.spoken, heard_words(self.piece, share))).strip()
