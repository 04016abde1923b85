"""What the pages say of the recording is what its recorder says; a recorder that is silent records nothing."""

from __future__ import annotations

import pytest

from bridges.web.board import recorder_document
from bridges.web.node import Console
from bridges.web.study.node import Study
from nodes.recorder import Recorder
from nodes.trial_recorder import TrialRecorder
from runtime.message import Envelope, Stamped
from runtime.msgs import RecorderState

WRITES = RecorderState(mode="recording", file="run.mcap")
FULL = RecorderState(mode="stopped", file="run.mcap", why="the disk is full")


@pytest.mark.parametrize(
    ("told", "age_s", "mode", "words"),
    [
        (WRITES, 0.6, "recording", ""),
        (FULL, 0.6, "stopped", "the disk is full"),
        (WRITES, 3.1, "none", "the recorder is silent"),
        (None, 0.0, "none", "no recorder runs"),
    ],
)
def test_a_page_says_what_becomes_of_the_recording(
    told: RecorderState | None, age_s: float, mode: str, words: str
) -> None:
    now_ns = 10_000_000_000
    sent_ns = now_ns - int(age_s * 1e9)
    stamped = None if told is None else Stamped(told, Envelope(topic="t", source="r", seq=1, published_ns=sent_ns))
    document = recorder_document(stamped, now_ns)
    assert (document["mode"], document["why"]) == (mode, words)
    assert document["file"] == ("" if told is None else "run.mcap")


def test_console_and_study_listen_to_the_recorder_that_they_speak_of() -> None:
    assert Console.recorder.topic == Recorder.told.topic
    assert Study.recorder.topic == TrialRecorder.told.topic
