"""The folder of `DetectorVLM`'s models: `eyes.json` says what they are, and the hash of each."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nodes.models.onnx_file import read_model

CONTENTS = "eyes.json"
DETECTOR, POSE = "detector.onnx", "pose.onnx"
CONVERT = "python -m nodes.vlm.detector.convert"


class Contents(msgspec.Struct, frozen=True):
    """What a folder holds: `eyes.json`."""

    source: str
    licence: str
    sha256: dict[str, str]


def read_folder(folder: str) -> tuple[dict[str, bytes], list[str]]:
    """The models by name, and what speaks against loading them, in sentences; nothing is run."""
    place = Path(folder)
    if not (place / CONTENTS).is_file():
        return {}, [f"folder {folder!r} has no {CONTENTS}; make it with {CONVERT} (docs/vlm.md)"]
    try:
        contents = msgspec.json.decode((place / CONTENTS).read_bytes(), type=Contents)
    except msgspec.MsgspecError as problem:
        return {}, [f"{place / CONTENTS}: {problem}; make it anew with {CONVERT}"]
    models: dict[str, bytes] = {}
    problems: list[str] = []
    for name in (DETECTOR, POSE):
        if name not in contents.sha256:
            problems.append(f"{place / CONTENTS} knows no {name}; make it anew with {CONVERT}")
            continue
        models[name], wrong = read_model(str(place / name), contents.sha256[name])
        problems += wrong
    return models, problems
