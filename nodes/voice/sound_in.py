"""Sound as it comes in: from a microphone or a file, as 16-bit samples at 16 kHz, one channel."""

from __future__ import annotations

from pathlib import Path

import miniaudio

from runtime.errors import UserError

RATE_HZ = 16_000
BYTES_PER_S = 2 * RATE_HZ


def decode_sound(data: bytes, what: str) -> bytes:
    """The samples of a WAV, FLAC, MP3 or Ogg Vorbis file, mixed to one channel. Raises UserError, naming `what`."""
    try:
        decoded = miniaudio.decode(
            data, nchannels=1, sample_rate=RATE_HZ, output_format=miniaudio.SampleFormat.SIGNED16
        )
    except miniaudio.DecodeError as problem:
        raise UserError(
            f"{what} is no sound that can be read: {problem}; expected WAV, FLAC, MP3 or Vorbis"
        ) from problem
    return bytes(decoded.samples)


def read_sound(path: Path) -> bytes:
    """The samples of a sound file. Raises UserError where there is none or it cannot be read."""
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise UserError(f"{path}: cannot be read ({problem.strerror})") from problem
    return decode_sound(data, str(path))
