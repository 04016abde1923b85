"""Models that ship with the policies, by name."""

from __future__ import annotations

from pathlib import Path


def shipped() -> dict[str, Path]:
    """The files in `models` beside this module."""
    return {file.stem: file for file in sorted(Path(__file__).with_name("models").glob("*.onnx"))}


def place_of(model: str) -> str:
    """The path of a shipped model that is called so; of any other, what was said."""
    return str(shipped().get(model, model))
