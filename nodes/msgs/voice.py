"""What microphones and loudspeakers tell, beside the words themselves."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from runtime.message import Message

SOUND_RATE_HZ = 16_000
SAMPLE_BYTES = 2
SOUND_BYTES_PER_S = SOUND_RATE_HZ * SAMPLE_BYTES
"""What is heard is 16-bit samples of one channel at that rate: all recognisers take it."""


SPOKEN_RATE_HZ = 24_000
"""Of what the robot says: 16-bit samples of one channel, as speech-to-speech servers make them."""


class Sound(Message, origin="utterance"):
    """Something that a person said, as sound: whole on `microphone/speech`, so far on `microphone/so_far`."""

    speaker: str
    number: int  # of the speech in this run; so far and whole have the same
    captured_ns: int  # when the words began
    voiced_s: float  # of the samples really speech
    before_s: float  # of the samples, from before that
    samples: NDArray[np.int16]  # (n,) at SOUND_RATE_HZ
    person: str = ""  # which person, as a page tells them apart; "": by the microphone and the speaker's name
    goes_on: bool = False  # it was cut since it is too long: what its microphone hands on next is the rest


class SoundSoFar(Sound, origin="utterance"):
    """The same, while the person may still go on. An event, for there may be several microphones."""


class SpokenSound(Message):
    """A piece of what the robot says, made as sound by its planner (topic `said/sound`), in the order of the sound."""

    id: str  # of the utterance: the same in all of its pieces, and in the `Utterance` with its words
    text: str  # the words so far
    samples: NDArray[np.int16]  # (n,) at SPOKEN_RATE_HZ
    is_last: bool = False  # no piece comes after this one


class MicrophoneState(Message, kind="state"):
    """Whether a microphone hears, and if not, why."""

    is_live: bool
    why: str = ""


class RecogniserState(Message, kind="state"):
    """Whether what is said is understood, and if not, why."""

    is_live: bool
    why: str = ""


class LoudspeakerState(Message, kind="state"):
    """Whether what the robot says can be heard, and if not, why."""

    is_live: bool
    why: str = ""


class Speech(Message):
    """Whether a person speaks, as a microphone hears it (`speech`): told at each change, and again while it lasts.

    An event, for there may be several microphones: those of the pages beside the robot's own.
    """

    speaker: str
    is_speaking: bool
    begun_ns: int = 0  # when this speech began; 0 where nobody speaks


class Alarm(Message, origin="utterance"):
    """A word of alarm that was heard in the sound itself (topic `alarm`), and what the words make of it afterwards.

    `spotted`: heard just now, by the microphone. `refuted`: the recogniser's words explain it, and they call no stop.
    `stands`: it was sure, and no word that was recognised explains it.
    """

    speaker: str
    word: str  # the one it is nearest to: "stop"
    sureness: float  # 0 to 1
    captured_ns: int  # when the speech began; the same as of its `Sound`
    ended_ns: int  # when the word was over
    phase: Literal["spotted", "refuted", "stands"] = "spotted"
    person: str = ""  # "stands": which person, as of the words

    @property
    def message_is_urgent(self) -> bool:
        """It holds a robot, or lets it go on."""
        return True


class VoiceOrder(Message):
    """What a person asks of the robot's voice (topic `voice/order`)."""

    by: str
    is_silenced: bool = False  # it stops, and nothing more is said of what waits
    volume: float = 1.0  # 0 to 1
    speed: float = 1.0  # 1: as ever; kept as near as the voice can
    pitch: float = 1.0  # likewise


class Saying(Message):
    """How far the loudspeaker has got with an utterance of the robot (topic `saying`)."""

    id: str  # of the utterance: "said:planner:7"
    text: str  # all that was to be said
    phase: Literal["begun", "done", "cut"]
    spoken: str = ""  # the words that were really heard; of "begun" none, of "done" all
    why: str = ""  # of "cut": "a person speaks", "stop", "the loudspeaker is gone"
    played_s: float = 0.0  # of "cut": so much of its sound was played
