"""Models in files, as a launch file would name them."""

from __future__ import annotations

from pathlib import Path


def write_model(folder: Path, data: bytes, name: str = "policy.onnx") -> str:
    """The path of a file that holds just that."""
    path = folder / name
    path.write_bytes(data)
    return str(path)
