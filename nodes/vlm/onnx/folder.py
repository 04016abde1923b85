"""What is in the folder of a vision-language model, as such models are published for ONNX Runtime; runs nothing.

    config.json  preprocessor_config.json  tokenizer.json  chat_template.json
    onnx/vision_encoder*.onnx  onnx/embed_tokens*.onnx  onnx/decoder_model_merged*.onnx

The stars stand for a precision, "_q4" or "_fp16"; without one the weights are 32-bit floats.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from nodes.models.onnx_file import read_model
from nodes.vlm.onnx.parts import PARTS
from nodes.vlm.onnx.parts import problems as tensor_problems
from runtime.errors import choices

FAMILIES = ("idefics3", "smolvlm")
END_OF_TURN = "<end_of_utterance>"
SMALLEST_PX, LARGEST_PX = 16, 2048


class _Edge(msgspec.Struct):
    longest_edge: int


class Pictures(msgspec.Struct):
    """How an image becomes a tile."""

    max_image_size: _Edge
    image_mean: tuple[float, float, float]
    image_std: tuple[float, float, float]
    rescale_factor: float = 1 / 255

    @property
    def size_px(self) -> int:
        """Width and height of a tile."""
        return self.max_image_size.longest_edge


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder that holds all that is needed."""

    path: Path
    parts: dict[str, Path]
    pictures: Pictures

    @property
    def tokenizer(self) -> Path:
        return self.path / "tokenizer.json"

    @property
    def name(self) -> str:
        """For people: the folder's own name."""
        return self.path.resolve().name

    def read_parts(self) -> tuple[dict[str, bytes], list[str]]:
        """The three models' bytes, and what speaks against loading them, in sentences."""
        parts: dict[str, bytes] = {}
        found: list[str] = []
        for part, path in self.parts.items():
            parts[part], wrong = read_model(str(path))
            found += wrong or [f"{path} {sentence}" for sentence in tensor_problems(part, parts[part])]
        return parts, found


def read_folder(folder: str, precision: str = "") -> tuple[ModelFolder | None, list[str]]:
    """The folder, or what it lacks, in sentences. With no precision named the only one there is taken, or the plain."""
    path = Path(folder)
    if not folder:
        return None, [
            "no folder is named; set the parameter folder to that of a model (docs/vlm.md says how to get one)"
        ]
    if not path.is_dir():
        return None, [f"folder {folder!r} " + ("is not a folder" if path.exists() else "does not exist")]
    problems: list[str] = []
    config, pictures = _json(path / "config.json", problems), _pictures(path, problems)
    if config is not None and config.get("model_type") not in FAMILIES:
        problems.append(
            f"{path / 'config.json'}: model_type is {config.get('model_type')!r}; known: {choices(map(repr, FAMILIES))}"
        )
    if not (path / "tokenizer.json").is_file():
        problems.append(f"{path / 'tokenizer.json'} does not exist")
    template = _chat_template(path)
    if template and END_OF_TURN not in template:
        problems.append(f"{path}: the chat template ends no turn with {END_OF_TURN}; such a model is asked otherwise")
    parts = {part: _part(path, part, precision, problems) for part in PARTS}
    if problems or pictures is None:
        return None, problems
    return ModelFolder(path, {part: file for part, file in parts.items() if file is not None}, pictures), []


def _part(folder: Path, part: str, precision: str, problems: list[str]) -> Path | None:
    place = folder / "onnx" if (folder / "onnx").is_dir() else folder
    there = {file.stem.removeprefix(part).removeprefix("_"): file for file in sorted(place.glob(f"{part}*.onnx"))}
    chosen = next(iter(there)) if not precision and "" not in there and len(there) == 1 else precision
    if chosen in there:
        return there[chosen]
    wanted = place / (f"{part}_{chosen}.onnx" if chosen else f"{part}.onnx")
    if not there:
        problems.append(f"{wanted} does not exist")
    else:
        known = choices(repr(name) for name in there)
        problems.append(f"{wanted} does not exist; set the parameter precision to one of those there: {known}")
    return None


def _pictures(folder: Path, problems: list[str]) -> Pictures | None:
    """From a file of its own, or, as newer folders have it, from processor_config.json."""
    file = folder / "preprocessor_config.json"
    newer = folder / "processor_config.json"
    read = (_json(newer, []) or {}).get("image_processor") if not file.exists() else None
    if read is not None:
        file = newer
    else:
        read = _json(file, problems)
    if read is None:
        return None
    try:
        pictures = msgspec.convert(read, Pictures)
    except msgspec.ValidationError as problem:
        problems.append(f"{file}: {problem}")
        return None
    if not SMALLEST_PX <= pictures.size_px <= LARGEST_PX or 0.0 in pictures.image_std:
        problems.append(
            f"{file}: longest_edge is {pictures.size_px} and image_std {pictures.image_std}; "
            f"expected {SMALLEST_PX} to {LARGEST_PX} pixels, and no 0"
        )
        return None
    return pictures


def _chat_template(folder: Path) -> str:
    """In one of the three places where it is kept; "" where it is in none."""
    jinja = folder / "chat_template.jinja"
    if jinja.is_file():
        return jinja.read_text(encoding="utf-8", errors="replace")
    for name in ("chat_template.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            template = (_json(folder / name, []) or {}).get("chat_template")
            if isinstance(template, str):
                return template
    return ""


def _json(file: Path, problems: list[str]) -> dict[str, Any] | None:
    if not file.is_file():
        problems.append(f"{file} does not exist")
        return None
    try:
        read = json.loads(file.read_bytes())
    except ValueError as problem:
        problems.append(f"{file} is no JSON: {problem}")
        return None
    if not isinstance(read, dict):
        problems.append(f"{file} holds no JSON object")
        return None
    return read
