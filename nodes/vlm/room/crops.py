"""What a group of pixels is: a small network of ours looks at its cut-out, and says kind, colour and state, or "other".

The network is trained on drawn scenes alone (`examples/train_eyes`). It is one ONNX file beside this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from nodes.robot.products import product
from nodes.vlm.room.blobs import Blob

MODEL = Path(__file__).with_name("crops.onnx")
SIDE_PX = 40
AROUND = 1.2
"""A cut-out is so much larger than the group."""
DEEP_M = 0.12
KINDS = (
    "mug", "glass", "plate", "bowl", "bottle", "apple", "orange", "banana", "cookie jar", "sponge", "other",
)  # fmt: skip
COLOURS = ("red", "blue", "green", "yellow", "white", "orange", "brown", "")
FILLS = ("", "half full", "full")
CONTENTS = ("", "water", "coffee", "cream")
OTHER = "other"
KNOWN_FROM = 0.5
"""What is less sure to be of a kind is of none."""

Cut = NDArray[np.uint8]  # (SIDE_PX, SIDE_PX, 5): red, green, blue, the group's own pixels, nearer or farther
Sizes = NDArray[np.float32]  # (4,)


@dataclass(frozen=True, slots=True)
class Classification:
    """What the network says of one group; `sure` is how likely its kind is, `likely` how likely each of the kinds."""

    kind: str  # "other": of none
    sure: float
    colour: str
    fill: str
    contents: str
    is_dirty: bool
    is_open: bool
    likely: Mapping[str, float] = field(default_factory=dict)


def cut_out(blob: Blob, rgb: NDArray[np.uint8], depth_m: NDArray[np.float32]) -> tuple[Cut, Sizes]:
    """The square around a group, and how large the group is."""
    left, top, right, bottom = blob.box
    side = max(right - left, bottom - top) * AROUND
    middle_x, middle_y = (left + right) / 2, (top + bottom) / 2
    scale = SIDE_PX / side
    move = np.array([[scale, 0, SIDE_PX / 2 - scale * middle_x], [0, scale, SIDE_PX / 2 - scale * middle_y]])
    own: NDArray[np.uint8] = np.zeros(depth_m.shape, dtype=np.uint8)
    own.reshape(-1)[blob.pixels] = 255
    a, b = max(int(middle_x - side), 0), max(int(middle_y - side), 0)
    part = slice(b, int(middle_y + side) + 1), slice(a, int(middle_x + side) + 1)
    move[:, 2] += product(move[:, :2], np.array((a, b)))
    away = float(np.median(depth_m.reshape(-1)[blob.pixels]))
    deep = np.clip(128 + 127 * (depth_m[part] - away) / DEEP_M, 0, 255).astype(np.uint8)
    stacked = np.dstack([rgb[part], own[part], deep])
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    halves = [cv2.warpAffine(np.ascontiguousarray(some), move, (SIDE_PX, SIDE_PX), flags=how)
              for some in (stacked[..., :3], stacked[..., 3:])]  # fmt: skip
    return np.dstack(halves).astype(np.uint8), np.array(blob.size_m, np.float32) * 10


class CropReader:
    """The network in this process. Raises UserError where the file is none, ModuleNotFoundError without onnxruntime."""

    def __init__(self, model: Path = MODEL) -> None:
        from nodes.models.onnx_runtime import open_session

        self._session, _ = open_session(model.read_bytes(), name=model.name, providers=("CPUExecutionProvider",))

    def read(self, cuts: Sequence[tuple[Cut, Sizes]]) -> list[Classification]:
        """What each of them is."""
        if not cuts:
            return []
        pictures = np.stack([cut for cut, _ in cuts]).transpose(0, 3, 1, 2)
        answers = self._session.run(None, {"cuts": pictures, "sizes": np.stack([size for _, size in cuts])})
        kinds, colours, fills, contents, flags = (np.asarray(one) for one in answers)
        return [_told(*some) for some in zip(kinds, colours, fills, contents, flags, strict=True)]


def _told(
    kind: NDArray[np.float32], colour: NDArray[np.float32], fill: NDArray[np.float32], held: NDArray[np.float32],
    flags: NDArray[np.float32],
) -> Classification:  # fmt: skip
    best = int(kind.argmax())
    is_known = kind[best] >= KNOWN_FROM
    level = FILLS[int(fill.argmax())]
    return Classification(
        kind=KINDS[best] if is_known else OTHER, sure=float(kind[best]), colour=COLOURS[int(colour.argmax())],
        fill=level,
        contents=CONTENTS[1 + int(held[1:].argmax())] if level else "", is_dirty=bool(flags[0] > 0.5),
        is_open=bool(flags[1] > 0.5), likely=dict(zip(KINDS[:-1], kind.tolist(), strict=False)),
    )  # fmt: skip
