"""Recorded images as videos: VP9 in MP4, which browsers, ffmpeg and LeRobot's decoders play."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import cv2
import numpy as np
from numpy.typing import NDArray

from nodes.recording.bag.export.damage import Damaged
from nodes.recording.bag.recording import Recording, envelope_or_none, file_names
from nodes.recording.images import SCHEMA_NAME as IMAGE_SCHEMA
from nodes.recording.images import pixels
from nodes.recording.video_encoders import encoder
from runtime.clock import NS_PER_S
from runtime.errors import RecordingError, writing

SLOWEST_HZ = 0.01
"""Of a video; a camera that gives fewer images has some of them twice."""
_ROOM_BYTES = 1 << 20
_MOST_WAITING = 16
"""Frames of a video that wait to be encoded."""
LONGEST_STILL_S = 60.0
"""A camera that was silent for longer ends its video's still there; the video goes on with the next image."""


class VideoFile:
    """Writes frames of one size to an MP4. Raises RecordingError where that cannot be.

    A video's width and height are even numbers: an odd one is less by its last column or row. Frames are encoded on a
    thread of the video's own, in order: several videos of one recording use several cores.
    """

    def __init__(self, path: Path, hz: float, width: int, height: int) -> None:
        cv2.setNumThreads(1)
        size = max(2, width & ~1), max(2, height & ~1)
        path.parent.mkdir(parents=True, exist_ok=True)
        found = encoder(path, hz, *size)
        if found is None:
            _check_room(path)
            raise RecordingError(f"{path}: this build of OpenCV cannot write VP9 video")
        self._writer = found
        self._path = path
        self._encoder = ThreadPoolExecutor(1, "video")
        self._waiting: deque[Future[None]] = deque()
        self.size = size
        """Width and height."""
        self.frames = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._encoder.shutdown(cancel_futures=True)
        with suppress(RecordingError):  # whoever leaves before `finish` has a reason to tell already
            self._writer.close()

    def finish(self) -> None:
        """Close the file. Raises RecordingError where it is not whole: OpenCV says nothing of a disk that is full."""
        while self._waiting:
            self._waiting.popleft().result()
        self._encoder.shutdown()
        self._writer.close()
        written = cv2.VideoCapture(str(self._path))
        frames = int(written.get(cv2.CAP_PROP_FRAME_COUNT)) if written.isOpened() else 0
        written.release()
        if frames < self.frames:
            _check_room(self._path)
            raise RecordingError(f"{self._path}: only {frames} of {self.frames} frames could be written")

    def add(self, rgb: NDArray[np.uint8]) -> None:
        """Append one frame, which is not changed any more. Raises RecordingError for one of another size."""
        height, width = rgb.shape[:2]
        if (max(2, width & ~1), max(2, height & ~1)) != self.size:
            raise RecordingError(
                f"{self._path.name}: after {self.frames} frames of {self.size[0]} x {self.size[1]} pixels comes one of "
                f"{width} x {height}, and a picture is not stretched; `polyrhythm bag cut` takes a span of one size"
            )
        if len(self._waiting) >= _MOST_WAITING:
            self._waiting.popleft().result()
        self._waiting.append(self._encoder.submit(self._encode, rgb))
        self.frames += 1

    def _encode(self, rgb: NDArray[np.uint8]) -> None:
        width, height = self.size
        self._writer.write(rgb[:height, :width])


def finish_all(videos: Collection[VideoFile]) -> None:
    """Close the files, all at once. Raises RecordingError where one is not whole."""
    with ThreadPoolExecutor(max(1, len(videos)), "finish") as pool:
        for done in [pool.submit(video.finish) for video in videos]:
            done.result()


def export_videos(
    recording: Recording,
    out: Path,
    *,
    hz: float | None = None,
    skip_damaged: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> list[tuple[Path, int]]:
    """One video for each camera, in run time: at each frame the newest image.

    Raises RecordingError without images, and where one cannot be read, unless those are to be left out.
    """
    rates = {topic: hz or max(rate, SLOWEST_HZ) for topic, rate in _rates(recording).items()}
    names = file_names(rates)
    if not rates:
        raise RecordingError(f"{recording.path}: holds no images")
    damaged = Damaged(recording, is_skipped=skip_damaged, what_then="the image before it stands in its place")
    files: dict[str, tuple[Path, VideoFile]] = {}
    newest: dict[str, NDArray[np.uint8]] = {}
    next_ns: dict[str, float] = {}
    try:
        for message in recording.gone_through("writing"):
            if message.topic not in rates or message.schema != IMAGE_SCHEMA:
                continue
            try:
                envelope, rgb = message.envelope, pixels(message.document)
            except RecordingError as problem:
                damaged.met(message, problem)
                continue
            period_ns = NS_PER_S / rates[message.topic]
            if message.topic not in files:
                path = out / f"{names[message.topic]}.mp4"
                files[message.topic] = path, VideoFile(path, rates[message.topic], rgb.shape[1], rgb.shape[0])
                next_ns[message.topic] = envelope.published_ns
            elif envelope.published_ns - next_ns[message.topic] > LONGEST_STILL_S * NS_PER_S:
                next_ns[message.topic] = envelope.published_ns
            _, file = files[message.topic]
            while next_ns[message.topic] + 0.5 * period_ns <= envelope.published_ns:
                file.add(newest.get(message.topic, rgb))
                next_ns[message.topic] += period_ns
            newest[message.topic] = rgb
        for topic, (_, file) in files.items():
            file.add(newest[topic])
        finish_all([file for _, file in files.values()])
    finally:
        for _, file in files.values():
            file.__exit__(None, None, None)
    damaged.tell(tell)
    if not files:
        raise RecordingError(f"{recording.path}: holds no image that can be read")
    return [(path, file.frames) for _, (path, file) in sorted(files.items())]


def _check_room(path: Path) -> None:
    """Raise RecordingError where nothing can be written there, for lack of room or of permission."""
    try:
        with writing(path, error=RecordingError), path.open("ab") as file:
            file.write(bytes(_ROOM_BYTES))
    finally:
        path.unlink(missing_ok=True)  # it is no video


def _rates(recording: Recording) -> dict[str, float]:
    """Images a second of each colour camera, over the time in which it gave any."""
    seen: dict[str, tuple[int, int, int]] = {}
    for message in recording:
        envelope = envelope_or_none(message)
        if message.schema == IMAGE_SCHEMA and not message.topic.endswith("/depth") and envelope is not None:
            first_ns, _, number = seen.get(message.topic, (envelope.published_ns, 0, 0))
            seen[message.topic] = first_ns, envelope.published_ns, number + 1
    return {
        topic: round((number - 1) * NS_PER_S / (last_ns - first_ns), 3) if last_ns > first_ns else 10.0
        for topic, (first_ns, last_ns, number) in seen.items()
    }
