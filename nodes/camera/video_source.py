"""Where a camera's frames come from, by OpenCV: a device or stream that sets its own pace, or a file played at its."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from runtime.clock import NS_PER_S, Clock, to_ns
from runtime.errors import UserError

Pixels = NDArray[np.uint8]

OPEN_MS, READ_MS = 5000, 5000
"""How long OpenCV may wait for a network stream."""
FAILED_READS = 10
"""So many in a row, and the device is taken for gone."""


class FrameSource(Protocol):
    """Frames, one after the other."""

    lost: str
    """Why there will be no more; empty while there may."""

    def grab(self) -> int | None:
        """Wait for the next frame: when it was captured, or None where there is none now."""
        ...

    def decode(self) -> Pixels | None:
        """The frame that was grabbed, (height, width, 3) RGB."""
        ...

    def close(self) -> None:
        """Release it."""
        ...


class LiveSource:
    """A device or a network stream."""

    def __init__(self, capture: cv2.VideoCapture, clock: Clock) -> None:
        self._capture = capture
        self._clock = clock
        self._failed = 0
        self.lost = ""

    def grab(self) -> int | None:
        if not self._capture.grab():
            self._failed += 1
            if self._failed >= FAILED_READS:
                self.lost = "it is gone; it is tried again"
            return None
        self._failed = 0
        arrived_ns = self._clock.now_ns()
        # Linux video drivers stamp frames on the monotonic clock; OpenCV tells it in ms. All else is no such stamp.
        stamp_ns = to_ns(self._capture.get(cv2.CAP_PROP_POS_MSEC) * 1e-3)
        return stamp_ns if 0 <= arrived_ns - stamp_ns < NS_PER_S else arrived_ns

    def decode(self) -> Pixels | None:
        return _rgb(self._capture)

    def close(self) -> None:
        self._capture.release()


class FileSource:
    """A video file, played at its own pace; a frame was captured when it was due."""

    def __init__(self, capture: cv2.VideoCapture, loop: bool, clock: Clock) -> None:
        self._capture = capture
        self._clock = clock
        self._loop = loop
        fps = capture.get(cv2.CAP_PROP_FPS)
        self._period_ns = to_ns(1 / fps) if 0.1 < fps < 1000 else to_ns(1 / 25)
        self._start_ns = clock.now_ns()
        self._frames = 0
        self._in_a_row = 0
        self.lost = ""

    def grab(self) -> int | None:
        due = (self._clock.now_ns() - self._start_ns) // self._period_ns
        if due < self._frames:
            return None
        while self._frames <= due:  # frames that nobody had time for are passed over
            if not self._capture.grab():
                if not self._loop or not self._in_a_row:
                    self.lost = "the video has ended" if self._in_a_row or not self._loop else "no frame can be read"
                    return None
                self._capture.set(cv2.CAP_PROP_POS_FRAMES, 0)
                self._in_a_row = 0
                continue
            self._in_a_row += 1
            self._frames += 1
        return self._start_ns + (self._frames - 1) * self._period_ns

    def decode(self) -> Pixels | None:
        return _rgb(self._capture)

    def close(self) -> None:
        self._capture.release()


def open_source(source: str, is_file: bool, loop: bool, clock: Clock) -> FrameSource | None:
    """The source of that name, or None where it cannot be opened now. Raises UserError: a live one in virtual time."""
    cv2.utils.logging.setLogLevel(
        cv2.utils.logging.LOG_LEVEL_SILENT
    )  # what it says at each attempt, the camera node says once, in words
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")
    if is_file:
        capture = cv2.VideoCapture(source, cv2.CAP_FFMPEG)
        if not capture.isOpened():
            return None
        return FileSource(capture, loop, clock)
    if clock.is_virtual:
        raise UserError(
            f"camera {source} is live and does not wait for virtual time; give source a video file, or use "
            "nodes.sim.camera:SimCamera, or run without --virtual"
        )
    if "://" in source:
        timeouts = [cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, OPEN_MS, cv2.CAP_PROP_READ_TIMEOUT_MSEC, READ_MS]
        capture = cv2.VideoCapture(source, cv2.CAP_FFMPEG, timeouts)
    else:
        capture = cv2.VideoCapture(int(source) if source.isdecimal() else source, cv2.CAP_V4L2)
        capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)
    if not capture.isOpened():
        capture.release()
        return None
    return LiveSource(capture, clock)


def why_not_open(source: str, is_file: bool, devices: Path = Path("/dev")) -> str:
    """What a person might do about a source that cannot be opened."""
    if is_file:
        return "OpenCV knows no video in it"
    if "://" in source:
        return "nothing answers there with a video"
    known = sorted(path.name for path in devices.glob("video*"))
    name = f"video{source}" if source.isdecimal() else Path(source).name
    if name not in known:
        return f"cameras here: {', '.join(str(devices / one) for one in known) or 'none'}"
    if not os.access(devices / name, os.R_OK | os.W_OK):
        return f"this user may not use {devices / name}: add it to the group video"
    return "it gives no pictures, or another program has it"


def _rgb(capture: cv2.VideoCapture) -> Pixels | None:
    is_read, bgr = capture.retrieve()
    if not is_read or bgr is None or bgr.ndim != 3:
        return None
    return np.ascontiguousarray(bgr[:, :, ::-1]).astype(np.uint8, copy=False)
