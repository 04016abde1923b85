"""WAV files, as voices give them, made into samples for a loudspeaker."""

from __future__ import annotations

import miniaudio

from nodes.voice.devices import why
from nodes.voice.speaking.playing import RATE_HZ, VoiceError

MOST_SOUND_S = 60


def decode_speech(data: bytes, what: str) -> bytes:
    """The samples of a WAV file; of one that does not say its length, all there are. Raises VoiceError."""
    if not data:
        raise VoiceError(f"{what} gave no sound at all; expected WAV")
    if data[:4] not in (b"RIFF", b"RF64") or data[8:12] != b"WAVE":
        raise VoiceError(f"{what} gave something that is no WAV file: it begins with {data[:16]!r}")
    samples: list[bytes] = []
    try:
        for second in miniaudio.stream_memory(
            data, miniaudio.SampleFormat.SIGNED16, nchannels=1, sample_rate=RATE_HZ, frames_to_read=RATE_HZ
        ):
            if len(samples) >= MOST_SOUND_S:
                raise VoiceError(f"{what} gave more than {MOST_SOUND_S} s of sound for one sentence")
            samples.append(second.tobytes())
    except miniaudio.MiniaudioError as problem:
        raise VoiceError(f"{what} gave a WAV file that cannot be read ({why(problem)})") from problem
    return b"".join(samples)
