"""What the pages say of the recording is what its recorder says; a recorder that is silent records nothing."""

from __future__ import annotations

import pytest

from bridges.web.console.feed import Recorders
from bridges.web.console.node import Console
from bridges.web.study.node import Study
from nodes.msgs import RecorderState
from nodes.recording.recorder import Recorder
from nodes.recording.trial_recorder import TrialRecorder
from runtime.message import Envelope, Stamped

WRITES = RecorderState(mode="recording", file="run.mcap")
FULL = RecorderState(mode="stopped", file="run.mcap", why="the disk is full")


NOW_NS = 10_000_000_000


def said(state: RecorderState, age_s: float = 0.6, source: str = "recorder") -> Stamped[RecorderState]:
    sent_ns = NOW_NS - int(age_s * 1e9)
    return Stamped(state, Envelope(topic="recorder/state", source=source, seq=1, published_ns=sent_ns))


@pytest.mark.parametrize(
    ("told", "mode", "words"),
    [
        ([said(WRITES)], "recording", ""),
        ([said(FULL)], "stopped", "the disk is full"),
        ([said(WRITES, 3.1)], "none", "recorder is silent"),
        ([said(WRITES), said(FULL)], "stopped", "the disk is full"),
        ([said(FULL), said(WRITES)], "recording", ""),
        ([said(FULL, source="other"), said(WRITES)], "stopped", "the disk is full"),
        ([said(WRITES), said(RecorderState(mode="waiting", file="run.mcap"), source="ring")], "recording", ""),
        ([], "none", "no recorder runs"),
    ],
)
def test_a_page_says_what_becomes_of_the_recording(told: list[Stamped[RecorderState]], mode: str, words: str) -> None:
    recorders = Recorders()
    for stamped in told:
        recorders.take(stamped)
    document = recorders.document(NOW_NS)
    assert (document["mode"], document["why"]) == (mode, words)
    assert document["file"] == ("run.mcap" if told else "")


def test_console_and_study_listen_to_the_recorder_that_they_speak_of() -> None:
    assert Console.recorder.topic == Recorder.told.topic
    assert Study.recorder.topic == TrialRecorder.told.topic
