"""Microphones by miniaudio, which reads them by a thread of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator

import miniaudio

from nodes.msgs import SOUND_BYTES_PER_S, SOUND_RATE_HZ
from nodes.voice import devices
from nodes.voice.hearing.blocks import BLOCK_BYTES, BLOCK_NS, BLOCK_S, Block, one_channel
from runtime.clock import NS_PER_S, Clock, to_ns, to_s

PERIOD_MS = round(BLOCK_S * 1000)
MOST_WAITING = 300  # blocks: ten seconds that nobody took
STALL_NS = to_ns(0.3)


class CaptureClock:
    """When the sound that a device hands over was taken; what comes in one go after a stall had waited, and is old."""

    def __init__(self) -> None:
        self._handed_ns = self._end_ns = 0

    def end_ns(self, now_ns: int, length_ns: int) -> int:
        """When the last of so much sound was taken, which is handed over now."""
        since_ns = now_ns - self._handed_ns
        has_waited = self._end_ns and (since_ns < length_ns // 2 or since_ns > STALL_NS)
        self._handed_ns = now_ns
        self._end_ns = min(now_ns, self._end_ns + length_ns) if has_waited else now_ns
        return self._end_ns


class DeviceSound:
    """One microphone, open and running."""

    def __init__(self, device: str, clock: Clock, *, stall_s: float = 1.0, channel: int = 0) -> None:
        """`device`: a part of its name, "" for the system's choice, "null" for one of silence. Raises DeviceError.

        `channel` is the one to hear, from 1; with 0 all are mixed.
        """
        is_null = device == "null"
        chosen = None if is_null else devices.device_id("microphone", device)
        self._channel = channel
        self._channels = 1 if is_null else devices.channels_of("microphone", device, max(channel, 1))
        self._clock = clock
        self._waiting: deque[Block] = deque(maxlen=MOST_WAITING)  # the oldest go first; the gap is noticed
        self._pace = CaptureClock()
        self._rest = b""
        self._stall_s = stall_s
        self._alive_ns = clock.now_ns()
        self.lost = ""
        try:
            self.device = _Capture(
                input_format=miniaudio.SampleFormat.SIGNED16,
                nchannels=self._channels,
                sample_rate=SOUND_RATE_HZ,
                buffersize_msec=PERIOD_MS,
                device_id=chosen,
                backends=[miniaudio.Backend.NULL] if is_null else devices.REAL_BACKENDS,
                app_name="polyrhythm",
            )
            listener = self._listen()
            next(listener)
            self.device.start(listener)
        except miniaudio.MiniaudioError as problem:
            raise devices.not_opened("microphone", problem) from problem

    def _listen(self) -> Generator[None, bytes, None]:
        """Runs on the library's thread."""
        while True:
            data = one_channel(bytes((yield)), self._channels, self._channel)
            taken_ns = self._pace.end_ns(self._clock.now_ns(), len(data) * NS_PER_S // SOUND_BYTES_PER_S)
            data = self._rest + data
            whole = len(data) // BLOCK_BYTES
            self._rest = data[whole * BLOCK_BYTES :]
            rest_ns = len(self._rest) * NS_PER_S // SOUND_BYTES_PER_S
            for number in range(whole):
                end_ns = taken_ns - rest_ns - (whole - 1 - number) * BLOCK_NS
                self._waiting.append((data[number * BLOCK_BYTES : (number + 1) * BLOCK_BYTES], end_ns))

    def blocks(self) -> list[Block]:
        found: list[Block] = []
        while self._waiting:
            found.append(self._waiting.popleft())
        now_ns = self._clock.now_ns()
        if found:
            self._alive_ns = now_ns
        elif to_s(now_ns - self._alive_ns) > self._stall_s:
            self.lost = f"it has delivered nothing for {self._stall_s:g} s"
        return found

    def close(self) -> None:
        self.lost = self.lost or "closed"
        self.device.close()


class _Capture(devices.OwnContext, miniaudio.CaptureDevice):  # type: ignore[misc]  # untyped
    """A microphone."""
