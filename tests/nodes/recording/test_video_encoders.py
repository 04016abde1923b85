"""Whoever encodes them, videos hold the frames that were given, at their rate, with key frames near each other."""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from nodes.recording.bag.export.video import VideoFile
from nodes.recording.video_encoders import KEY_FRAME_EACH, ByOpenCV, ByPyAV, encoder
from runtime.errors import RecordingError

FRAMES = 40


@pytest.fixture(params=["PyAV", "OpenCV"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which of the two is here."""
    if request.param == "PyAV":
        pytest.importorskip("av")
    else:
        monkeypatch.setitem(sys.modules, "av", None)  # as where it is not installed
    return str(request.param)


def frame(number: int) -> NDArray[np.uint8]:
    """A square that moves over a slope of colours."""
    slope = np.linspace(20, 200, 64, dtype=np.uint8)
    rgb = np.stack([np.tile(slope, (48, 1)), np.full((48, 64), 3 * number), np.full((48, 64), 90)], axis=2)
    rgb[10:26, number : number + 16] = (220, 30, 30)
    return rgb.astype(np.uint8)


def test_a_video_holds_the_frames_that_were_given_at_their_rate(by: str, tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    with VideoFile(path, 7.5, 64, 48) as video:
        for number in range(FRAMES):
            video.add(frame(number))
        video.finish()
    capture = cv2.VideoCapture(str(path))
    assert capture.get(cv2.CAP_PROP_FPS) == pytest.approx(7.5)
    seen = []
    while (read := capture.read())[0]:
        seen.append(read[1][:, :, ::-1])
    capture.release()
    assert len(seen) == FRAMES
    for number, rgb in enumerate(seen):
        error = np.abs(rgb.astype(float) - frame(number))
        assert error.mean() < 6, f"frame {number} by {by}"


def test_the_better_one_is_taken_where_it_is_installed(by: str, tmp_path: Path) -> None:
    found = encoder(tmp_path / "a.mp4", 20.0, 64, 48)
    assert isinstance(found, {"PyAV": ByPyAV, "OpenCV": ByOpenCV}[by])
    found.write(frame(0))
    found.close()
    found.close()


def test_key_frames_are_near_each_other_for_a_loader_that_begins_anywhere(tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    with VideoFile(tmp_path / "a.mp4", 20.0, 64, 48) as video:
        for number in range(FRAMES):
            video.add(frame(number))
        video.finish()
    with av.open(str(tmp_path / "a.mp4")) as file:
        is_key = [packet.is_keyframe for packet in file.demux(video=0) if packet.size]
    places = [place for place, one in enumerate(is_key) if one]
    assert places[0] == 0
    assert max(np.diff([*places, len(is_key)])) <= KEY_FRAME_EACH


def test_a_folder_that_cannot_be_written_to_is_named(by: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((RecordingError, OSError), match=r"a\.mp4|file"):
        VideoFile(tmp_path / "file" / "a.mp4", 20.0, 64, 48)
