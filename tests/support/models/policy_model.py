"""`python -m tests.support.models.policy_model PATH`: writes a tiny policy with the right inputs and output, for tests.

It raises the lift by 1 cm per step, drives forward at 0.1 m/s times the mean red of the image and turns at 0.1 rad/s
times its mean blue: enough to see that both inputs arrive. Needs the package onnx (extra dev).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

STEPS = 16


def policy_model(width_px: int = 160, height_px: int = 120, steps: int = STEPS, bias: float = 0.0) -> bytes:
    """The ONNX file's bytes; `bias` is added to every number of the output."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    sees = np.zeros((3, 10), np.float32)
    sees[0, 8], sees[2, 9] = 0.1, 0.1
    feels = np.zeros((8, 10), np.float32)
    feels[:, :8] = np.eye(8)
    ramp = np.full((1, steps, 10), bias, np.float32)
    ramp[0, :, 0] += 0.01 * np.arange(1, steps + 1)
    constants: dict[str, np.ndarray[Any, Any]] = {
        "sees": sees,
        "feels": feels,
        "ramp": ramp,
        "pixels": np.array([2, 3], np.int64),
        "steps": np.array([1], np.int64),
    }
    nodes = [
        helper.make_node("ReduceMean", ["image", "pixels"], ["colour"], keepdims=0),
        helper.make_node("MatMul", ["colour", "sees"], ["from_image"]),
        helper.make_node("MatMul", ["joints", "feels"], ["from_joints"]),
        helper.make_node("Add", ["from_image", "from_joints"], ["now"]),
        helper.make_node("Unsqueeze", ["now", "steps"], ["one_step"]),
        helper.make_node("Add", ["one_step", "ramp"], ["chunk"]),
    ]
    graph = helper.make_graph(
        nodes,
        "test_policy",
        [
            helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, height_px, width_px]),
            helper.make_tensor_value_info("joints", TensorProto.FLOAT, [1, 8]),
        ],
        [helper.make_tensor_value_info("chunk", TensorProto.FLOAT, [1, steps, 10])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    return data


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.support.models.policy_model PATH")
    with open(sys.argv[1], "wb") as file:
        file.write(policy_model())
