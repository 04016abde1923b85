"""A TensorFlow.js graph model, `model.json` and its weights, as an ONNX file: the operations that its networks use.

Tensors stay as TensorFlow lays them out, (rows, height, width, channels); around what ONNX lays out otherwise stand
transpositions, most of which ONNX Runtime takes out again. What is not known here is a sentence with its name.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper, shape_inference

from runtime.errors import PolyrhythmError, choices

OPSET, IR_VERSION = 18, 9
TO_ONNX, TO_TENSORFLOW = (0, 3, 1, 2), (0, 2, 3, 1)
_TYPES = {"DT_FLOAT": TensorProto.FLOAT, "DT_INT32": TensorProto.INT32, "DT_BOOL": TensorProto.BOOL}
_STORED = {"float32": np.float32, "int32": np.int32, "float16": np.float16}
_SAME_NAME = {
    "Mul": "Mul", "Add": "Add", "AddV2": "Add", "Sub": "Sub", "RealDiv": "Div", "Equal": "Equal", "Sqrt": "Sqrt",
    "Sigmoid": "Sigmoid", "Relu": "Relu", "Identity": "Identity", "FloorMod": "Mod",
}  # fmt: skip


Node = Mapping[str, Any]


def weights_of(manifest: Sequence[Mapping[str, Any]], data: bytes) -> dict[str, NDArray[Any]]:
    """The arrays that `weightsManifest` lists, by name. Raises PolyrhythmError where the bytes are too few or many."""
    found: dict[str, NDArray[Any]] = {}
    at = 0
    for entry in (one for group in manifest for one in group["weights"]):
        stored = entry.get("quantization", {}).get("dtype", entry["dtype"])
        if stored not in _STORED:
            raise PolyrhythmError(f"weight {entry['name']!r} is stored as {stored}; known: {choices(_STORED)}")
        kind, count = np.dtype(_STORED[stored]), int(np.prod(entry["shape"], dtype=np.int64))
        part = data[at : at + count * kind.itemsize]
        if len(part) < count * kind.itemsize:
            raise PolyrhythmError(f"the weights end in the middle of {entry['name']!r}; the file is cut off")
        at += len(part)
        found[entry["name"]] = np.frombuffer(part, kind).reshape(entry["shape"]).astype(_STORED[entry["dtype"]])
    if at != len(data):
        raise PolyrhythmError(f"the weights are {len(data)} bytes and the model lists {at}; they are of another model")
    return found


def convert(model_json: bytes, data: bytes, outputs: Sequence[str]) -> bytes:
    """The ONNX file's bytes, with these nodes' results as its outputs. Raises PolyrhythmError."""
    try:
        table = msgspec.json.decode(model_json)
        nodes, manifest = table["modelTopology"]["node"], table["weightsManifest"]
    except (msgspec.DecodeError, KeyError, TypeError) as problem:
        raise PolyrhythmError(f"no TensorFlow.js graph model: {problem}; expected its model.json") from problem
    return bytes(_Conversion(nodes, weights_of(manifest, data)).model(outputs).SerializeToString())


class _Conversion:
    def __init__(self, nodes: Sequence[Node], weights: Mapping[str, NDArray[Any]]) -> None:
        self._by_name = {node["name"]: node for node in nodes}
        self._constants: dict[str, NDArray[Any]] = dict(weights)
        self._initializers: dict[str, NDArray[Any]] = {}
        self._inputs: list[Any] = []
        self._nodes: list[Any] = []
        self._done: set[str] = set()
        self._own = 0

    def model(self, outputs: Sequence[str]) -> ModelProto:
        waiting = list(reversed(outputs))
        while waiting:  # without recursion: graphs are deep
            name = waiting[-1].partition(":")[0]
            if name in self._done:
                waiting.pop()
                continue
            if name not in self._by_name:
                raise PolyrhythmError(f"the model has no node {name!r}")
            node = self._by_name[name]
            lacking = [one.partition(":")[0] for one in node.get("input", ()) if not one.startswith("^")]
            if open_ones := [one for one in lacking if one not in self._done]:
                waiting += open_ones
                continue
            self._take(node)
            self._done.add(waiting.pop().partition(":")[0])
        named = [helper.make_node("Identity", [self._name(one)], [f"output{at}"]) for at, one in enumerate(outputs)]
        graph = helper.make_graph(
            [*self._nodes, *named],
            "graph_model",
            self._inputs,
            [helper.make_empty_tensor_value_info(f"output{at}") for at in range(len(outputs))],
            [numpy_helper.from_array(value, name) for name, value in self._initializers.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        return shape_inference.infer_shapes(model)  # the outputs' types and shapes

    # --- names and constants

    def _name(self, text: str) -> str:
        """The ONNX name of a TensorFlow one; a constant becomes one of the file where it is used."""
        name, _, number = text.partition(":")
        name = name if number in ("", "0") else f"{name}:{number}"
        if name in self._constants:
            self._initializers[name] = self._constants[name]
        return name

    def _const(self, value: Any, kind: type[np.generic] = np.int64) -> str:
        self._own += 1
        name = f"own{self._own}"
        self._initializers[name] = np.asarray(value, kind)
        return name

    def _value(self, text: str) -> NDArray[Any]:
        if text not in self._constants:
            raise PolyrhythmError(f"{text!r} should be a constant, and is computed")
        return self._constants[text]

    def _emit(self, kind: str, inputs: Iterable[str], output: str = "", **attributes: Any) -> str:
        self._own += 1
        output = output or f"own{self._own}"
        self._nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    # --- operations

    def _take(self, node: Node) -> None:
        kind, name = node["op"], node["name"]
        inputs = [one for one in node.get("input", ()) if not one.startswith("^")]
        attributes = {key: _attribute(value) for key, value in node.get("attr", {}).items()}
        if kind == "Const":
            return
        if kind == "Placeholder":
            shape = [int(size["size"]) for size in node["attr"]["shape"]["shape"]["dim"]]
            sizes = [f"size{at}" if size < 0 else size for at, size in enumerate(shape)]
            self._inputs.append(helper.make_tensor_value_info(name, _TYPES[attributes["dtype"]], sizes))
        elif kind in _SAME_NAME:
            self._emit(_SAME_NAME[kind], map(self._name, inputs), name)
        elif kind in self._OTHERS:
            self._OTHERS[kind](self, name, inputs, attributes)
        else:
            raise PolyrhythmError(f"operation {kind} of {name!r} is not known here; known: {choices(self._known())}")

    def _known(self) -> list[str]:
        return sorted({*_SAME_NAME, *self._OTHERS, "Const", "Placeholder"})

    def _convolve(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        kernel = self._value(inputs[1])  # (height, width, in, out), or (height, width, in, factor)
        is_deep = "epthwise" in self._by_name[name]["op"]
        group = kernel.shape[2] if is_deep else 1
        if is_deep:
            moved = kernel.transpose(2, 3, 0, 1).reshape(-1, 1, *kernel.shape[:2])
        else:
            moved = kernel.transpose(3, 2, 0, 1)
        given = [self._emit("Transpose", [self._name(inputs[0])], perm=TO_ONNX), self._const(moved, np.float32)]
        fused = how.get("fused_ops", [])
        if "BiasAdd" in fused:
            given.append(self._name(inputs[2]))
        strides, dilations = how["strides"][1:3], how.get("dilations", [1, 1, 1, 1])[1:3]
        found = self._emit(
            "Conv", given, group=group, strides=strides, dilations=dilations, auto_pad=_padding(how["padding"])
        )
        for one in fused:
            if one == "Relu6":
                found = self._relu6(found)
            elif one == "Relu":
                found = self._emit("Relu", [found])
            elif one != "BiasAdd":
                raise PolyrhythmError(f"{name!r} has {one} fused into it; known: BiasAdd, Relu, Relu6")
        self._emit("Transpose", [found], name, perm=TO_TENSORFLOW)

    def _relu6(self, name: str, output: str = "") -> str:
        return self._emit("Clip", [name, self._const(0, np.float32), self._const(6, np.float32)], output)

    def _pool(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        moved = self._emit("Transpose", [self._name(inputs[0])], perm=TO_ONNX)
        pooled = self._emit(
            "MaxPool",
            [moved],
            kernel_shape=how["ksize"][1:3],
            strides=how["strides"][1:3],
            auto_pad=_padding(how["padding"]),
        )
        self._emit("Transpose", [pooled], name, perm=TO_TENSORFLOW)

    def _resize(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        way = "half_pixel" if how.get("half_pixel_centers") else "asymmetric"
        way = "align_corners" if how.get("align_corners") else way
        moved = self._emit("Transpose", [self._name(inputs[0])], perm=TO_ONNX)
        shape = self._emit("Slice", [self._emit("Shape", [moved]), self._const([0]), self._const([2])])
        sizes = self._emit("Concat", [shape, self._const(self._value(inputs[1]))], axis=0)
        resized = self._emit("Resize", [moved, "", "", sizes], mode="linear", coordinate_transformation_mode=way)
        self._emit("Transpose", [resized], name, perm=TO_TENSORFLOW)

    def _clip(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        self._relu6(self._name(inputs[0]), name)

    def _mean(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        given = [self._name(inputs[0]), self._const(self._value(inputs[1]).reshape(-1))]
        self._emit("ReduceMean", given, name, keepdims=int(bool(how.get("keep_dims"))))

    def _join(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        self._emit("Concat", map(self._name, inputs[:-1]), name, axis=int(self._value(inputs[-1])))

    def _reshape(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        shape = self._emit("Cast", [self._name(inputs[1])], to=TensorProto.INT64)
        self._emit("Reshape", [self._name(inputs[0]), shape], name)

    def _cast(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        self._emit("Cast", [self._name(inputs[0])], name, to=_TYPES[how["DstT"]])

    def _top(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        self._own += 1
        places = f"own{self._own}"
        count = self._const(self._value(inputs[1]).reshape(1))
        self._nodes.append(helper.make_node("TopK", [self._name(inputs[0]), count], [name, places]))
        self._emit("Cast", [places], f"{name}:1", to=TensorProto.INT32)

    def _expand(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        self._emit("Unsqueeze", [self._name(inputs[0]), self._const(self._value(inputs[1]).reshape(1))], name)

    def _squeeze(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        self._emit("Squeeze", [self._name(inputs[0]), self._const(how.get("squeeze_dims", []))], name)

    def _floor_divide(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        one, other = (self._emit("Cast", [self._name(text)], to=TensorProto.DOUBLE) for text in inputs)
        floor = self._emit("Floor", [self._emit("Div", [one, other])])
        self._emit("Cast", [floor], name, to=_TYPES[how["T"]])

    def _gather(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        self._emit("Gather", map(self._name, inputs[:2]), name, axis=int(self._value(inputs[2])))

    def _gather_nd(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        places = self._emit("Cast", [self._name(inputs[1])], to=TensorProto.INT64)
        self._emit("GatherND", [self._name(inputs[0]), places], name)

    def _slice(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        begin, end, step = (self._value(one).tolist() for one in inputs[1:4])
        masks = {key: int(how.get(f"{key}_mask", 0)) for key in ("begin", "end", "shrink_axis", "ellipsis", "new_axis")}
        if masks["ellipsis"] or masks["new_axis"] or min(step) < 1:
            raise PolyrhythmError(f"slice {name!r} has an ellipsis, a new axis or a negative step, which are not known")
        for axis in range(len(begin)):
            begin[axis] = 0 if masks["begin"] >> axis & 1 else begin[axis]
            end[axis] = np.iinfo(np.int64).max if masks["end"] >> axis & 1 else end[axis]
            if masks["shrink_axis"] >> axis & 1:
                end[axis] = begin[axis] + 1 or np.iinfo(np.int64).max
        axes = list(range(len(begin)))
        given = [self._name(inputs[0]), *map(self._const, (begin, end, axes, step))]
        gone = [axis for axis in axes if masks["shrink_axis"] >> axis & 1]
        found = self._emit("Slice", given, "" if gone else name)
        if gone:
            self._emit("Squeeze", [found, self._const(gone)], name)

    def _unpack(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        for number in range(int(how["num"])):
            given = [self._name(inputs[0]), self._const(number)]
            self._emit("Gather", given, f"{name}:{number}" if number else name, axis=int(how.get("axis", 0)))

    def _pack(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        axis = int(how.get("axis", 0))
        rows = [self._emit("Unsqueeze", [self._name(one), self._const([axis])]) for one in inputs]
        self._emit("Concat", rows, name, axis=axis)

    def _largest(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        found = self._emit("ArgMax", [self._name(inputs[0])], axis=int(self._value(inputs[1])), keepdims=0)
        self._emit("Cast", [found], name, to=TensorProto.INT32)

    def _squared_difference(self, name: str, inputs: Sequence[str], how: Mapping[str, Any]) -> None:
        difference = self._emit("Sub", map(self._name, inputs))
        self._emit("Mul", [difference, difference], name)

    _OTHERS: Mapping[str, Callable[[_Conversion, str, Sequence[str], Mapping[str, Any]], None]] = {
        "_FusedConv2D": _convolve,
        "Conv2D": _convolve,
        "FusedDepthwiseConv2dNative": _convolve,
        "DepthwiseConv2dNative": _convolve,
        "MaxPool": _pool,
        "ResizeBilinear": _resize,
        "Relu6": _clip,
        "Mean": _mean,
        "ConcatV2": _join,
        "Reshape": _reshape,
        "Cast": _cast,
        "TopKV2": _top,
        "ExpandDims": _expand,
        "Squeeze": _squeeze,
        "FloorDiv": _floor_divide,
        "GatherV2": _gather,
        "GatherNd": _gather_nd,
        "StridedSlice": _slice,
        "Unpack": _unpack,
        "Pack": _pack,
        "ArgMax": _largest,
        "SquaredDifference": _squared_difference,
    }


def _padding(word: str) -> str:
    if word not in ("SAME", "VALID"):
        raise PolyrhythmError(f"padding {word} is not known; known: SAME, VALID")
    return "SAME_UPPER" if word == "SAME" else word


def _attribute(value: Mapping[str, Any]) -> Any:
    """The plain value of one of TensorFlow's attributes, as JSON has them."""
    kind = next(iter(value), "")
    found: Any = value.get(kind)
    if kind == "list":
        return [_attribute({kind: one}) for kind, entries in found.items() for one in entries]
    if kind == "s":
        return b64decode(found).decode("utf-8", "replace")
    return int(found) if kind == "i" else found
