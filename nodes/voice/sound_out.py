"""Sound as it goes out: a loudspeaker's device by miniaudio, and sound files made into samples for it.

A device has a thread of its own, which asks for the next samples each PERIOD_MS; between sounds it plays silence, so
that it is known to be there. What is cut falls silent with the samples that were handed over already, two periods.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import miniaudio

from nodes.voice.playing import BYTES_PER_FRAME, RATE_HZ, VoiceError
from nodes.voice.sound_in import REAL_BACKENDS, OwnContext, quiet_alsa
from runtime.clock import Clock, to_ns

PERIOD_MS = 20
PERIODS = 2
STALL_S = 1.0
"""A device that asks for nothing for so long is taken for gone."""
MOST_SOUND_S = 60


class Device:
    """One loudspeaker, open and running."""

    def __init__(self, device: miniaudio.PlaybackDevice, clock: Clock) -> None:
        self._device = device
        self._clock = clock
        self._now: _Sound | None = None
        self._newest = _Sound(b"")
        self._asked = 0  # how often it asked for samples
        self._seen = (0, clock.now_ns())  # that number, and when it was last seen to grow
        self._is_lost = False
        feed = self._feed()
        next(feed)
        device.stop_callback = self._lost
        device.start(feed)

    def begin(self, sound: bytes) -> None:
        self._newest = self._now = _Sound(sound)

    def silence(self) -> None:
        self._now = None

    @property
    def played(self) -> int:
        return self._newest.at // BYTES_PER_FRAME

    @property
    def fault(self) -> str:
        asked, seen_ns = self._seen
        now_ns = self._clock.now_ns()
        if self._is_lost:
            return "the loudspeaker is gone"
        if self._asked != asked:
            self._seen = (self._asked, now_ns)
        elif now_ns - seen_ns > to_ns(STALL_S):
            return "the loudspeaker is gone: it takes no more sound"
        return ""

    def close(self) -> None:
        self._device.close()

    def _lost(self) -> None:
        self._is_lost = True

    def _feed(self) -> Generator[bytes, int, None]:
        """Runs on the device's thread: the samples of as many frames as it asks for."""
        frames = yield b""
        while True:
            self._asked += 1
            size = frames * BYTES_PER_FRAME
            sound = self._now
            data = b"" if sound is None else sound.take(size)
            frames = yield data.ljust(size, b"\0")


class _Sound:
    """Samples, and how many bytes of them the device has taken; only its thread moves on."""

    def __init__(self, samples: bytes) -> None:
        self._samples = samples
        self.at = 0

    def take(self, size: int) -> bytes:
        data = self._samples[self.at : self.at + size]
        self.at += len(data)
        return data


class _Playback(OwnContext, miniaudio.PlaybackDevice):  # type: ignore[misc]  # untyped
    """A loudspeaker."""


def open_device(name: str, clock: Clock) -> Device:
    """The loudspeaker with this in its name, or the system's own where it is "". Raises VoiceError."""
    quiet_alsa()
    there = _playbacks()
    if not there:  # then nothing is opened either: each time that ALSA fails at it costs some memory for good
        raise VoiceError("this machine has no loudspeaker")
    try:
        device = _Playback(
            miniaudio.SampleFormat.SIGNED16,
            nchannels=1,
            sample_rate=RATE_HZ,
            buffersize_msec=PERIOD_MS,
            callback_periods=PERIODS,
            device_id=_chosen(name, there) if name else None,
            backends=REAL_BACKENDS,
            app_name="polyrhythm",
        )
    except miniaudio.MiniaudioError as problem:
        raise VoiceError(f"no loudspeaker can be opened ({_why(problem)}); there are: {_names(there)}") from problem
    try:
        return Device(device, clock)
    except miniaudio.MiniaudioError as problem:
        device.close()
        raise VoiceError(f"the loudspeaker does not start ({_why(problem)})") from problem


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
        raise VoiceError(f"{what} gave a WAV file that cannot be read ({_why(problem)})") from problem
    return b"".join(samples)


def _chosen(name: str, there: list[dict[str, Any]]) -> Any:
    """The id of the device with that name, or with that in its name."""
    fitting = [one for one in there if name.casefold() in one["name"].casefold()]
    exact = [one for one in fitting if one["name"] == name]
    if not fitting:
        raise VoiceError(f"no loudspeaker has {name!r} in its name; there are: {_names(there)}")
    return (exact or fitting)[0]["id"]


def _names(there: list[dict[str, Any]]) -> str:
    return ", ".join(str(one["name"]) for one in there)


def _playbacks() -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = miniaudio.Devices(backends=REAL_BACKENDS).get_playbacks()
    except miniaudio.MiniaudioError:
        return []
    return [one for one in found if not str(one["name"]).startswith("Discard all")]  # ALSA's, which nobody hears


def _why(problem: miniaudio.MiniaudioError) -> str:
    return ", ".join(str(part) for part in problem.args)
