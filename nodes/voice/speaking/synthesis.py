"""Words made sound: by a program that reads text and writes WAV, or by nothing at all that takes the time of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nodes.voice.program import command_problems, run_program
from nodes.voice.speaking.pieces import estimated_s
from nodes.voice.speaking.playing import BYTES_PER_FRAME, RATE_HZ, SAMPLE, VoiceError

MOST_BYTES = 1 << 24
"""Of a WAV file for one sentence: a minute and a half of the best there is."""
WINDING_UP_S = 2.0
USUAL_PACE, PACE = 175, "{words_a_minute}"
USUAL_PITCH, PITCH = 50, "{pitch}"


@dataclass(frozen=True, slots=True)
class Manner:
    """How the robot speaks; 1: as ever."""

    speed: float = 1.0
    pitch: float = 1.0


AS_EVER = Manner()


class Voice(Protocol):
    """Makes sound of a sentence."""

    async def sound(self, text: str, manner: Manner = AS_EVER) -> bytes:
        """The samples, see `nodes.voice.speaking.playing`; in that manner as far as the voice can.

        Raises VoiceError, ProgramError or ModelError.
        """
        ...

    async def close(self) -> None:
        """Release what it holds."""
        ...


class SilentVoice:
    """As long as somebody would speak, and not to be heard."""

    async def sound(self, text: str, manner: Manner = AS_EVER) -> bytes:
        return bytes(round(estimated_s(text) / manner.speed * RATE_HZ) * BYTES_PER_FRAME)

    async def close(self) -> None:
        """There is nothing to release."""


class ProgramVoice:
    """A program such as espeak-ng or Piper, started for each sentence.

    PACE and PITCH in its command are how fast and how high it speaks.
    """

    def __init__(self, command: str, deadline_s: float) -> None:
        self._command = command
        self._deadline_s = deadline_s

    async def sound(self, text: str, manner: Manner = AS_EVER) -> bytes:
        data = text.encode("utf-8", errors="replace") + b"\n"
        wav = await run_program(
            command_at(self._command, manner), data, deadline_s=self._deadline_s, most_bytes=MOST_BYTES
        )
        return await decoded(wav, self._command.split()[0])

    async def close(self) -> None:
        """Nothing is kept from one sentence to the next."""


def command_at(command: str, manner: Manner) -> str:
    """The program with its pace and pitch, where its command asks for them."""
    paced = command.replace(PACE, str(round(USUAL_PACE * manner.speed)))
    return paced.replace(PITCH, str(round(USUAL_PITCH * manner.pitch)))


def softened(sound: bytes, volume: float) -> bytes:
    """The same samples, less loud; `volume` 0 to 1."""
    return (np.frombuffer(sound, SAMPLE) * volume).astype(SAMPLE).tobytes()


async def decoded(data: bytes, what: str) -> bytes:
    """The samples of a WAV file, made in another thread. Raises VoiceError, naming what gave it."""
    return await asyncio.to_thread(decode_speech, data, what)


def voice_problems(command: str) -> list[str]:
    """Why this command cannot speak, in sentences."""
    advice = "apt install espeak-ng" if command.split()[:1] == ["espeak-ng"] else "install it"
    return command_problems(command, "reads text and writes WAV, such as espeak-ng --stdin --stdout", advice)


async def give_up(making: asyncio.Future[bytes]) -> None:
    """Cancel what is made and not wanted any more; a program is killed, a connection closed."""
    making.cancel()
    await asyncio.wait([making], timeout=WINDING_UP_S)
    if making.done() and not making.cancelled():
        making.exception()


MOST_SOUND_S = 60


def decode_speech(data: bytes, what: str) -> bytes:
    """The samples of a WAV file; of one that does not say its length, all there are. Raises VoiceError."""
    import miniaudio

    from nodes.voice.devices import why

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
