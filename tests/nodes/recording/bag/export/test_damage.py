"""What an export says and does where a recording is damaged, has holes or was written late."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import pytest

from nodes.mcap.file import BagReader, BagWriter
from nodes.mcap.schema import envelope_document
from nodes.msgs import Subtask
from nodes.recording.bag.command import main
from nodes.recording.bag.recording import Recording
from nodes.recording.dataset.episode import read_episode
from nodes.recording.images import SCHEMA, SCHEMA_NAME
from runtime.clock import to_ns
from runtime.message import Envelope, Stamped
from tests.nodes.recording.bag.export.ramp_recording import recording
from tests.support.sentences import sentence


def with_a_damaged_image(path: Path, out: Path, *numbers: int) -> Path:
    """The same recording, with images that cannot be decoded in the place of these."""
    writer = BagWriter(out, {"clock": "virtual"})
    for message in BagReader(path):
        about = message.envelope
        if message.topic == "head/image" and about.seq in numbers:
            document = {**message.document, "data": "bm8gaW1hZ2U=", "_envelope": envelope_document(about)}
            writer.write_document("head/image", SCHEMA_NAME, SCHEMA, document, about)
        else:
            writer.copy(message)
    writer.close()
    return out


@pytest.mark.parametrize("form", ["mp4", "lerobot"])
def test_an_image_that_cannot_be_read_ends_an_export_by_name_or_is_left_out_and_counted(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = recording(tmp_path / "whole.mcap")
    path = with_a_damaged_image(whole, tmp_path / "run.mcap", 70, 120)
    asked = ["export", str(path), "--to", form, "--out", str(tmp_path / "out")]
    assert main(asked) == 1
    named = f"run.mcap: head/image #70 from node, at 0.700 s, {sentence('recording.image_is_damaged')}"
    told = capsys.readouterr().err
    assert f"{named}; --skip-damaged leaves such messages out and counts them; " in told
    assert main([*asked, "--skip-damaged"]) == 0
    assert f"! {tmp_path}/{named}, nor 1 more of that topic: " in capsys.readouterr().err
    file = {"mp4": "head_image.mp4", "lerobot": "videos/observation.images.head/chunk-000/file-000.mp4"}[form]
    shown = brightness(tmp_path / "out" / file)
    assert main(["export", str(whole), "--to", form, "--out", str(tmp_path / "whole")]) == 0
    meant = brightness(tmp_path / "whole" / file)
    assert len(shown) == len(meant), "no frame is lost"
    behind = [number for number, (one, two) in enumerate(zip(shown, meant, strict=True)) if two - one > 5]
    assert len(behind) == {"mp4": 2, "lerobot": 4}[form], "the image before stands for each of the two periods"


def brightness(path: Path) -> list[float]:
    """Of each frame of a video."""
    capture = cv2.VideoCapture(str(path))
    found = []
    while (read := capture.read())[0]:
        found.append(float(read[1].mean()))
    capture.release()
    return found


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_table_tells_of_messages_that_cannot_be_read(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = BagWriter(tmp_path / "run.mcap", {"clock": "virtual"})
    for number in range(1, 4):
        writer.write(Stamped(Subtask(id="s", text="t"), Envelope("subtask", "planner", number, to_ns(number))))
    (good, *_) = BagReader(recording(tmp_path / "other.mcap"))
    for number in (4, 5):
        writer.copy(
            replace(good, topic="subtask", schema="Subtask", log_time_ns=to_ns(number), data=b"{", sequence=number)
        )
    writer.close()
    assert main(["export", str(tmp_path / "run.mcap"), "--to", form, "--out", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().err
    assert "run.mcap: subtask #4, at 4.000 s, cannot be read (topic 'subtask': a message is no JSON object" in told
    assert ", nor 1 more of that topic: their " in told


def test_a_hole_in_the_recording_is_told_of_a_dataset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From 0.8 s to 1.8 s nothing was recorded; of its 20 frames those of the first half second are fresh enough."""
    writer = BagWriter(tmp_path / "run.mcap", {"clock": "virtual"})
    for message in BagReader(recording(tmp_path / "whole.mcap", seconds=2.5)):
        if not to_ns(0.805) < message.envelope.published_ns < to_ns(1.795):
            writer.copy(message)
    writer.close()
    asked = ["export", "--to", "lerobot"]
    assert main([*asked, str(tmp_path / "run.mcap"), "--out", str(tmp_path / "a")]) == 0
    told = capsys.readouterr().err
    assert f"run.mcap: 9 {sentence('recording.state_repeats', first_s='1.350')}" in told
    assert main([*asked, str(tmp_path / "whole.mcap"), "--out", str(tmp_path / "b")]) == 0
    assert "robot/state" not in capsys.readouterr().err


def test_a_recorder_that_was_behind_makes_no_other_dataset(tmp_path: Path) -> None:
    """The same messages, but each state was written a second late, as by a recorder short of processor time."""
    whole = recording(tmp_path / "whole.mcap", seconds=2.5)
    late = sorted(
        BagReader(whole), key=lambda one: one.envelope.published_ns + to_ns(1.0) * (one.topic == "robot/state")
    )
    writer = BagWriter(tmp_path / "late.mcap", {"clock": "virtual"})
    for message in late:
        writer.copy(message)
    writer.close({"outcome": '{"ok":true}', "recorder": '{"most_behind_s":1.2}'})
    found = [
        read_episode(Recording(path), fps=20, show=lambda topic, frame, rgb: None)
        for path in (whole, tmp_path / "late.mcap")
    ]
    assert len(found[0]) > 40
    assert found[0].states == found[1].states
    assert found[0].actions == found[1].actions
