"""What people said in a recording, as WAV: each utterance where it was said, and silence between them."""

from __future__ import annotations

import wave
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from nodes.msgs import SAMPLE_BYTES, SOUND_RATE_HZ, Sound
from nodes.recording.bag.export.damage import Damaged
from nodes.recording.bag.recording import Recording, envelope_or_none, file_names
from nodes.voice.wav import new_wav
from runtime.clock import to_s
from runtime.errors import RecordingError

EARLIEST_S = 60.0
"""For so long may somebody have been speaking when a recording begins, of a trial or of a run whose ears came first."""
LONGEST_S = 12 * 3600.0  # 1.4 GB; a WAV file has room for three times as much


class _SoundFile:
    """One microphone's speech, in the recording's time."""

    def __init__(self, file: wave.Wave_write, begin_ns: int) -> None:
        self._file = file
        self._begin_ns = begin_ns
        self._written = 0  # samples
        self.utterances = 0

    def add(self, sound: Sound) -> float:
        """For how long it was said before the recording began, in s. Raises ValueError where it is nowhere near it."""
        said_s = to_s(sound.captured_ns - self._begin_ns)
        if not -EARLIEST_S <= said_s <= LONGEST_S:
            raise ValueError(f"it began at {said_s:.0f} s of the recording")
        begin_s = said_s - sound.before_s
        gap = round(begin_s * SOUND_RATE_HZ) - self._written
        samples = sound.samples[max(0, -gap) :].astype("<i2")  # what the one before holds already
        self._file.writeframesraw(bytes(SAMPLE_BYTES * max(0, gap)) + samples.tobytes())
        self._written += max(0, gap) + len(samples)
        self.utterances += len(samples) > 0
        return max(0.0, min(-said_s, len(sound.samples) / SOUND_RATE_HZ - sound.before_s))


def export_sounds(
    recording: Recording, out: Path, *, skip_damaged: bool = False, tell: Callable[[str], None] = lambda _: None
) -> list[tuple[Path, int]]:
    """One WAV file for each microphone, which begins where the recording does.

    Raises RecordingError without any speech, and where some cannot be read, unless that is to be left out.
    """
    is_speech = {message.topic for message in recording if message.schema == Sound.__name__}
    names = file_names(is_speech)
    if not names:
        raise RecordingError(f"{recording.path}: holds nothing that a microphone heard")
    damaged = Damaged(recording, is_skipped=skip_damaged)
    files: dict[str, tuple[Path, _SoundFile]] = {}
    with ExitStack() as stack:
        for message in recording.gone_through("writing"):
            if message.topic not in names:
                continue
            try:
                sound = message.message(Sound)
                if envelope_or_none(message) is None or sound.samples.ndim != 1:
                    raise ValueError("no row of samples")
                if message.topic not in files:
                    path = out / f"{names[message.topic]}.wav"
                    files[message.topic] = path, _SoundFile(stack.enter_context(new_wav(path)), recording.begin_ns)
                early_s = files[message.topic][1].add(sound)
                if early_s:
                    which = f"{message.topic} #{sound.number}"
                    tell(f"{which}: {early_s:.1f} s of it were said before the recording began, and are left out")
            except (RecordingError, ValueError) as problem:
                damaged.met(message, problem)
    damaged.tell(tell)
    return [(path, file.utterances) for _, (path, file) in sorted(files.items())]
