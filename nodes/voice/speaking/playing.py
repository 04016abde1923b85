"""What a loudspeaker needs of a device: to begin a sound, to fall silent, and to tell how far it got."""

from __future__ import annotations

from typing import Protocol

from nodes.msgs.voice import SPOKEN_RATE_HZ
from runtime.clock import NS_PER_S, Clock
from runtime.errors import PolyrhythmError

RATE_HZ = SPOKEN_RATE_HZ
BYTES_PER_FRAME, SAMPLE = 2, "<i2"
"""A sound is 16-bit samples of one channel at RATE_HZ; a frame is one sample."""


class VoiceError(PolyrhythmError):
    """Words could not be made sound, or sound could not be heard; the text says why, for people."""


class Player(Protocol):
    """Plays one sound at a time."""

    def begin(self, sound: bytes) -> None:
        """Play this from now on, in the place of what is played."""
        ...

    def add(self, sound: bytes) -> None:
        """Play this behind what is played; where that is over, from now on. Nothing where all is silent."""
        ...

    def silence(self) -> None:
        """Play nothing more; `played` stays where it is."""
        ...

    @property
    def played(self) -> int:
        """How many frames of the newest sound have gone out."""
        ...

    @property
    def fault(self) -> str:
        """Why nothing is heard of what is played any more; "" while all is well."""
        ...

    def close(self) -> None:
        """Release the device."""
        ...


class Nowhere:
    """Plays for nobody and takes the same time: a robot without a loudspeaker, a simulation, a test."""

    fault = ""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._frames = 0
        self._begun_ns = 0
        self._stopped: int | None = 0

    def begin(self, sound: bytes) -> None:
        self._frames = len(sound) // BYTES_PER_FRAME
        self._begun_ns = self._clock.now_ns()
        self._stopped = None

    def add(self, sound: bytes) -> None:
        if self._stopped is None:
            self._begun_ns = self._clock.now_ns() - self.played * NS_PER_S // RATE_HZ  # a gap before it is no sound
            self._frames += len(sound) // BYTES_PER_FRAME

    def silence(self) -> None:
        self._stopped = self.played

    @property
    def is_silent(self) -> bool:
        """Whether nothing is played."""
        return self._stopped is not None

    @property
    def played(self) -> int:
        if self._stopped is not None:
            return self._stopped
        elapsed_ns = self._clock.now_ns() - self._begun_ns
        return min(self._frames, (elapsed_ns * RATE_HZ + NS_PER_S // 2) // NS_PER_S)

    def close(self) -> None:
        """There is nothing to release."""
