"""`LeRobotCamera`: any camera of LeRobot's and its plug-ins as a camera of the robot, like one of OpenCV's."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from bridges.lerobot.device import DeviceFrame, LeRobotDevice, Setting
from nodes.camera.video_source import FrameSource, as_rgb
from nodes.camera.webcam import Camera, CameraSettings
from nodes.robot.protocol import RobotError
from runtime import needs_real_time

WAIT_S = 0.2


class LeRobotCamera(Camera):
    """`device` is LeRobot's type of the camera, with its `settings`; the rest is as of any `Camera`."""

    def __init__(
        self,
        device: str,
        settings: dict[str, Setting] | None = None,
        python: str = "",
        **others: Unpack[CameraSettings],
    ) -> None:
        super().__init__(source=f"lerobot://{device}", **others)
        self._kind, self._settings, self._python = device, settings or {}, python
        self._why = ""

    def libraries(self) -> tuple[str, ...]:
        """LeRobot's own, where there is no environment that has it."""
        return ("cv2", *LeRobotDevice("camera", self._kind, self._settings, self._python).libraries())

    def open_source(self) -> FrameSource | None:
        """Connect it. Raises UserError in virtual time."""
        needs_real_time(self, f"camera {self._kind}")
        device = LeRobotDevice("camera", self._kind, self._settings, self._python)
        try:
            device.open()
        except RobotError as problem:
            self._why = str(problem)
            return None
        return LeRobotFrames(device)

    def why_not_open(self) -> str:
        """What LeRobot said."""
        return self._why


class LeRobotFrames:
    """The pictures of one camera, as a `FrameSource`; LeRobot's are RGB."""

    def __init__(self, device: LeRobotDevice) -> None:
        self._device = device
        self._frame: DeviceFrame | None = None
        self.lost = ""
        self.refused: list[str] = []

    def grab(self) -> int | None:
        """Wait for the next picture; when it was taken, or None where there is none now."""
        self._device.wait(WAIT_S)
        frame = self._device.take_frame()
        if frame is None:
            self.lost = "" if self._device.is_there else "it is gone; it is tried again"
            return None
        self._frame = frame
        return frame.ns

    def decode(self) -> NDArray[np.uint8] | None:
        """The picture that was grabbed, (height, width, 3) RGB."""
        frame = self._frame
        return as_rgb(np.frombuffer(frame.data, frame.kind).reshape(frame.shape), order="rgb") if frame else None

    def close(self) -> None:
        """Let go of it."""
        self._device.close()
