"""Samples as WAV, which every speech recogniser takes and every player plays: 16 bits at 16 kHz, one channel."""

from __future__ import annotations

import io
import wave
from pathlib import Path

from nodes.msgs import SAMPLE_BYTES, SOUND_RATE_HZ
from runtime.errors import writing


def as_wav(samples: bytes) -> bytes:
    """The file's bytes."""
    whole = io.BytesIO()
    with wave.open(whole, "wb") as file:
        _shape(file)
        file.writeframes(samples)
    return whole.getvalue()


def new_wav(path: Path) -> wave.Wave_write:
    """A file to write samples to. Raises UserError where it cannot be made."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = wave.open(str(path), "wb")  # noqa: SIM115  # the caller closes it
    _shape(file)
    return file


def _shape(file: wave.Wave_write) -> None:
    file.setnchannels(1)
    file.setsampwidth(SAMPLE_BYTES)
    file.setframerate(SOUND_RATE_HZ)
