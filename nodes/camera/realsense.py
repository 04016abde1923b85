"""`DepthCamera`: an Intel RealSense as the robot's camera, with depth: the Stretch's D435i (head) and D405 (wrist)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from nodes.camera.webcam import Camera
from nodes.msgs import Image
from runtime import ParameterError, PolyrhythmError

if TYPE_CHECKING:
    from nodes.camera.video_source import FrameSource, Pixels


class DepthCamera(Camera):
    """Publishes colour and depth, aligned, at most `fps` times a second.

    `rotate_deg` turns images clockwise: the Stretch's head camera is mounted on its side and needs 90. Depth beyond
    `farthest_m` counts as unknown. A camera that stalls or goes away is told once and tried until it works.
    """

    def __init__(
        self,
        model: str = "D435I",
        serial: str = "",
        camera: str = "head",
        width: int = 640,
        height: int = 480,
        device_fps: int = 30,
        fps: float = 10.0,
        rotate_deg: int = 0,
        farthest_m: float = 10.0,
        stall_s: float = 1.0,
    ) -> None:
        super().__init__(source=f"realsense://{model}", camera=camera, fps=fps, rotate_deg=rotate_deg, stall_s=stall_s)
        if width <= 0 or height <= 0 or device_fps <= 0:
            raise ParameterError(f"camera: {width} x {height} at {device_fps} fps; expected what the camera offers")
        if not 0 < farthest_m < math.inf:
            raise ParameterError(f"camera: farthest_m is {farthest_m}; expected a positive number")
        self.model, self.serial, self.farthest_m = model, serial, farthest_m
        self.device_size, self.device_fps = (width, height), device_fps
        self.is_device = True
        self._why = ""

    def libraries(self) -> tuple[str, ...]:
        return ("pyrealsense2",)

    def prepare(self) -> None:
        """Nothing: the camera knows its own lens."""

    @property
    def where(self) -> str:
        return f"camera {self.camera} ({self.model})"

    def open_source(self) -> FrameSource | None:
        from nodes.camera.realsense_source import RealSense

        try:
            return RealSense(self.model, self.serial, self.device_size, self.device_fps, self.clock)
        except PolyrhythmError as problem:
            self._why = str(problem)
            return None

    def why_not_open(self) -> str:
        return self._why

    def picture(self, rgb: Pixels, captured_ns: int) -> Image:
        from nodes.camera.realsense_source import RealSense

        assert isinstance(self.opened, RealSense)
        assert self.opened.frame is not None
        depth_m, turns = self.opened.frame.depth_m, self.rotate_deg // 90
        depth_m = np.where(depth_m <= self.farthest_m, depth_m, np.float32(0.0))
        return Image(
            camera=self.camera,
            captured_ns=captured_ns,
            rgb=np.ascontiguousarray(np.rot90(rgb, -turns)),
            depth_m=np.ascontiguousarray(np.rot90(depth_m, -turns)),
            focal_px=self.opened.frame.focal_px,
        )
