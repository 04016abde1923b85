"""Samples as a WAV file, which every speech recogniser takes."""

from __future__ import annotations

import io
import wave

RATE_HZ = 16_000


def as_wav(samples: bytes) -> bytes:
    """16-bit samples at 16 kHz, one channel."""
    whole = io.BytesIO()
    with wave.open(whole, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE_HZ)
        file.writeframes(samples)
    return whole.getvalue()
