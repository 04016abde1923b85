"""Sound files instead of a microphone: heard block by block at their own pace, or decoded at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import miniaudio

from nodes.msgs import SOUND_BYTES_PER_S, SOUND_RATE_HZ
from nodes.voice.hearing.blocks import BLOCK_BYTES, BLOCK_NS, BLOCK_SAMPLES, Block, one_channel
from runtime.clock import Clock
from runtime.errors import UserError

SILENT_END_S = 1.0  # after a file, so that its last words are heard to their end
_HEADER_BYTES = 1 << 16
_NO_SOUND = "no sound that can be read; expected WAV, FLAC, MP3 or Ogg Vorbis"


class FileSound:
    """A sound file, heard at its own pace from now on."""

    def __init__(self, path: Path, clock: Clock, *, loop: bool = False, channel: int = 0) -> None:
        """`channel`: the one to hear, from 1; 0 mixes all. Raises UserError where it cannot."""
        self._path = path
        self._channel = channel
        self._blocks = _file_blocks(path, channel)
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
                self._blocks = _file_blocks(self._path, self._channel)
                block = next(self._blocks)
        except (UserError, miniaudio.MiniaudioError):
            self.lost = "the file cannot be read any further"
            return None
        if block is None:
            self.lost = "the file is at its end"
        return block

    def close(self) -> None:
        self.lost = self.lost or "closed"


def decode_sound(data: bytes, what: str) -> bytes:
    """The samples of a WAV, FLAC, MP3 or Ogg Vorbis file, mixed to one channel. Raises UserError, naming `what`."""
    channels = _channels(data, what)
    try:
        decoded = miniaudio.decode(
            data, nchannels=channels, sample_rate=SOUND_RATE_HZ, output_format=miniaudio.SampleFormat.SIGNED16
        )
    except miniaudio.DecodeError as problem:
        raise UserError(f"{what} is {_NO_SOUND}") from problem
    return one_channel(decoded.samples.tobytes(), channels, 0)


def _channels(data: bytes, what: str) -> int:
    """How many there are. Of three or more miniaudio mixes by where their loudspeakers stand, and not as it should."""
    for info_of in (miniaudio.wav_get_info, miniaudio.flac_get_info, miniaudio.vorbis_get_info, miniaudio.mp3_get_info):
        try:
            return int(info_of(data).nchannels)
        except miniaudio.DecodeError:
            continue
    raise UserError(f"{what} is {_NO_SOUND}")


def _file_blocks(path: Path, chosen: int) -> Iterator[bytes]:
    """A sound file block by block, and a little silence, as it is read. Raises UserError where it cannot be opened."""
    try:
        with path.open("rb") as file:
            begin = file.read(_HEADER_BYTES)
            try:
                channels = _channels(begin, str(path))
            except UserError:  # perhaps a picture comes first
                channels = _channels(begin + file.read(), str(path))
        parts = miniaudio.stream_file(
            str(path),
            miniaudio.SampleFormat.SIGNED16,
            nchannels=channels,
            sample_rate=SOUND_RATE_HZ,
            frames_to_read=BLOCK_SAMPLES,
        )
    except OSError as problem:
        raise UserError(f"{path}: cannot be read ({problem.strerror})") from problem
    except miniaudio.DecodeError as problem:
        raise UserError(f"{path} is {_NO_SOUND}") from problem
    if chosen > channels:
        raise UserError(f"{path} has {channels} channel{'s' if channels > 1 else ''}; there is no channel {chosen}")
    return _in_blocks(one_channel(part.tobytes(), channels, chosen) for part in parts)


def _in_blocks(parts: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for part in parts:
        rest += part
        while len(rest) >= BLOCK_BYTES:
            yield rest[:BLOCK_BYTES]
            rest = rest[BLOCK_BYTES:]
    if rest:
        yield rest.ljust(BLOCK_BYTES, b"\0")
    for _ in range(int(SILENT_END_S * SOUND_BYTES_PER_S) // BLOCK_BYTES):
        yield bytes(BLOCK_BYTES)
