"""`Eyes`: a detector and a pose network from a folder that `nodes.vlm.detector.convert` wrote, run on an image."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from nodes.models.onnx_runtime import OnnxModel, Timing, timed
from nodes.vlm.detector.folder import DETECTOR, POSE, read_folder
from nodes.vlm.detector.labels import LABELS, PERSON
from nodes.vlm.detector.scene import JOINTS_OF_A_BODY, BoundingBox, Keypoint, distinct
from runtime.clock import SystemClock
from runtime.errors import PolyrhythmError

SURE_FROM = 0.3
AROUND = 0.15
"""How much of a person's box is added on each side before the pose is looked for."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found in one image, in its pixels."""

    boxes: tuple[BoundingBox, ...]
    pose: tuple[Keypoint, ...] | None  # of the largest person


class Eyes:
    """Both networks, each on `threads` threads."""

    def __init__(self, folder: str, *, providers: tuple[str, ...], threads: int = 1) -> None:
        """Both have answered once then. Raises PolyrhythmError for what cannot be loaded or has other shapes."""
        models, problems = read_folder(folder)
        if problems:
            raise PolyrhythmError("; ".join(problems))
        self._detector, self._pose = (
            OnnxModel(models[name], name=f"model {str(Path(folder) / name)!r}", providers=providers, threads=threads)
            for name in (DETECTOR, POSE)
        )
        self.fallback = self._detector.fallback
        clock = SystemClock()
        begun_ns = clock.now_ns()
        nothing = np.zeros((480, 640, 3), np.uint8)
        self.look(nothing)
        self.pose(nothing)
        self._first_s = clock.since_s(begun_ns)

    def timing(self, *, rounds: int = 5) -> Timing:
        """How long both take for an image with a person in it."""
        nothing = np.zeros((480, 640, 3), np.uint8)
        return timed(
            lambda: (self.look(nothing), self.pose(nothing)),
            provider=self._detector.provider,
            first_s=self._first_s,
            rounds=rounds,
        )

    def look(self, rgb: NDArray[np.uint8]) -> Looked:
        """Find things, and the pose of the largest person. Raises PolyrhythmError where a network fails."""
        height_px, width_px = rgb.shape[:2]
        found = self._ask(self._detector, rgb)
        if found.ndim != 3 or found.shape[::2] != (1, 6):
            raise PolyrhythmError(f"{self._detector.name} gave boxes of shape {found.shape}; expected (1, boxes, 6)")
        side_px = self._side_px(self._detector)
        scale = np.array([width_px, height_px, width_px, height_px]) / side_px
        boxes = [
            BoundingBox(LABELS[int(kind)], float(score), *(corners * scale).tolist())
            for *corners_, score, kind in found[0]
            if score >= SURE_FROM and 0 <= kind < len(LABELS)
            for corners in [np.array(corners_)]
        ]
        kept = tuple(distinct(boxes))
        person = max((box for box in kept if box.label == PERSON), key=lambda box: box.area, default=None)
        return Looked(kept, None if person is None else self.pose(rgb, person))

    def pose(self, rgb: NDArray[np.uint8], box: BoundingBox | None = None) -> tuple[Keypoint, ...]:
        """The joints of the person in a box, or in the whole image. Raises PolyrhythmError."""
        height_px, width_px = rgb.shape[:2]
        left, top, right, bottom = (0.0, 0.0, float(width_px), float(height_px))
        if box is not None:
            room = AROUND * max(box.right - box.left, box.bottom - box.top)
            left, top = max(box.left - room, 0.0), max(box.top - room, 0.0)
            right, bottom = min(box.right + room, width_px), min(box.bottom + room, height_px)
        part = rgb[int(top) : max(math.ceil(bottom), int(top) + 1), int(left) : max(math.ceil(right), int(left) + 1)]
        side = max(part.shape[:2])
        square = np.zeros((side, side, 3), np.uint8)
        square[: part.shape[0], : part.shape[1]] = part
        found = self._ask(self._pose, square)
        if found.shape != (1, 1, JOINTS_OF_A_BODY, 3):
            expected = (1, 1, JOINTS_OF_A_BODY, 3)
            raise PolyrhythmError(f"{self._pose.name} gave a pose of shape {found.shape}; expected {expected}")
        return tuple(
            Keypoint(int(left) + side * float(across), int(top) + side * float(down), float(score))
            for down, across, score in found[0, 0]
        )

    def _side_px(self, model: OnnxModel) -> int:
        [name] = model.inputs
        shape = model.shape(name)
        if len(shape) != 4 or shape[1] is None or shape[1] != shape[2] or shape[3] != 3:
            raise PolyrhythmError(f"{model.name}: input {name!r} is of shape {shape}; expected [1, side, side, 3]")
        return shape[1]

    def _ask(self, model: OnnxModel, rgb: NDArray[np.uint8]) -> NDArray[np.generic]:
        if len(model.inputs) != 1:
            raise PolyrhythmError(f"{model.name} has {len(model.inputs)} inputs; expected an image alone")
        side_px = self._side_px(model)
        small = cv2.resize(np.ascontiguousarray(rgb), (side_px, side_px), interpolation=cv2.INTER_AREA)
        [found], _ = model.run({next(iter(model.inputs)): small[None]}, fetch=list(model.outputs)[:1])
        if not np.isfinite(found).all():
            raise PolyrhythmError(f"{model.name} gave numbers that are not finite")
        return found
