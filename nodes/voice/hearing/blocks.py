"""Blocks of sound, as a detector of speech takes them, and what they come from."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from nodes.msgs import SAMPLE_BYTES, SOUND_RATE_HZ
from runtime.clock import to_ns

BLOCK_SAMPLES = 512
BLOCK_BYTES = BLOCK_SAMPLES * SAMPLE_BYTES
BLOCK_S = BLOCK_SAMPLES / SOUND_RATE_HZ  # 0.032
BLOCK_NS = to_ns(BLOCK_S)

Block = tuple[bytes, int]
"""Its samples, and when the last of them was taken, in ns of the clock."""


def one_channel(samples: bytes, channels: int, chosen: int) -> bytes:
    """Of 16-bit samples of so many channels, side by side: the one that is chosen, from 1, or with 0 their mean."""
    if channels == 1:
        return samples
    heard = np.frombuffer(samples, np.int16).reshape(-1, channels)
    one = heard[:, chosen - 1] if chosen else heard.mean(axis=1, dtype=np.float32).round().astype(np.int16)
    return one.tobytes()


class SoundSource(Protocol):
    """Where blocks come from."""

    lost: str
    """Why nothing more will come; "" while something may."""

    def blocks(self) -> list[Block]:
        """What has come since the last time; never waits."""
        ...

    def close(self) -> None:
        """Let go of the device."""
        ...
