"""What turns frames into VP9 in MP4: PyAV where it is installed (extra `export`), and else OpenCV.

Both are libvpx with a key frame each 12 frames, for a dataset's loader begins anywhere. OpenCV has no say in how long
libvpx searches and takes more than ten times as long for the same error of a pixel.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from runtime.errors import RecordingError

CODEC = "vp09"
KEY_FRAME_EACH = 12  # frames; what OpenCV does by itself
_OPTIONS = {"deadline": "realtime", "cpu-used": "6", "crf": "12", "g": str(KEY_FRAME_EACH), "threads": "1"}


class Encoder(Protocol):
    """Writes one video. Raises RecordingError where it cannot, if it comes to know that."""

    def write(self, rgb: NDArray[np.uint8]) -> None:
        """Append a frame of the video's size."""

    def close(self) -> None:
        """Write the end of the file; a second time does nothing."""


def encoder(path: Path, hz: float, width: int, height: int) -> Encoder | None:
    """The best that is here; None where none can write VP9, or not there."""
    try:
        return ByPyAV(path, hz, width, height)
    except ModuleNotFoundError:
        found = ByOpenCV(path, hz, width, height)
    return found if found.is_open else None


class ByPyAV:
    """Raises ModuleNotFoundError where PyAV is not installed."""

    def __init__(self, path: Path, hz: float, width: int, height: int) -> None:
        import av

        self._av: Any = av
        self._path = path
        self._is_open = True
        try:
            self._file = av.open(str(path), "w", format="mp4")
            self._stream = self._file.add_stream("libvpx-vp9", rate=Fraction(hz).limit_denominator(1000))
        except (av.FFmpegError, ValueError) as problem:
            raise RecordingError(f"{path}: cannot be written ({problem})") from problem
        self._stream.width, self._stream.height, self._stream.pix_fmt = width, height, "yuv420p"
        self._stream.bit_rate = 0  # as many as the quality needs
        self._stream.options = dict(_OPTIONS)

    def write(self, rgb: NDArray[np.uint8]) -> None:
        self._mux(self._av.VideoFrame.from_ndarray(np.ascontiguousarray(rgb), format="rgb24"))

    def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        try:
            self._mux(None)
        finally:
            try:
                self._file.close()
            except self._av.FFmpegError as problem:
                raise RecordingError(f"{self._path}: cannot be written ({problem.strerror})") from problem

    def _mux(self, frame: Any) -> None:
        try:
            for packet in self._stream.encode(frame):
                self._file.mux(packet)
        except self._av.FFmpegError as problem:
            raise RecordingError(f"{self._path}: cannot be written ({problem.strerror})") from problem


class ByOpenCV:
    """Says nothing of a disk that is full."""

    def __init__(self, path: Path, hz: float, width: int, height: int) -> None:
        fourcc: Any = cv2.VideoWriter_fourcc(*CODEC)  # type: ignore[attr-defined]  # missing from its type hints
        self._writer = cv2.VideoWriter(str(path), cv2.CAP_FFMPEG, fourcc, hz, (width, height))

    @property
    def is_open(self) -> bool:
        return self._writer.isOpened()

    def write(self, rgb: NDArray[np.uint8]) -> None:
        self._writer.write(cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR))

    def close(self) -> None:
        self._writer.release()
