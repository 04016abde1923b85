"""Colour and depth of an Intel RealSense camera, aligned to each other; owns pyrealsense2."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runtime.clock import Clock, to_ns, wall_time_ns
from runtime.errors import PolyrhythmError
from runtime.extras import install

WAIT_MS = 200
OLDEST_NS = to_ns(0.3)
"""A stamp of the camera that is further back than this is none of our clock."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What the camera saw at one moment; the principal point is in the middle."""

    captured_ns: int
    rgb: NDArray[np.uint8]  # (height, width, 3)
    depth_m: NDArray[np.float32]  # (height, width); 0 where unknown
    focal_px: float


class RealSense:
    """One camera, streaming. `serial`: which one; "" takes the only one of that `model`, like "D435I"."""

    def __init__(self, model: str, serial: str, size: tuple[int, int], fps: int, clock: Clock) -> None:
        """Raises PolyrhythmError, in words, where it cannot be had."""
        try:
            self._library: Any = importlib.import_module("pyrealsense2")
        except ImportError as problem:
            raise PolyrhythmError(
                f"pyrealsense2 cannot be imported ({problem}); {install('nodes[realsense]')}, and libusb-1.0"
            ) from problem
        self._clock = clock
        self.lost, self.refused = "", list[str]()
        self.frame: Frame | None = None  # the one that was grabbed
        chosen = self._choose(model, serial)
        configuration = self._library.config()
        configuration.enable_device(chosen)
        width, height = size
        configuration.enable_stream(self._library.stream.color, width, height, self._library.format.rgb8, fps)
        configuration.enable_stream(self._library.stream.depth, width, height, self._library.format.z16, fps)
        self._pipeline = self._library.pipeline()
        try:
            profile = self._pipeline.start(configuration)
        except RuntimeError as problem:
            raise PolyrhythmError(
                f"camera {chosen} does not stream {width}x{height} at {fps} fps: {problem}"
            ) from problem
        self._align = self._library.align(self._library.stream.color)
        self._scale_m = float(profile.get_device().first_depth_sensor().get_depth_scale())
        intrinsics = profile.get_stream(self._library.stream.color).as_video_stream_profile().get_intrinsics()
        self._focal_px = float(intrinsics.fx)
        self._crop = _around(float(intrinsics.ppx), width), _around(float(intrinsics.ppy), height)

    def grab(self) -> int | None:
        """Wait for the next frame: when it was captured; None where none came within 0.2 s, or the camera is `lost`."""
        try:
            is_new, frames = self._pipeline.try_wait_for_frames(WAIT_MS)
        except RuntimeError as problem:
            self.lost = f"it is gone: {problem}; it is tried again"
            return None
        if not is_new:
            return None
        now_ns, wall_ns = self._clock.now_ns(), wall_time_ns()
        aligned = self._align.process(frames)
        colour, depth = aligned.get_color_frame(), aligned.get_depth_frame()
        if not colour or not depth:
            return None
        # Its stamp is wall-clock time, by the library's own comparison of the clocks; only its distance to now counts.
        age_ns = wall_ns - round(colour.get_timestamp() * 1e6)
        columns, rows = self._crop
        self.frame = Frame(
            captured_ns=now_ns - age_ns if 0 <= age_ns < OLDEST_NS else now_ns,
            rgb=np.ascontiguousarray(np.asanyarray(colour.get_data())[rows, columns], np.uint8),
            depth_m=np.asanyarray(depth.get_data())[rows, columns].astype(np.float32) * np.float32(self._scale_m),
            focal_px=self._focal_px,
        )
        return self.frame.captured_ns

    def decode(self) -> NDArray[np.uint8] | None:
        """The colours of the frame that was grabbed."""
        return self.frame.rgb if self.frame is not None else None

    def close(self) -> None:
        """Stop streaming."""
        try:
            self._pipeline.stop()
        except RuntimeError:
            pass  # it has gone already

    def _choose(self, model: str, serial: str) -> str:
        info = self._library.camera_info
        found = {
            str(device.get_info(info.serial_number)): str(device.get_info(info.name))
            for device in self._library.context().query_devices()
        }
        names = ", ".join(f"{name} ({number})" for number, name in sorted(found.items())) or "none"
        if serial:
            if serial not in found:
                raise PolyrhythmError(f"no camera with the serial number {serial} is connected; connected: {names}")
            return serial
        fitting = [number for number, name in found.items() if model.lower() in name.lower()]
        if len(fitting) != 1:
            raise PolyrhythmError(f"{len(fitting)} cameras of the model {model} are connected; connected: {names}")
        return fitting[0]


def _around(centre_px: float, size_px: int) -> slice:
    """The longest part of a side whose middle is there."""
    half = int(min(centre_px, size_px - centre_px))
    start = round(centre_px) - half
    return slice(max(0, start), max(0, start) + 2 * half)
