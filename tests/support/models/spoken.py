"""Speech to hear, made by espeak-ng: a synthesiser that speaks plainly enough for a detector of speech."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from nodes.msgs import SOUND_BYTES_PER_S
from nodes.voice.hearing.sound_file import decode_sound
from nodes.voice.wav import as_wav

needs_espeak = pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")


def spoken(text: str, *, voice: str = "en-us") -> bytes:
    """16-bit samples at 16 kHz."""
    made = subprocess.run(["espeak-ng", "-v", voice, "--stdin", "--stdout"], input=text.encode(), capture_output=True)
    assert made.returncode == 0, made.stderr
    return decode_sound(made.stdout, "espeak-ng")


def silence(seconds: float) -> bytes:
    return bytes(round(seconds * SOUND_BYTES_PER_S / 2) * 2)


def write_wav(path: Path, *parts: bytes) -> Path:
    path.write_bytes(as_wav(b"".join(parts)))
    return path
