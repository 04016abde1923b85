"""Where a camera's frames come from, by OpenCV: a device or stream that sets its own pace, or a file played at its."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from runtime.clock import NS_PER_S, Clock, to_ns
from runtime.errors import UserError

if TYPE_CHECKING:
    from nodes.camera.webcam import CaptureSettings

Pixels = NDArray[np.uint8]

OPEN_MS, READ_MS = 5000, 5000
"""How long OpenCV may wait for a network stream."""
FAILED_READS = 10
"""So many in a row, and the device is taken for gone."""


CONVERSIONS: dict[Literal["bgr", "rgb"], dict[int, int]] = {
    "bgr": {1: cv2.COLOR_GRAY2RGB, 2: cv2.COLOR_YUV2RGB_YUYV, 3: cv2.COLOR_BGR2RGB, 4: cv2.COLOR_BGRA2RGB},
    "rgb": {1: cv2.COLOR_GRAY2RGB, 2: cv2.COLOR_YUV2RGB_YUYV, 3: -1, 4: cv2.COLOR_RGBA2RGB},
}
"""How a picture with so many channels becomes RGB; -1: it is."""


class FrameSource(Protocol):
    """Frames, one after the other."""

    lost: str
    """Why there will be no more; empty while there may."""
    refused: list[str]
    """What the device was asked for and does not do."""

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
        self.refused: list[str] = []

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
        self.refused: list[str] = []

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


def open_source(
    source: str, is_file: bool, loop: bool, clock: Clock, wants: CaptureSettings | None = None
) -> FrameSource | None:
    """The source of that name, or None where it cannot be opened now; a device is asked for what is wanted of it.

    Raises UserError: a live one in virtual time.
    """
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
    live = LiveSource(capture, clock)
    live.refused = asked_of(capture, wants) if wants is not None and "://" not in source else []
    return live


def asked_of(capture: cv2.VideoCapture, wants: CaptureSettings) -> list[str]:
    """Ask the device for them; what it does not do, in sentences. The pixel format comes first: sizes depend on it."""
    code = float(cv2.VideoWriter.fourcc(*wants.fourcc)) if wants.fourcc else 0.0
    asked = [
        ("fourcc", cv2.CAP_PROP_FOURCC, code),
        ("capture_width", cv2.CAP_PROP_FRAME_WIDTH, float(wants.width)),
        ("capture_height", cv2.CAP_PROP_FRAME_HEIGHT, float(wants.height)),
        ("capture_fps", cv2.CAP_PROP_FPS, wants.fps),
        ("automatic exposure off", cv2.CAP_PROP_AUTO_EXPOSURE, 1.0 if wants.exposure else 0.0),
        ("exposure", cv2.CAP_PROP_EXPOSURE, wants.exposure),
        ("white_balance_k", cv2.CAP_PROP_WB_TEMPERATURE, float(wants.white_balance_k)),
    ]
    if wants.white_balance_k:
        capture.set(cv2.CAP_PROP_AUTO_WB, 0.0)
    refused = []
    for name, what, value in asked:
        if value and not (capture.set(what, value) and abs(capture.get(what) - value) <= 0.01 * abs(value)):
            has, wanted = capture.get(what), f"{value:g}"
            if name == "fourcc":
                has_code = int(has).to_bytes(4, "little", signed=False) if 0 <= has < 2**32 else b"?"
                refused.append(f"fourcc {wants.fourcc} (it gives {has_code.decode('ascii', 'replace')})")
            else:
                refused.append(f"{name} {wanted} (it has {has:g})")
    return refused


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
    is_read, picture = capture.retrieve()
    return as_rgb(picture) if is_read and picture is not None else None


def as_rgb(picture: NDArray[Any], order: Literal["bgr", "rgb"] = "bgr") -> Pixels | None:
    """(height, width, 3) RGB of 8 bits from grey, YUYV, colour or colour with alpha, of 8 or 16 bits; None for others.

    A picture of 16 bits keeps its upper eight.
    """
    if picture.dtype == np.uint16:
        picture = (picture >> 8).astype(np.uint8)
    channels = picture.shape[2] if picture.ndim == 3 else 1
    how = CONVERSIONS[order].get(channels)
    if picture.dtype != np.uint8 or picture.ndim not in (2, 3) or 0 in picture.shape or how is None:
        return None
    if channels == 2 and picture.shape[1] % 2:
        return None  # YUYV has its colours two by two
    if how < 0:
        return np.ascontiguousarray(picture)
    return np.ascontiguousarray(cv2.cvtColor(picture, how), np.uint8)
