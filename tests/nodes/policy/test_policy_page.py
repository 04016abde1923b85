"""The trainings that docs/policy.md names make models that the ONNX policy loads."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from examples.train_from_recordings import linear
from nodes.policy.onnx.inputs import Felt
from nodes.policy.onnx.session import PolicySession


def test_the_linear_training_makes_a_model_that_the_onnx_policy_loads(tmp_path: Path) -> None:
    wave = np.sin(np.arange(200) / 30.0)
    feels, acts = np.zeros((200, 11), np.float32), np.zeros((200, 10), np.float32)
    feels[:, 0], acts[:, 0] = 0.5 + 0.1 * wave, 0.6 + 0.1 * wave
    (tmp_path / "data" / "chunk-000").mkdir(parents=True)
    rows = arrow.table({"observation.state": feels.tolist(), "action": acts.tolist()})
    parquet.write_table(rows, tmp_path / "data" / "chunk-000" / "file-000.parquet")
    model = tmp_path / "policy.onnx"
    linear.main(str(tmp_path), str(model))
    session = PolicySession(
        model.read_bytes(), name="cloned", width_px=160, height_px=120, providers=("CPUExecutionProvider",)
    )
    chunk = session.run({"image": np.zeros((120, 160, 3), np.uint8)}, Felt((0.55, *[0.0] * 7))).chunk
    assert chunk.shape == (16, 10)
    assert chunk[0, 0] == pytest.approx(0.65, abs=0.01), "it has not learned to go 10 cm higher than it is"


def test_the_recurrent_training_makes_one_too(tmp_path: Path) -> None:
    pytest.importorskip("torch")  # it is no part of `dev`; `make interop` runs it always
    pytest.importorskip("onnxscript")
    feels, acts = np.full((60, 11), 0.5, np.float32), np.full((60, 10), 0.5, np.float32)
    (tmp_path / "data" / "chunk-000").mkdir(parents=True)
    rows = arrow.table({"observation.state": feels.tolist(), "action": acts.tolist()})
    parquet.write_table(rows, tmp_path / "data" / "chunk-000" / "file-000.parquet")
    model = tmp_path / "recurrent.onnx"
    import_module("examples.train_from_recordings.recurrent").main(str(tmp_path), str(model))
    session = PolicySession(
        model.read_bytes(), name="recurrent", width_px=160, height_px=120, providers=("CPUExecutionProvider",)
    )
    answer = session.run({}, Felt((0.5,) * 8))
    assert answer.chunk.shape == (16, 10)
    assert len(answer.memory) == 4 * 32
