"""Models in files, as a launch file would name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def write_model(folder: Path, data: bytes, name: str = "policy.onnx") -> str:
    """The path of a file that holds just that."""
    path = folder / name
    path.write_bytes(data)
    return str(path)


def linear_model(
    inputs: Mapping[str, Sequence[int]],
    weights: Mapping[str, NDArray[np.float32]] | None = None,
    *,
    steps: int = 16,
    done: NDArray[np.float32] | None = None,
    bias: float = 0.0,
    rows: int | str = 1,
) -> bytes:
    """A policy with these inputs, by shape: each row of its chunk is the sum of every input (flat) times its weights.

    `weights[name]` is (numbers, 10); an input without is asked for and not used. `done` is (8,): the model's `done` is
    the sum of the joints times these. With the input `memory` its output `next_memory` is one more than that. `rows`
    as a word leaves the first size of every tensor open.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    constants: dict[str, NDArray[Any]] = {
        "steps": np.zeros((1, steps, 10), np.float32) + np.float32(bias),
        "flat": np.array([0, -1], np.int64),
        "step": np.array([1], np.int64),
    }
    nodes, sums = [], ["steps"]
    for name, weight in (weights or {}).items():
        constants[f"by {name}"] = weight
        nodes += [
            helper.make_node("Cast", [name], [f"{name} as float"], to=TensorProto.FLOAT),
            helper.make_node("Reshape", [f"{name} as float", "flat"], [f"flat {name}"]),
            helper.make_node("MatMul", [f"flat {name}", f"by {name}"], [f"sum of {name}"]),
            helper.make_node("Unsqueeze", [f"sum of {name}", "step"], [f"from {name}"]),
        ]
        sums.append(f"from {name}")
    nodes.append(helper.make_node("Sum", sums, ["chunk"]))
    outputs = [helper.make_tensor_value_info("chunk", TensorProto.FLOAT, [rows, steps, 10])]
    if done is not None:
        constants["by done"] = done
        nodes.append(helper.make_node("MatMul", ["joints", "by done"], ["done"]))
        outputs.append(helper.make_tensor_value_info("done", TensorProto.FLOAT, [rows]))
    if "memory" in inputs:
        constants["one"] = np.array(1, np.float32)
        nodes.append(helper.make_node("Add", ["memory", "one"], ["next_memory"]))
        outputs.append(helper.make_tensor_value_info("next_memory", TensorProto.FLOAT, [rows, *inputs["memory"][1:]]))
    kinds = {name: TensorProto.INT64 if name == "text" else TensorProto.FLOAT for name in inputs}
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info(name, kinds[name], [rows, *shape[1:]]) for name, shape in inputs.items()],
        outputs,
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())
