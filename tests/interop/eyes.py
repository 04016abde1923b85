"""`python -m tests.interop.eyes FOLDER`: a webcam's eyes as TensorFlow.js itself runs them, on the package's picture.

FOLDER is where npm has put TensorFlow.js and the package with the weights; see `tests/interop/eyes`.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import cv2
import numpy as np

from nodes.models.onnx_runtime import OnnxModel
from nodes.vlm.detector.convert import PARTS, convert_package
from nodes.vlm.detector.eyes import Eyes
from nodes.vlm.detector.scene import pointing

ALIKE = {"centernet": 1e-2, "movenet-lightning": 1e-4}
"""Pixels of 512, and shares of the picture."""
HELD_OUT = (0, 0, 158, 158)
"""The part of the picture in which a figure holds both arms out: left, top, right, bottom."""


def main(folder: Path) -> int:
    """0 where ONNX Runtime says what TensorFlow.js says."""
    package = folder / "vladmandic-human-3.3.6.tgz"
    convert_package(package, folder / "onnx", accepted="MIT")
    with tarfile.open(package) as files:
        files.extractall(folder, filter="data")
    picture = np.asarray(cv2.imread(str(folder / "package/assets/samples.jpg")), np.uint8)
    rgb = np.ascontiguousarray(picture[:, :, ::-1])
    for name, (own, output) in PARTS.items():
        data = (folder / "onnx" / name).read_bytes()
        model = OnnxModel(data, name=name, providers=("CPUExecutionProvider",))
        [(asked, argument)] = model.inputs.items()
        side = model.shape(asked)[1] or 0
        small = cv2.resize(rgb, (side, side), interpolation=cv2.INTER_AREA)
        (folder / "picture.raw").write_bytes(small.tobytes())
        kind = "int32" if "int32" in argument.type else "float32"
        told = (folder / "told.raw").resolve()
        script = Path(__file__).with_suffix(".mjs").resolve()
        command = ["node", str(script), f"package/models/{own}", "picture.raw", str(side), kind, output, str(told)]
        subprocess.run(command, cwd=folder, check=True)
        [found], _ = model.run({asked: small[None]}, fetch=list(model.outputs))
        apart = float(np.abs(found.ravel() - np.fromfile(told, np.float32)).max())
        print(f"{own}: {found.size} numbers, at most {apart:.1g} apart from TensorFlow.js")
        assert apart < ALIKE[own]
    eyes = Eyes(str(folder / "onnx"), providers=("CPUExecutionProvider",))
    left, top, right, bottom = HELD_OUT
    figure = eyes.look(rgb[top:bottom, left:right])
    assert [box.label for box in figure.boxes] == ["person"]
    assert figure.pose is not None
    assert pointing(figure.pose) is not None
    people = sum(box.label == "person" for box in eyes.look(rgb).boxes)
    print(f"a figure with its arms held out points; {people} people in the whole picture; {eyes.timing()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
