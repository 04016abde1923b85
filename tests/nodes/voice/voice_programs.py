"""Programs that speak, well or badly, as a loudspeaker's `command`."""

from __future__ import annotations

import io
import shlex
import sys
import wave

BEGINNING = "import sys, time, os\ntext = sys.stdin.buffer.read()\nout = sys.stdout.buffer\n"
"""Of each program: what it is told."""


def program(body: str, *, reads: bool = True) -> str:
    """A command line that runs this Python."""
    beginning = BEGINNING if reads else BEGINNING.replace("sys.stdin.buffer.read()", "b''")
    return shlex.join([sys.executable, "-S", "-c", beginning + body])


def wav(seconds: float, *, rate_hz: int = 24_000, channels: int = 1) -> bytes:
    """A sound of that length, loud enough not to be silence."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(2)
        writer.setframerate(rate_hz)
        writer.writeframes(b"\x00\x10" * round(seconds * rate_hz) * channels)
    return file.getvalue()


def plays(seconds: float) -> str:
    """A program that answers any text with so much sound."""
    sound = wav(seconds)
    return program(f"out.write({sound[:44]!r} + {sound[44:46]!r} * {(len(sound) - 44) // 2})")
