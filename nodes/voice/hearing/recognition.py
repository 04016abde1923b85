"""Who turns sound into words: a server, a program or Whisper in this process, behind one face."""

from __future__ import annotations

from typing import Protocol
from unicodedata import category

from nodes.models.answers import ChatSettings
from nodes.models.budget import Budget
from nodes.voice.program import run_program
from nodes.voice.wav import as_wav

LONGEST_TEXT = 4000


def clean(text: str) -> str:
    """One line of words that any terminal may show: what a program or a server writes is data, never a command."""
    shown = (letter if category(letter) not in ("Cc", "Cs") else " " for letter in text[: 4 * LONGEST_TEXT])
    return " ".join("".join(shown).split())[:LONGEST_TEXT]


class Recognition(Protocol):
    """Turns speech into text."""

    async def text_of(self, samples: bytes) -> str:
        """The words in 16-bit samples at 16 kHz, "" for none. Raises ModelError or ProgramError."""
        ...

    async def close(self) -> None:
        """Release what it holds."""
        ...


class ProgramRecognition:
    """A program that reads WAV and writes text, started for each utterance."""

    def __init__(self, command: str, deadline_s: float) -> None:
        self._command = command
        self._deadline_s = deadline_s

    async def text_of(self, samples: bytes) -> str:
        written = await run_program(
            self._command, as_wav(samples), deadline_s=self._deadline_s, most_bytes=4 * LONGEST_TEXT
        )
        return clean(written.decode("utf-8", errors="replace"))

    async def close(self) -> None:
        """Nothing is kept from one utterance to the next."""


def recognition(command: str, settings: ChatSettings, *, language: str, keep_open: bool, budget: Budget) -> Recognition:
    """The program of this command, or the server of these settings where it is ""; only that imports the SDK."""
    if command:
        return ProgramRecognition(command, settings.deadline_s)
    from nodes.voice.hearing.transcription_api import Transcriber

    return Transcriber(settings, language=language, keep_open=keep_open, budget=budget)
