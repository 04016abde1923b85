"""`Camera`: a webcam or other video device, an RTSP stream, or a video file, as the robot's camera.

An image carries the time at which its frame was taken, as near to the sensor as can be had: the driver's own stamp of a
Linux video device, else the moment at which the frame arrived. A camera that stalls, goes away or cannot be opened is a
fault that is told once and on `head/camera`; no old frame is ever published again, and it is tried until it works.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from nodes.camera.repeats import REPEATS_S, Repeats
from nodes.msgs import Image
from runtime import Message, Node, ParameterError, Publisher, every, to_ns, to_s

if TYPE_CHECKING:
    from nodes.camera.calibration import Lens
    from nodes.camera.video_source import FrameSource, Pixels

READS_HZ = 60
"""How often a frame is asked for; the call waits for the next one, so a slower camera sets the pace."""
REOPEN_S = 2.0
JITTER_NS = to_ns(0.005)
"""A frame that is a little early counts: a camera of 30 Hz that is asked for 10 would else come to 7.5."""
ROTATIONS = (0, 90, 180, 270)


WHITE_BALANCE_K = (1000, 20000)


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """What a device is asked for as it is opened; 0, and "" as fourcc: as it is set."""

    fourcc: str = ""
    width: int = 0
    height: int = 0
    fps: float = 0.0
    exposure: float = 0.0  # in the driver's own unit, on Linux mostly 0.1 ms; automatic exposure ends
    white_balance_k: int = 0  # colour temperature; automatic white balance ends

    def problems(self) -> list[str]:
        """What no camera can be asked for, in sentences."""
        found = []
        if self.fourcc and (len(self.fourcc) != 4 or not self.fourcc.isascii()):
            found.append(f"fourcc is {self.fourcc!r}; expected four letters, like 'MJPG' or 'YUYV'")
        if (self.width == 0) != (self.height == 0) or min(self.width, self.height) < 0:
            size = f"capture_width {self.width} and capture_height {self.height}"
            found.append(f"{size}; expected both positive, or both 0: as the camera has it")
        if not 0.0 <= self.fps <= 1000.0:
            found.append(f"capture_fps is {self.fps}; expected up to 1000, or 0: as the camera has it")
        if not 0.0 <= self.exposure <= 1e6:
            found.append(f"exposure is {self.exposure}; expected a number above 0, or 0: automatic")
        least, most = WHITE_BALANCE_K
        if self.white_balance_k and not least <= self.white_balance_k <= most:
            found.append(f"white_balance_k is {self.white_balance_k}; expected {least} to {most}, or 0: automatic")
        return found


class CameraSettings(TypedDict, total=False):
    """What every camera takes besides its source; `Camera` has the defaults."""

    camera: str
    fps: float
    width: int
    height: int
    rotate_deg: int
    calibration: str
    stall_s: float


class CameraState(Message, kind="state"):
    """Whether a camera sees, and if not, why."""

    camera: str
    is_live: bool
    why: str = ""


class Camera(Node):
    """Publishes frames at most `fps` times a second.

    `source` is a device ("0" or "/dev/video0"), an "rtsp://" or "http://" address, or a video file, which is shown at
    its own pace and, with `loop`, again and again. `width` and `height` are what published images are scaled to
    (0: as they come), `rotate_deg` turns them clockwise, `calibration` is a TOML file (docs/new-robot.md). A device is
    asked for `fourcc` ("MJPG": what two cameras need to share one USB), `capture_width`, `capture_height` and
    `capture_fps`, for `exposure` in the driver's unit and `white_balance_k`; what it does not do is told.
    """

    image = Publisher(Image, "head/image")
    state = Publisher(CameraState, "head/camera")

    def __init__(
        self,
        source: str | int = 0,
        camera: str = "head",
        fps: float = 10.0,
        width: int = 0,
        height: int = 0,
        rotate_deg: int = 0,
        calibration: str = "",
        loop: bool = True,
        stall_s: float = 1.0,
        fourcc: str = "",
        capture_width: int = 0,
        capture_height: int = 0,
        capture_fps: float = 0.0,
        exposure: float = 0.0,
        white_balance_k: int = 0,
    ) -> None:
        if rotate_deg not in ROTATIONS:
            raise ParameterError(f"camera: rotate_deg is {rotate_deg}; known: {', '.join(map(str, ROTATIONS))}")
        wants = CaptureSettings(fourcc, capture_width, capture_height, capture_fps, exposure, white_balance_k)
        if problems := wants.problems():
            raise ParameterError(f"camera: {'; '.join(problems)}")
        if (width == 0) != (height == 0) or width < 0 or height < 0:
            raise ParameterError(f"camera: {width} x {height} pixels; expected both positive, or both 0: as they come")
        if not 0.001 <= fps <= 1000.0:
            raise ParameterError(f"camera: fps is {fps}; expected 0.001 to 1000")
        if not 0 < stall_s < math.inf:
            raise ParameterError(f"camera: stall_s is {stall_s}; expected a positive number")
        self.source = str(source)
        self.camera = camera
        self.period_ns = to_ns(1 / fps)
        self.size = (width, height)
        self.rotate_deg = rotate_deg
        self.calibration = calibration
        self.loop = loop
        self.wants = wants
        self.stall_s = stall_s
        self.opened: FrameSource | None = None
        self._lens: Lens | None = None
        self._tried_ns = 0
        self._frame_ns = -1  # capture time of the newest frame
        self.alive_ns = 0  # when it was handed over
        self._next_ns = 0
        self._is_blind = False  # the frame that was to be decoded last could not be
        self.fault: str | None = None  # that `capture` found: "" while all is well, None before it is known
        self._told: str | None = None  # by `watch`
        self._is_closing = False
        self.is_device = not _is_file(self.source) and "://" not in self.source  # a stream's encoder may repeat one
        self._repeats = Repeats()

    def libraries(self) -> tuple[str, ...]:
        return ("cv2",)

    def problems(self) -> list[str]:
        """A file that is not there, or no calibration; whether a device works is known when it runs."""
        problems = []
        if _is_file(self.source) and not Path(self.source).is_file():
            why = "there is no such video file; devices are numbers or /dev/video*"
            problems.append(f"source is {self.source!r}: {why}")
        if self.calibration and not Path(self.calibration).is_file():
            problems.append(f"calibration is {self.calibration!r}: there is no such file")
        elif self.calibration:
            from nodes.camera.calibration import Lens

            try:
                Lens.load(self.calibration, 0, (0, 0))
            except ParameterError as problem:
                problems.append(str(problem))
        return problems

    def on_start(self) -> None:
        """Read the calibration. Raises ParameterError where it cannot be used."""
        self.prepare()
        self._tried_ns = self.clock.now_ns() - to_ns(REOPEN_S)
        self.alive_ns = self.clock.now_ns()

    def prepare(self) -> None:
        """What `picture` needs. Raises ParameterError where the calibration cannot be used."""
        from nodes.camera.calibration import Lens

        self._lens = Lens.load(self.calibration, self.rotate_deg, self.size)

    def on_stop(self) -> None:
        self._is_closing = True
        if self.opened is not None:
            self.opened.close()

    @every(hz=READS_HZ, blocking=True)
    def capture(self) -> None:
        """Wait for the next frame, and publish it where one is due."""
        source = self.opened or self.try_open()
        if source is None:
            return
        captured_ns = source.grab()
        if captured_ns is None:
            if source.lost:
                self._lose(source)
            return
        if captured_ns <= self._frame_ns:
            return  # a device that hands out a frame twice
        self._frame_ns = captured_ns
        if captured_ns < self._next_ns - JITTER_NS:
            self.alive_ns = self.alive_ns if self._is_blind else self.clock.now_ns()
            return
        rgb = source.decode()
        self._is_blind = rgb is None
        if rgb is None:
            return
        self.alive_ns = self.clock.now_ns()
        if self.is_device and self._repeats.lasted_s(rgb, captured_ns) > REPEATS_S:
            self.fault = f"{self.where} shows one picture again and again"
            return
        self._next_ns = max(self._next_ns, captured_ns - self.period_ns) + self.period_ns
        self.fault = ""
        self.image.publish(self.picture(rgb, captured_ns))

    def picture(self, rgb: Pixels, captured_ns: int) -> Image:
        """What is published of a frame."""
        assert self._lens is not None
        rgb, focal_px = self._lens.apply(rgb)
        return Image(camera=self.camera, captured_ns=captured_ns, rgb=rgb, focal_px=focal_px)

    @every(hz=5)
    def watch(self) -> None:
        """Tell what `capture` found; notice a camera that delivers nothing, while `capture` may be waiting for it."""
        if self.opened is not None and self.clock.since_s(self.alive_ns) > self.stall_s:
            what = "no frame that can be decoded" if self._is_blind else "no frame"
            self._tell(f"{self.where} has delivered {what} for {self.stall_s:g} s")
        elif self.fault is not None:
            self._tell(self.fault)

    @property
    def where(self) -> str:
        return f"camera {self.camera} ({_without_password(self.source)})"

    def open_source(self) -> FrameSource | None:
        """Open it, or return None where that cannot be done now; `why_not_open` says why."""
        from nodes.camera.video_source import open_source

        return open_source(self.source, _is_file(self.source), self.loop, self.clock, self.wants)

    def why_not_open(self) -> str:
        """What a person might do about a source that cannot be opened."""
        from nodes.camera.video_source import why_not_open

        return why_not_open(self.source, _is_file(self.source))

    def try_open(self) -> FrameSource | None:
        now_ns = self.clock.now_ns()
        if self._is_closing or to_s(now_ns - self._tried_ns) < REOPEN_S:
            return None
        self._tried_ns = now_ns
        self.opened = self.open_source()
        if self.opened is None:
            self.fault = f"{self.where} cannot be opened: {self.why_not_open()}; it is tried again every {REOPEN_S:g} s"
        else:
            self.alive_ns = self.clock.now_ns()
            if self.opened.refused:
                self.log.warning(
                    "%s does not do all that it is asked for: %s", self.where, ", ".join(self.opened.refused)
                )
        return self.opened

    def _lose(self, source: FrameSource) -> None:
        self.fault = f"{self.where}: {source.lost}"
        source.close()
        self.opened = None
        self._is_closing = _is_file(self.source) and not self.loop  # it would begin again
        self._tried_ns = self.clock.now_ns()

    def _tell(self, fault: str) -> None:
        """Once for each change."""
        if fault == self._told or (fault and self._told):
            return
        if fault:
            self.log.warning("%s", fault)
        else:
            self.log.info("%s sees", self.where)
        self._told = fault
        self.state.publish(CameraState(camera=self.camera, is_live=not fault, why=fault))


def _is_file(source: str) -> bool:
    return not source.isdecimal() and not source.startswith("/dev/") and "://" not in source


def _without_password(source: str) -> str:
    scheme, separator, rest = source.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if separator else source
