"""A folder of eyes as `nodes.vlm.detector.convert` writes one, with networks that always see the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from nodes.vlm.detector.folder import CONTENTS, DETECTOR, POSE, Contents
from nodes.vlm.detector.labels import LABELS

SIDE_PX = 32
PERSON_PX = (0.0, 0.0, 12.0, 32.0)
BOXES = (("person", PERSON_PX, 0.9), ("cup", (24.0, 12.0, 28.0, 16.0), 0.8), ("bowl", (20.0, 26.0, 26.0, 30.0), 0.7))
"""A person at the left, a cup at the right at shoulder height, a bowl below; corners in a picture of 32 x 32."""


def pose() -> NDArray[np.float32]:
    """(1, 1, 17, 3): a person who looks ahead and holds the left arm out to the right of the picture."""
    found = np.zeros((1, 1, 17, 3), np.float32)
    found[..., 2] = 0.1
    for joint, (down, across) in {
        0: (0.2, 0.3), 1: (0.17, 0.33), 2: (0.17, 0.27), 5: (0.4, 0.35), 7: (0.41, 0.45), 9: (0.42, 0.55),
    }.items():  # fmt: skip
        found[0, 0, joint] = down, across, 0.9
    return found


def boxes(seen: Sequence[tuple[str, tuple[float, float, float, float], float]] = BOXES) -> NDArray[np.float32]:
    """(1, boxes, 6): corners in pixels, how sure, and the kind."""
    return np.array([[[*corners, score, LABELS.index(label)] for label, corners, score in seen]], np.float32)


def constant_model(answer: NDArray[np.float32], kind: int = TensorProto.FLOAT, side_px: int = SIDE_PX) -> bytes:
    """A network that looks at its picture and gives that answer."""
    nodes = [
        helper.make_node("Cast", ["image"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["numbers"], ["mean"], keepdims=0),
        helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
        helper.make_node("Add", ["answer", "nothing"], ["found"]),
    ]
    graph = helper.make_graph(
        nodes,
        "eyes",
        [helper.make_tensor_value_info("image", kind, [1, side_px, side_px, 3])],
        [helper.make_tensor_value_info("found", TensorProto.FLOAT, list(answer.shape))],
        [numpy_helper.from_array(answer, "answer"), numpy_helper.from_array(np.array(0, np.float32), "zero")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def write_eyes(folder: Path, detector: bytes | None = None, body: bytes | None = None) -> Path:
    """The folder `eyes` in this one."""
    place = folder / "eyes"
    place.mkdir()
    models = {
        DETECTOR: constant_model(boxes()) if detector is None else detector,
        POSE: constant_model(pose(), TensorProto.INT32) if body is None else body,
    }
    for name, data in models.items():
        (place / name).write_bytes(data)
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in models.items()}
    (place / CONTENTS).write_bytes(msgspec.json.encode(Contents("a test", "none", hashes)))
    return place
