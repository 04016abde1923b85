"""Loudspeakers by miniaudio.

A device has a thread of its own, which asks for the next samples each PERIOD_MS; between sounds it plays silence, so
that it is known to be there. What is cut falls silent with the samples that were handed over already, two periods.
"""

from __future__ import annotations

from collections.abc import Generator

import miniaudio

from nodes.voice import devices
from nodes.voice.speaking.playing import BYTES_PER_FRAME, RATE_HZ
from runtime.clock import Clock, to_s

PERIOD_MS = 20
PERIODS = 2
STALL_S = 1.0
"""A device that asks for nothing for so long is taken for gone."""


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

    def add(self, sound: bytes) -> None:
        if self._now is not None:
            self._now.add(sound)

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
        elif to_s(now_ns - seen_ns) > STALL_S:
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

    def add(self, samples: bytes) -> None:
        self._samples += samples  # one assignment: the device's thread sees the old ones or all

    def take(self, size: int) -> bytes:
        data = self._samples[self.at : self.at + size]
        self.at += len(data)
        return data


class _Playback(devices.OwnContext, miniaudio.PlaybackDevice):  # type: ignore[misc]  # untyped
    """A loudspeaker."""


def open_device(name: str, clock: Clock) -> Device:
    """The loudspeaker with this in its name, or the system's own where it is "". Raises DeviceError."""
    chosen = devices.device_id("loudspeaker", name)
    try:
        device = _Playback(
            miniaudio.SampleFormat.SIGNED16,
            nchannels=1,
            sample_rate=RATE_HZ,
            buffersize_msec=PERIOD_MS,
            callback_periods=PERIODS,
            device_id=chosen,
            backends=devices.REAL_BACKENDS,
            app_name="polyrhythm",
        )
    except miniaudio.MiniaudioError as problem:
        raise devices.not_opened("loudspeaker", problem) from problem
    try:
        return Device(device, clock)
    except miniaudio.MiniaudioError as problem:
        device.close()
        raise devices.DeviceError(f"the loudspeaker does not start ({devices.why(problem)})") from problem
