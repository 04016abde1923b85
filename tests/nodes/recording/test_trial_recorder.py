"""A recording for each trial: it ends with its trial, and no trial takes the place of another."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import pytest

from nodes.mcap.file import BagReader
from nodes.msgs import RecorderState, RunningTrial, Trial, Utterance
from nodes.recording.trial_recorder import TrialRecorder
from runtime.errors import RecordingError
from runtime.message import Envelope, Message, Stamped
from runtime.ports import Publisher, Sources
from runtime.run_facts import RunFacts
from tests.support.running import Runs, eventually
from tests.support.sentences import sentence

LAUNCH = """
[nodes.leader]
use = "tests.support.pages.web_nodes:Leader"

[nodes.trial_recorder]
use    = "nodes.recording.trial_recorder:TrialRecorder"
params = {{ folder = "{folder}" }}
"""
TRIAL = {"participant": "P01", "number": 1, "attempt": 1, "task": "talk", "condition": "only"}
NAME = "P01-trial-1-1.mcap"


def play(folder: Path, *words: str) -> None:
    """One trial of participant 1, in a run of its own; the last words come when it is over."""
    recorder = TrialRecorder(folder=str(folder))
    recorder.run_info = RunFacts.of({"folder": str(folder), "seed": 1})
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
    assert sentence("recording.trial_is_there") in caplog.text


def begun(folder: Path) -> tuple[TrialRecorder, list[RecorderState]]:
    """A recorder in the run that all of these share, and all that it tells."""
    recorder = TrialRecorder(folder=str(folder))
    recorder.run_info = RunFacts.of({"folder": str(folder), "seed": 1, "supervisor_pid": 7, "started_ns": 1})
    told: list[RecorderState] = []

    def tell(port: Publisher[RecorderState], message: Message, stems_from: Sources = None) -> None:
        assert isinstance(message, RecorderState)
        told.append(message)

    recorder.told.sink = tell
    recorder.on_start()
    return recorder, told


def take(recorder: TrialRecorder, *messages: Message) -> None:
    for seq, message in enumerate(messages, 1):
        topic = {Trial: "study/trial", RunningTrial: "study/running"}.get(type(message), "heard")
        recorder.on_any(Stamped(message, Envelope(topic=topic, source="x", seq=seq, published_ns=seq)))


def says(text: str) -> Utterance:
    return Utterance(speaker="collaborator", text=text)


def phase(name: str) -> Trial:
    return msgspec.convert({**TRIAL, "phase": name}, Trial)


RUNNING = msgspec.convert(TRIAL, RunningTrial)


def test_a_recorder_started_again_in_mid_trial_goes_on_in_another_file_and_says_so(tmp_path: Path) -> None:
    first, _ = begun(tmp_path)
    take(first, phase("started"), RUNNING, says("before"))
    first.flush()
    assert first.bag is not None
    first.bag.abandon()  # what is left of a recorder that is killed
    second, told = begun(tmp_path)
    take(second, RUNNING, says("after"), phase("completed"), says("too late"))
    assert heard(tmp_path / NAME) == ["before"]
    part = tmp_path / "P01-trial-1-1-2.mcap"
    assert heard(part) == ["after"]
    assert BagReader(part).metadata["trial"]["participant"] == "P01"
    assert [(one.mode, one.file) for one in told] == [("recording", part.name), ("waiting", "")]
    assert NAME in told[0].why


def test_a_trial_that_is_over_does_not_begin_again_by_an_older_word(tmp_path: Path) -> None:
    recorder, told = begun(tmp_path)
    take(recorder, RUNNING, phase("started"), says("hello"), phase("completed"), RUNNING, says("too late"))
    take(recorder, RunningTrial())
    assert [path.name for path in tmp_path.glob("*.mcap")] == [NAME]
    assert heard(tmp_path / NAME) == ["hello"]
    assert [one.mode for one in told] == ["recording", "waiting"]


def test_a_trial_whose_file_is_refused_is_told_as_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    recorder, told = begun(tmp_path / "file")
    take(recorder, phase("started"), says("hello"))
    recorder.flush()
    assert [(one.mode, one.file) for one in told] == [("stopped", NAME)] * 2
    assert sentence("recording.trial_not_recorded") in told[0].why


def so_far(path: Path) -> int:
    """How much was heard in a file that is just being written."""
    try:
        return len(heard(path))
    except RecordingError:  # not even its head is on the disk
        return 0


@pytest.mark.processes
def test_a_recorder_that_is_killed_in_mid_trial_records_the_rest_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "study.toml"
    file.write_text(LAUNCH.format(folder=tmp_path))
    part = tmp_path / "P01-trial-1-1-2.mcap"
    with Runs(monkeypatch) as runs:
        run = runs.start(file)
        eventually(lambda: so_far(tmp_path / NAME) > 0, "the trial is recorded")
        pid = run.states()["trial_recorder"].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: so_far(part) > 3, "the rest of the trial is recorded")
