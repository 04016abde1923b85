"""What people said in a recording becomes WAV, each utterance where it was said."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nodes.mcap.file import BagWriter
from nodes.msgs import Sound
from nodes.recording.bag.command import main
from runtime.clock import to_ns
from runtime.message import Envelope, Stamped
from tests.support.sentences import sentence

RATE_HZ = 16_000


def loud(value: int, seconds: float) -> NDArray[np.int16]:
    return np.full(round(seconds * RATE_HZ), value, np.int16)


def recording(path: Path, *utterances: tuple[float, float, NDArray[np.int16]], zero_s: float = 0.0) -> Path:
    """Of each: when it begins, how much of its samples is from before that, and they."""
    writer = BagWriter(path, {"clock": "real" if zero_s else "virtual"})
    if zero_s:
        writer.note("start", {"zero_ns": str(to_ns(zero_s))})
    for number, (begin_s, before_s, samples) in enumerate(utterances, 1):
        sound = Sound(
            speaker="person",
            number=number,
            captured_ns=to_ns(begin_s),
            voiced_s=0.5,
            before_s=before_s,
            samples=samples,
        )
        stamp_ns = to_ns(begin_s + len(samples) / RATE_HZ)
        writer.write(Stamped(sound, Envelope("microphone/speech", "ears", number, stamp_ns)))
    writer.close({})
    return path


def heard(path: Path) -> NDArray[np.int16]:
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE_HZ, 1, 2)
        return np.frombuffer(file.readframes(file.getnframes()), np.int16)


def test_each_utterance_stands_where_it_was_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recording(tmp_path / "run.mcap", (1.0, 0.25, loud(100, 1.0)), (3.0, 0.0, loud(200, 0.5)))
    assert main(["export", str(path), "--to", "wav"]) == 0
    assert "2 utterances in" in capsys.readouterr().out
    samples = heard(tmp_path / "run-sound" / "microphone_speech.wav")
    parts = [(0.0, 0.75, 0), (0.75, 1.75, 100), (1.75, 3.0, 0), (3.0, 3.5, 200)]
    for begin_s, end_s, value in parts:
        assert set(samples[round(begin_s * RATE_HZ) : round(end_s * RATE_HZ)]) == {value}
    assert len(samples) == 3.5 * RATE_HZ


def test_what_two_utterances_share_stands_there_once(tmp_path: Path) -> None:
    """The second one's time from before is the first one's end."""
    path = recording(tmp_path / "run.mcap", (1.0, 0.0, loud(100, 1.0)), (2.1, 0.3, loud(200, 1.0)))
    main(["export", str(path), "--to", "wav", "--out", str(tmp_path / "out")])
    samples = heard(tmp_path / "out" / "microphone_speech.wav")
    assert [int(samples[round(at_s * RATE_HZ)]) for at_s in (1.9, 1.99, 2.01, 2.7)] == [100, 100, 200, 200]
    assert len(samples) == 2.8 * RATE_HZ


def test_what_was_being_said_when_the_recording_began_stands_at_its_beginning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ((8.5, 0.0, loud(50, 1.0)), (9.5, 0.25, loud(100, 1.0)), (12.0, 0.0, loud(200, 0.5)))
    path = recording(tmp_path / "run.mcap", *said, zero_s=10.0)
    assert main(["export", str(path), "--to", "wav"]) == 0
    printed = capsys.readouterr()
    assert "2 utterances in" in printed.out
    assert sentence("recording.said_before", what="microphone/speech #2", seconds=0.5) in printed.err
    samples = heard(tmp_path / "run-sound" / "microphone_speech.wav")
    assert [int(samples[round(at_s * RATE_HZ)]) for at_s in (0.0, 0.2, 0.3, 1.9, 2.1)] == [100, 100, 0, 0, 200]
    assert len(samples) == 2.5 * RATE_HZ


def test_a_time_that_cannot_be_is_no_giant_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recording(tmp_path / "run.mcap", (1.0, 0.0, loud(100, 0.1)), (1e9, 0.0, loud(200, 0.1)))
    assert main(["export", str(path), "--to", "wav"]) == 1
    assert "microphone/speech #2 from ears" in capsys.readouterr().err
    assert main(["export", str(path), "--to", "wav", "--skip-damaged"]) == 0
    assert "left out" in capsys.readouterr().err
    assert len(heard(tmp_path / "run-sound" / "microphone_speech.wav")) == 1.1 * RATE_HZ


def test_a_recording_without_a_microphone_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recording(tmp_path / "run.mcap")
    assert main(["export", str(path), "--to", "wav"]) == 1
    assert sentence("recording.no_sound") in capsys.readouterr().err
