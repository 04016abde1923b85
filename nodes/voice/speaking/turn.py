"""`SpokenUtterance`: one utterance that waits for its turn to be spoken, or is spoken, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass, field

from nodes.voice.speaking.pieces import heard_words
from nodes.voice.speaking.playing import Player
from runtime.context import HandlerContext
from runtime.message import Envelope


@dataclass(slots=True, eq=False)
class SpokenUtterance:
    """What is told of it stems from `call`, in which it was heard."""

    text: str
    said_ns: int
    call: HandlerContext | None = None
    spoken: list[str] = field(default_factory=list)  # pieces that were heard whole
    piece: str = ""  # that is played
    frames: int = 0  # of its sound
    player: Player | None = None  # which plays it
    has_begun: bool = False

    @classmethod
    def of(cls, text: str, call: HandlerContext | None, now_ns: int) -> SpokenUtterance:
        """The turn of a message that a handler runs for; without a call it was said now."""
        if call is None or call.trigger is None:
            return cls(text, now_ns)
        return cls(text, call.trigger.envelope.published_ns, HandlerContext(call.started_ns, call.epochs, call.trigger))

    @property
    def envelope(self) -> Envelope | None:
        """Of the message that said it."""
        return None if self.call is None or self.call.trigger is None else self.call.trigger.envelope

    @property
    def ident(self) -> str:
        """As "said:planner:7"."""
        return "" if self.envelope is None else self.envelope.ident

    @property
    def heard(self) -> str:
        """The words that were really heard so far."""
        share = self.player.played / self.frames if self.player is not None and self.frames else 0.0
        return " ".join((*self.spoken, heard_words(self.piece, share))).strip()
