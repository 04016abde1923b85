"""A recording for each trial: it ends with its trial, and no trial takes the place of another."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.trial_recorder import TrialRecorder
from runtime.bag import BagReader
from runtime.message import Envelope, Message, Stamped
from runtime.msgs import Trial, Utterance

NAME = "P01-trial-1-1.mcap"


def play(folder: Path, *words: str) -> None:
    """One trial of participant 1, in a run of its own; the last words come when it is over."""
    recorder = TrialRecorder(folder=str(folder))
    recorder.run_info = {"folder": str(folder), "seed": 1}
    recorder.on_start()
    trial = {"participant": "P01", "number": 1, "attempt": 1, "task": "talk", "condition": "only"}
    story: list[tuple[str, Message]] = [("study/trial", Trial(**trial, phase="started"))]  # type: ignore[arg-type]
    story += [("heard", Utterance(speaker="collaborator", text=text)) for text in words[:-1]]
    story += [("study/trial", Trial(**trial, phase="aborted"))]  # type: ignore[arg-type]
    story += [("heard", Utterance(speaker="collaborator", text=words[-1]))]
    for seq, (topic, message) in enumerate(story, 1):
        recorder.on_any(Stamped(message, Envelope(topic=topic, source="x", seq=seq, published_ns=seq)))
    recorder.on_stop()


def heard(path: Path) -> list[str]:
    return [record.document["text"] for record in BagReader(path) if record.topic == "heard"]


def test_a_recording_ends_with_its_trial(tmp_path: Path) -> None:
    play(tmp_path, "hello", "what is said afterwards")
    assert heard(tmp_path / NAME) == ["hello"]


def test_a_trial_that_is_there_already_is_never_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for words in ("pilot", "first", "second"):
        play(tmp_path, words, "bye")
    assert {path.name: heard(path) for path in tmp_path.glob("*.mcap")} == {
        NAME: ["pilot"],
        "P01-trial-1-1-again.mcap": ["first"],
        "P01-trial-1-1-again2.mcap": ["second"],
    }
    assert "is there already, and stays" in caplog.text
