"""A lens and its mounting: undistortion, rotation and scaling, from a calibration file in TOML.

    width = 1280            # of the images that it was made from, before any rotation
    height = 720
    focal_px = [912.0, 910.5]
    centre_px = [640.2, 361.9]
    distortion = [0.1, -0.2, 0.0, 0.0, 0.05]   # OpenCV's k1 k2 p1 p2 k3 (4, 5 or 8 numbers)

What comes out is a pinhole camera with square pixels and its principal point in the middle, as `msgs.Image` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import msgspec
import numpy as np
from numpy.typing import NDArray

from runtime.errors import ParameterError, UserError
from runtime.serialization.toml_errors import read_toml

Pixels = NDArray[np.uint8]

ROTATE = {90: cv2.ROTATE_90_CLOCKWISE, 180: cv2.ROTATE_180, 270: cv2.ROTATE_90_COUNTERCLOCKWISE}


class CameraCalibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    width: int
    height: int
    focal_px: tuple[float, float]
    centre_px: tuple[float, float]
    distortion: tuple[float, ...] = ()


@dataclass(slots=True)
class Lens:
    """Makes a published image of a frame. Without a calibration the focal length is unknown: 0."""

    calibration: CameraCalibration | None
    rotate_deg: int
    size: tuple[int, int]  # of what is published; (0, 0): as it comes
    _maps: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
    _focal_px: float = 0.0
    _frame_shape: tuple[int, int] = (0, 0)

    @classmethod
    def load(cls, path: str, rotate_deg: int, size: tuple[int, int]) -> Lens:
        """With the calibration of that file, or none. Raises ParameterError where it is not understood."""
        if not path:
            return cls(None, rotate_deg, size)
        try:
            calibration = msgspec.convert(read_toml(Path(path)), CameraCalibration)
        except (UserError, msgspec.ValidationError) as problem:
            expected = "expected width, height, focal_px, centre_px and, where there is one, distortion"
            raise ParameterError(f"calibration {path}: {problem}; {expected}") from problem
        numbers = (*calibration.focal_px, calibration.width, calibration.height)
        if min(numbers) <= 0 or not np.isfinite([*numbers, *calibration.centre_px, *calibration.distortion]).all():
            raise ParameterError(f"calibration {path}: focal_px, width and height have to be positive, all else finite")
        if len(calibration.distortion) not in (0, 4, 5, 8):
            raise ParameterError(
                f"calibration {path}: distortion has {len(calibration.distortion)} numbers, not 4, 5, 8"
            )
        return cls(calibration, rotate_deg, size)

    def apply(self, rgb: Pixels) -> tuple[Pixels, float]:
        """The image to publish, and its focal length in pixels."""
        height, width = rgb.shape[:2]
        if self.calibration is not None:
            if self._frame_shape != (height, width):
                self._prepare(self.calibration, height, width)
            assert self._maps is not None
            rgb = cv2.remap(rgb, *self._maps, cv2.INTER_LINEAR).astype(np.uint8, copy=False)
        if self.rotate_deg:
            rgb = cv2.rotate(rgb, ROTATE[self.rotate_deg]).astype(np.uint8, copy=False)
        focal_px = self._focal_px
        if self.size != (0, 0) and self.size != (rgb.shape[1], rgb.shape[0]):
            rgb, share = _scaled(rgb, self.size)
            focal_px *= share
        return np.ascontiguousarray(rgb), focal_px

    def _prepare(self, calibration: CameraCalibration, height: int, width: int) -> None:
        """Work out where each pixel comes from; a stream of another size than the calibration's is scaled."""
        across, down = width / calibration.width, height / calibration.height
        (fx, fy), (cx, cy) = calibration.focal_px, calibration.centre_px
        real = np.array([[fx * across, 0, cx * across], [0, fy * down, cy * down], [0, 0, 1.0]])
        self._focal_px = fx * across
        ideal = np.array([[self._focal_px, 0, (width - 1) / 2], [0, self._focal_px, (height - 1) / 2], [0, 0, 1.0]])
        distortion = np.array(calibration.distortion or (0.0,) * 4)
        first, second = cv2.initUndistortRectifyMap(real, distortion, np.eye(3), ideal, (width, height), cv2.CV_32FC1)
        self._maps = first.astype(np.float32), second.astype(np.float32)
        self._frame_shape = (height, width)


def _scaled(rgb: Pixels, size: tuple[int, int]) -> tuple[Pixels, float]:
    """Scaled to cover the size, and cut to it around the middle: nothing is squeezed. With the factor."""
    (width, height), (rows, columns) = size, rgb.shape[:2]
    share = max(width / columns, height / rows)
    scaled = cv2.resize(rgb, (round(columns * share), round(rows * share)), interpolation=cv2.INTER_AREA)
    left, top = (scaled.shape[1] - width) // 2, (scaled.shape[0] - height) // 2
    return scaled[top : top + height, left : left + width].astype(np.uint8, copy=False), share
