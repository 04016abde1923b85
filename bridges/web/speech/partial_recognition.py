"""`PartialRecognition`: when what somebody has said so far is worth recognising, before they have ended: it may be a
stop."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from runtime.msgs import SOUND_RATE_HZ

PAUSE_S = 0.2
"""So much silence after words: perhaps this was all."""
EACH_S = 1.0
"""So often while they go on without a pause."""
QUIET_SHARE = 0.25
"""Of the loudest piece so far: what is softer is a pause. A guess that decides when to look, never what was said."""
QUIETEST = 60.0
"""Root mean square of 16-bit samples; what is softer is no word in any room."""


class PartialRecognition:
    """Takes the pieces of one utterance."""

    def __init__(self) -> None:
        self._loudest = 0.0
        self._quiet = self._since = 0  # samples: since the last word, and since the last look
        self._has_more = False  # than at the last look

    def add(self, samples: NDArray[np.int16]) -> bool:
        """The next piece, some samples at SOUND_RATE_HZ; True where it is time for a look."""
        loudness = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))
        self._since += len(samples)
        self._loudest = max(self._loudest, loudness)
        if loudness >= max(QUIETEST, QUIET_SHARE * self._loudest):
            self._has_more, self._quiet = True, 0
        else:
            self._quiet += len(samples)
        is_pause = self._quiet >= PAUSE_S * SOUND_RATE_HZ
        if not self._has_more or (not is_pause and self._since < EACH_S * SOUND_RATE_HZ):
            return False
        self._has_more, self._since = False, 0
        return True
