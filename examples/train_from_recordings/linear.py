"""A linear map from joints to the next 16 commands: `python linear.py DATASET policy.onnx`, with onnx and pyarrow.

It learns what recordings of one task have in common, and no task.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pyarrow.parquet as parquet
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

STEPS = 16


def main(dataset: str, file: str) -> None:
    """Learn from all frames of the dataset's folder, and write the model there."""
    tables = [parquet.read_table(part) for part in sorted(Path(dataset).glob("data/*/*.parquet"))]
    joints = np.concatenate([np.stack(table["observation.state"].to_numpy()) for table in tables])[:, :8]
    actions = np.concatenate([np.stack(table["action"].to_numpy()) for table in tables])

    seen = np.hstack([joints, np.ones((len(joints), 1))])[:-STEPS]
    wanted = np.hstack([actions[step : len(actions) - STEPS + step] for step in range(STEPS)])
    weights = np.linalg.solve(seen.T @ seen + 1e-3 * np.eye(9), seen.T @ wanted).astype(np.float32)

    constants: dict[str, NDArray[np.generic]] = {
        "by": weights[:-1],
        "bias": weights[-1:],
        "shape": np.array([1, STEPS, 10], np.int64),
    }
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["joints", "by", "bias"], ["flat"]),
            helper.make_node("Reshape", ["flat", "shape"], ["chunk"]),
        ],
        "cloned",
        [
            helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 120, 160]),  # not looked at
            helper.make_tensor_value_info("joints", TensorProto.FLOAT, [1, 8]),
        ],
        [helper.make_tensor_value_info("chunk", TensorProto.FLOAT, [1, STEPS, 10])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), file)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
