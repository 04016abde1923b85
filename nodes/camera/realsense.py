"""`DepthCamera`: an Intel RealSense as the robot's camera, with depth: the Stretch's D435i (head) and D405 (wrist)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from nodes.camera.repeats import REPEATS_S, Repeats
from nodes.camera.webcam import ROTATIONS, CameraState
from nodes.msgs import Image
from runtime import Node, ParameterError, PolyrhythmError, Publisher, every, to_ns, to_s

if TYPE_CHECKING:
    from nodes.camera.realsense_source import RealSense

READS_HZ = 60
REOPEN_S = 2.0


class DepthCamera(Node):
    """Publishes colour and depth, aligned, at most `fps` times a second.

    `rotate_deg` turns images clockwise: the Stretch's head camera is mounted on its side and needs 90. Depth beyond
    `farthest_m` counts as unknown. A camera that stalls or goes away is told once and tried until it works.
    """

    image = Publisher(Image, "head/image")
    state = Publisher(CameraState, "head/camera")

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
        if rotate_deg not in ROTATIONS:
            raise ParameterError(f"camera: rotate_deg is {rotate_deg}; known: {', '.join(map(str, ROTATIONS))}")
        if width <= 0 or height <= 0 or device_fps <= 0:
            raise ParameterError(f"camera: {width} x {height} at {device_fps} fps; expected what the camera offers")
        if not 0.001 <= fps <= 1000.0:
            raise ParameterError(f"camera: fps is {fps}; expected 0.001 to 1000")
        for name, value in (("farthest_m", farthest_m), ("stall_s", stall_s)):
            if not 0 < value < math.inf:
                raise ParameterError(f"camera: {name} is {value}; expected a positive number")
        self.model, self.serial, self.camera = model, serial, camera
        self.size, self.device_fps = (width, height), device_fps
        self.period_ns = to_ns(1 / fps)
        self.turns = rotate_deg // 90
        self.farthest_m = farthest_m
        self.stall_s = stall_s
        self.opened: RealSense | None = None
        self._tried_ns = 0
        self._alive_ns = 0
        self._next_ns = 0
        self._fault: str | None = None  # "" while all is well, None before it is known
        self._is_closing = False
        self._repeats = Repeats()

    def libraries(self) -> tuple[str, ...]:
        return ("pyrealsense2",)

    def on_start(self) -> None:
        self._tried_ns = self.clock.now_ns() - to_ns(REOPEN_S)

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
        try:
            frame = source.next()
        except PolyrhythmError as problem:
            self._tell(f"camera {self.camera} ({self.model}): {problem}; it is tried again")
            source.close()
            self.opened = None
            return
        now_ns = self.clock.now_ns()
        if frame is None:
            if to_s(now_ns - self._alive_ns) > self.stall_s:
                self._tell(f"camera {self.camera} ({self.model}) has delivered no frame for {self.stall_s:g} s")
            return
        self._alive_ns = now_ns
        if frame.captured_ns < self._next_ns:
            return
        if self._repeats.lasted_s(frame.rgb, frame.captured_ns) > REPEATS_S:
            self._tell(f"camera {self.camera} ({self.model}) shows one picture again and again")
            return
        self._tell("")
        self._next_ns = max(self._next_ns, frame.captured_ns - self.period_ns) + self.period_ns
        depth_m = np.where(frame.depth_m <= self.farthest_m, frame.depth_m, np.float32(0.0))
        self.image.publish(
            Image(
                camera=self.camera,
                captured_ns=frame.captured_ns,
                rgb=np.ascontiguousarray(np.rot90(frame.rgb, -self.turns)),
                depth_m=np.ascontiguousarray(np.rot90(depth_m, -self.turns)),
                focal_px=frame.focal_px,
            )
        )

    def try_open(self) -> RealSense | None:
        from nodes.camera.realsense_source import RealSense

        now_ns = self.clock.now_ns()
        if self._is_closing or to_s(now_ns - self._tried_ns) < REOPEN_S:
            return None
        self._tried_ns = self._alive_ns = now_ns
        try:
            self.opened = RealSense(self.model, self.serial, self.size, self.device_fps, self.clock)
        except PolyrhythmError as problem:
            self._tell(f"camera {self.camera}: {problem}; it is tried again every {REOPEN_S:g} s")
        return self.opened

    def _tell(self, fault: str) -> None:
        """Once for each change."""
        if fault == self._fault or (fault and self._fault):
            return
        if fault:
            self.log.warning("%s", fault)
        else:
            self.log.info("camera %s (%s) sees", self.camera, self.model)
        self._fault = fault
        self.state.publish(CameraState(camera=self.camera, is_live=not fault, why=fault))
