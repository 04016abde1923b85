"""What the microphone and the loudspeaker tell beside the words themselves."""

from __future__ import annotations

from typing import Literal

from runtime.message import Message


class Speech(Message, kind="state"):
    """Whether a person speaks, as the microphone hears it (`speech`): told at each change, and again while it lasts."""

    speaker: str
    is_speaking: bool
    begun_ns: int = 0  # when this speech began; 0 where nobody speaks


class Saying(Message):
    """How far the loudspeaker has got with an utterance of the robot (topic `saying`)."""

    id: str  # of the utterance: "said:planner:7"
    text: str  # all that was to be said
    phase: Literal["begun", "done", "cut"]
    spoken: str = ""  # the words that were really heard; of "begun" none, of "done" all
    why: str = ""  # of "cut": "a person speaks", "stop", "the loudspeaker is gone"
