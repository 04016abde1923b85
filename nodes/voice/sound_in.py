"""Sound as it comes in, from a microphone or a file: 16-bit samples at 16 kHz, one channel, in blocks of 32 ms."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import miniaudio

from nodes.voice.segments import BLOCK_NS
from runtime.clock import NS_PER_S, Clock, to_ns
from runtime.errors import UserError

RATE_HZ = 16_000
BYTES_PER_S = 2 * RATE_HZ
BLOCK_BYTES = 1024
PERIOD_MS = 32
MOST_WAITING = 300  # blocks: ten seconds that nobody took
STALL_NS = to_ns(0.3)
SILENT_END_S = 1.0  # after a file, so that its last words are heard to their end

REAL_BACKENDS = [
    backend for backend in miniaudio.Backend if backend not in (miniaudio.Backend.NULL, miniaudio.Backend.CUSTOM)
]
_quiet = ctypes.CFUNCTYPE(None)(lambda: None)  # called with more arguments than it looks at

Block = tuple[bytes, int]
"""Its samples, and when the last of them was taken, in ns of the clock."""


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


class FileSound:
    """A sound file, heard at its own pace from now on."""

    def __init__(self, path: Path, clock: Clock, *, loop: bool = False) -> None:
        """Raises UserError where the file cannot be read."""
        self._path = path
        self._blocks = _file_blocks(path)
        self._clock = clock
        self._loop = loop
        self._start_ns = clock.now_ns()
        self._number = 0  # blocks handed out
        self.lost = ""

    def blocks(self) -> list[Block]:
        found: list[Block] = []
        now_ns = self._clock.now_ns()
        while not self.lost and (end_ns := self._start_ns + (self._number + 1) * BLOCK_NS) <= now_ns:
            if (block := self._next()) is not None:
                found.append((block, end_ns))
                self._number += 1
        return found

    def _next(self) -> bytes | None:
        try:
            if (block := next(self._blocks, None)) is None and self._loop:
                self._blocks = _file_blocks(self._path)
                block = next(self._blocks)
        except (UserError, miniaudio.MiniaudioError):
            self.lost = "the file cannot be read any further"
            return None
        if block is None:
            self.lost = "the file is at its end"
        return block

    def close(self) -> None:
        self.lost = self.lost or "closed"


class Pace:
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
    """A microphone, read by a thread of the sound library's own."""

    def __init__(self, device: str, clock: Clock, *, stall_s: float = 1.0) -> None:
        """`device`: a part of its name, "" for the system's choice, "null" for one of silence. Raises UserError."""
        quiet_alsa()
        backends = [miniaudio.Backend.NULL] if device == "null" else REAL_BACKENDS
        if device == "" and not _devices():  # then none is opened: each failure of ALSA's costs memory for good
            raise UserError("cannot be opened: this machine has none; is one connected?")
        chosen = None if device in ("", "null") else _find(device)
        self._clock = clock
        self._waiting: deque[Block] = deque(maxlen=MOST_WAITING)  # the oldest go first; the gap is noticed
        self._pace = Pace()
        self._rest = b""
        self._stall_ns = to_ns(stall_s)
        self._alive_ns = clock.now_ns()
        self.lost = ""
        try:
            self._device = _Capture(
                input_format=miniaudio.SampleFormat.SIGNED16,
                nchannels=1,
                sample_rate=RATE_HZ,
                buffersize_msec=PERIOD_MS,
                device_id=chosen,
                backends=backends,
                app_name="polyrhythm",
            )
            listener = self._listen()
            next(listener)
            self._device.start(listener)
        except miniaudio.MiniaudioError as problem:
            raise UserError(f"cannot be opened ({problem.args[0]}); is one connected?") from problem

    def _listen(self) -> Generator[None, bytes, None]:
        """Runs on the library's thread."""
        while True:
            data = yield
            taken_ns = self._pace.end_ns(self._clock.now_ns(), len(data) * NS_PER_S // BYTES_PER_S)
            data = self._rest + bytes(data)
            whole = len(data) // BLOCK_BYTES
            self._rest = data[whole * BLOCK_BYTES :]
            rest_ns = len(self._rest) * NS_PER_S // BYTES_PER_S
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
        elif now_ns - self._alive_ns > self._stall_ns:
            self.lost = f"it has delivered nothing for {self._stall_ns * 1e-9:g} s"
        return found

    def close(self) -> None:
        self.lost = self.lost or "closed"
        self._device.close()


class OwnContext:
    """Beside a device class of miniaudio: frees its context at the end, also where the device could not be opened.

    The library's classes leave it behind, some kilobytes each time that a device which is not there is looked for.
    """

    _made: Any = None

    def _make_context(self, *arguments: Any) -> Any:
        self._made = super()._make_context(*arguments)  # type: ignore[misc]  # the library's
        return self._made

    def close(self) -> None:
        super().close()  # type: ignore[misc]  # the library's
        made, self._made = self._made, None
        if made is not None:
            miniaudio.lib.ma_context_uninit(made)


class _Capture(OwnContext, miniaudio.CaptureDevice):  # type: ignore[misc]  # untyped
    """A microphone."""


def microphones() -> list[str]:
    """The names of the microphones that there are."""
    return [str(device["name"]) for device in _devices()]


def _devices() -> list[dict[str, Any]]:
    quiet_alsa()
    try:
        found = list(miniaudio.Devices(REAL_BACKENDS).get_captures())
    except miniaudio.MiniaudioError:
        return []
    return [device for device in found if not str(device["name"]).startswith("Discard all")]  # of the null backend


def _find(device: str) -> object:
    found = _devices()
    for one in found:
        if device.lower() in str(one["name"]).lower():
            return one["id"]
    known = ", ".join(repr(str(one["name"])) for one in found) or "none"
    raise UserError(f"none has {device!r} in its name; there are: {known}")


@cache
def quiet_alsa() -> None:
    """Keep ALSA from writing its own words on stderr: where something is wrong, our sentence says so."""
    try:
        library = ctypes.CDLL("libasound.so.2")
        library.snd_lib_error_set_handler(_quiet)
    except (OSError, AttributeError):
        pass  # no ALSA here


_NO_SOUND = "no sound that can be read; expected WAV, FLAC, MP3 or Ogg Vorbis"


def decode_sound(data: bytes, what: str) -> bytes:
    """The samples of a WAV, FLAC, MP3 or Ogg Vorbis file, mixed to one channel. Raises UserError, naming `what`."""
    try:
        decoded = miniaudio.decode(
            data, nchannels=1, sample_rate=RATE_HZ, output_format=miniaudio.SampleFormat.SIGNED16
        )
    except miniaudio.DecodeError as problem:
        raise UserError(f"{what} is {_NO_SOUND}") from problem
    return bytes(decoded.samples)


def _file_blocks(path: Path) -> Iterator[bytes]:
    """A sound file block by block, and a little silence, as it is read. Raises UserError where it cannot be opened."""
    try:
        path.open("rb").close()
        parts = miniaudio.stream_file(
            str(path),
            miniaudio.SampleFormat.SIGNED16,
            nchannels=1,
            sample_rate=RATE_HZ,
            frames_to_read=BLOCK_BYTES // 2,
        )
    except OSError as problem:
        raise UserError(f"{path}: cannot be read ({problem.strerror})") from problem
    except miniaudio.DecodeError as problem:
        raise UserError(f"{path} is {_NO_SOUND}") from problem
    return _in_blocks(parts)


def _in_blocks(parts: Iterator[Any]) -> Iterator[bytes]:
    rest = b""
    for part in parts:
        rest += part.tobytes()
        while len(rest) >= BLOCK_BYTES:
            yield rest[:BLOCK_BYTES]
            rest = rest[BLOCK_BYTES:]
    if rest:
        yield rest.ljust(BLOCK_BYTES, b"\0")
    for _ in range(int(SILENT_END_S * BYTES_PER_S) // BLOCK_BYTES):
        yield bytes(BLOCK_BYTES)
