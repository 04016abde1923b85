"""Graph models of TensorFlow.js as ONNX: each operation against numpy, and what is refused."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from nodes.vlm.detector.convert import convert_package, main
from nodes.vlm.detector.folder import DETECTOR, POSE, read_folder
from nodes.vlm.detector.graph_model import convert
from runtime.errors import PolyrhythmError, UserError
from tests.support.sentences import pattern, sentence

Array = NDArray[Any]
GENERATOR = np.random.default_rng(5)


def text(word: str) -> dict[str, str]:
    return {"s": base64.b64encode(word.encode()).decode()}


def numbers(*values: int) -> dict[str, Any]:
    return {"list": {"i": [str(value) for value in values]}}


class Graph:
    """A graph model that is put together node by node, with an input `x`."""

    def __init__(self, *shape: int) -> None:
        sizes = [{"size": str(size)} for size in shape]
        attributes = {"shape": {"shape": {"dim": sizes}}, "dtype": {"type": "DT_FLOAT"}}
        self.nodes: list[dict[str, Any]] = [{"name": "x", "op": "Placeholder", "attr": attributes}]
        self.weights: list[dict[str, Any]] = []
        self.data = b""

    def constant(self, name: str, value: Array, *, is_half: bool = False) -> str:
        self.nodes.append({"name": name, "op": "Const", "attr": {}})
        entry: dict[str, Any] = {"name": name, "shape": list(value.shape), "dtype": value.dtype.name}
        if is_half:
            entry["quantization"] = {"dtype": "float16", "original_dtype": "float32"}
        self.weights.append(entry)
        self.data += value.astype(np.float16 if is_half else value.dtype).tobytes()
        return name

    def node(self, kind: str, name: str, *inputs: str, **attributes: Any) -> str:
        self.nodes.append({"name": name, "op": kind, "input": list(inputs), "attr": attributes})
        return name

    def converted(self, *outputs: str) -> bytes:
        table = {
            "modelTopology": {"node": self.nodes},
            "weightsManifest": [{"paths": ["it.bin"], "weights": self.weights}],
        }
        return convert(json.dumps(table).encode(), self.data, outputs)

    def run(self, x: Array, *outputs: str) -> list[Array]:
        session = onnxruntime.InferenceSession(self.converted(*outputs), providers=["CPUExecutionProvider"])
        return [np.asarray(one) for one in session.run(None, {"x": x.astype(np.float32)})]


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


def convolved(x: Array, kernel: Array, stride: int) -> Array:
    """Rows, height, width, channels; as TensorFlow pads with SAME."""
    rows, columns = -(-x.shape[1] // stride), -(-x.shape[2] // stride)
    pads = [max((out - 1) * stride + size - whole, 0) for out, size, whole in
            zip((rows, columns), kernel.shape[:2], x.shape[1:3], strict=True)]  # fmt: skip
    padded = np.pad(x, ((0, 0), *((pad // 2, pad - pad // 2) for pad in pads), (0, 0)))
    found = np.zeros((x.shape[0], rows, columns, kernel.shape[3]))
    for row in range(rows):
        for column in range(columns):
            top, left = row * stride, column * stride
            part = padded[:, top : top + kernel.shape[0], left : left + kernel.shape[1]]
            found[:, row, column] = np.einsum("nhwc,hwco->no", part, kernel)
    return found


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("is_half", [False, True])
def test_a_convolution_with_what_is_fused_into_it(stride: int, is_half: bool) -> None:
    x = GENERATOR.normal(size=(1, 7, 6, 3)).astype(np.float32)
    kernel, bias = GENERATOR.normal(size=(3, 3, 3, 4)).astype("f4"), GENERATOR.normal(size=4).astype("f4")
    if is_half:
        kernel, bias = kernel.astype(np.float16).astype("f4"), bias.astype(np.float16).astype("f4")
    graph = Graph(1, 7, 6, 3)
    given = [graph.constant("k", kernel, is_half=is_half), graph.constant("b", bias, is_half=is_half)]
    how = {"strides": numbers(1, stride, stride, 1), "padding": text("SAME")}
    fused = {"list": {"s": [text("BiasAdd")["s"], text("Relu6")["s"]]}}
    graph.node("_FusedConv2D", "y", "x", *given, **how, fused_ops=fused)
    [found] = graph.run(x, "y")
    assert found == pytest.approx(np.clip(convolved(x, kernel, stride) + bias, 0, 6), abs=1e-4)


def test_a_convolution_of_each_channel_by_itself() -> None:
    x, kernel = GENERATOR.normal(size=(1, 5, 5, 3)), GENERATOR.normal(size=(3, 3, 3, 2)).astype("f4")
    graph = Graph(1, 5, 5, 3)
    graph.constant("k", kernel)
    graph.node("DepthwiseConv2dNative", "y", "x", "k", strides=numbers(1, 1, 1, 1), padding=text("SAME"))
    [found] = graph.run(x, "y")
    for channel in range(3):
        each = convolved(x[..., channel : channel + 1], kernel[:, :, channel : channel + 1], 1)
        assert found[..., 2 * channel : 2 * channel + 2] == pytest.approx(each, abs=1e-4)


def test_the_largest_and_the_mean_of_parts_of_a_picture() -> None:
    x = GENERATOR.normal(size=(1, 4, 6, 2))
    graph = Graph(1, 4, 6, 2)
    two = numbers(1, 2, 2, 1)
    graph.node("MaxPool", "largest", "x", ksize=two, strides=two, padding=text("VALID"))
    graph.constant("axes", ints(1, 2))
    graph.node("Mean", "mean", "x", "axes", keep_dims={"b": True})
    largest, mean = graph.run(x, "largest", "mean")
    assert largest == pytest.approx(x.reshape(1, 2, 2, 3, 2, 2).max((2, 4)))
    assert mean == pytest.approx(x.mean((1, 2), keepdims=True), abs=1e-6)


@pytest.mark.parametrize("is_half_pixel", [True, False])
def test_a_picture_of_twice_the_size(is_half_pixel: bool) -> None:
    x = np.array([0.0, 1.0]).reshape(1, 1, 2, 1)
    graph = Graph(1, 1, 2, 1)
    graph.constant("size", ints(1, 4))
    graph.node("ResizeBilinear", "y", "x", "size", half_pixel_centers={"b": is_half_pixel}, align_corners={"b": False})
    [found] = graph.run(x, "y")
    assert found.ravel() == pytest.approx([0.0, 0.25, 0.75, 1.0] if is_half_pixel else [0.0, 0.5, 1.0, 1.0])


def test_places_and_numbers_of_the_best() -> None:
    x = np.array([[3.0, -7.0, 9.0, 5.0]])
    graph = Graph(1, 4)
    graph.constant("two", np.array(2, np.int32))
    graph.constant("axis", np.array(1, np.int32))
    graph.constant("four", np.array(4, np.int32))
    graph.node("TopKV2", "top", "x", "two")
    graph.node("ArgMax", "largest", "x", "axis")
    graph.node("FloorDiv", "row", "top:1", "two", T={"type": "DT_INT32"})
    graph.node("FloorMod", "column", "top:1", "two")
    for name in ("row", "column", "largest"):
        graph.node("Cast", f"{name}_f", name, DstT={"type": "DT_FLOAT"})
    graph.node("Cast", "four_f", "four", DstT={"type": "DT_FLOAT"})
    graph.node("FloorDiv", "down", "x", "four_f", T={"type": "DT_FLOAT"})
    top, row, column, largest, down = graph.run(x, "top", "row_f", "column_f", "largest_f", "down")
    assert top.tolist() == [[9.0, 5.0]]
    assert (row.tolist(), column.tolist(), largest.tolist()) == ([[1.0, 1.0]], [[0.0, 1.0]], [2.0])
    assert down.tolist() == [[0.0, -2.0, 2.0, 1.0]]


def test_shapes_are_cut_joined_and_picked_from() -> None:
    x = np.arange(12.0).reshape(1, 3, 4)
    graph = Graph(1, 3, 4)
    for name, value in (("begin", (0, 1, 0)), ("end", (0, 2, 2)), ("step", (1, 1, 1)), ("where", (0, 2, 3))):
        graph.constant(name, ints(*value))
    graph.constant("last", np.array(-1, np.int32))
    masks = {"begin_mask": {"i": "1"}, "end_mask": {"i": "1"}, "shrink_axis_mask": {"i": "2"}}
    graph.node("StridedSlice", "cut", "x", "begin", "end", "step", **masks)
    graph.node("GatherNd", "one", "x", "where")
    graph.node("Unpack", "rows", "x", num={"i": "3"}, axis={"i": "1"})
    graph.node("Pack", "packed", "rows:2", "rows", axis={"i": "1"})
    graph.node("ConcatV2", "joined", "rows", "rows:1", "last")
    cut, one, packed, joined = graph.run(x, "cut", "one", "packed", "joined")
    assert cut.tolist() == [[4.0, 5.0]]
    assert one.tolist() == 11.0
    assert packed.tolist() == [[[8.0, 9.0, 10.0, 11.0], [0.0, 1.0, 2.0, 3.0]]]
    assert joined.tolist() == [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]]


def test_what_is_not_known_is_a_sentence() -> None:
    graph = Graph(1, 4)
    graph.node("Erf", "y", "x")
    with pytest.raises(PolyrhythmError, match=pattern("vlm.unknown_operation", operation="Erf", node="y", known="Add")):
        graph.converted("y")
    with pytest.raises(PolyrhythmError, match="has no node 'z'"):
        graph.converted("z")
    with pytest.raises(PolyrhythmError, match=pattern("vlm.no_graph_model")):
        convert(b"{}", b"", ["y"])


@pytest.mark.parametrize(
    ("change", "words"), [(-4, sentence("vlm.cut_off", name="k")), (4, sentence("vlm.of_another_model"))]
)
def test_weights_that_are_cut_off_or_of_another_model_are_a_sentence(change: int, words: str) -> None:
    graph = Graph(1, 4)
    graph.constant("k", np.ones(4, np.float32))
    graph.node("Mul", "y", "x", "k")
    graph.data = graph.data[:change] if change < 0 else graph.data + bytes(change)
    with pytest.raises(PolyrhythmError, match=words):
        graph.converted("y")


def package(folder: Path) -> tuple[Path, str]:
    """A package with two small models, and its hash."""
    files = {"package/LICENSE": b"MIT License\n\nDo as you like."}
    for own, output in (("centernet", "tower_0/detections"), ("movenet-lightning", "Identity")):
        graph = Graph(1, 2, 2, 3)
        graph.node("Relu", output, "x")
        table = {"modelTopology": {"node": graph.nodes}, "weightsManifest": []}
        files |= {f"package/models/{own}.json": json.dumps(table).encode(), f"package/models/{own}.bin": b""}
    path = folder / "package.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


def test_nothing_is_written_before_the_licence_is_accepted(tmp_path: Path) -> None:
    path, sha256 = package(tmp_path)
    for accepted in ("", "GPL"):
        with pytest.raises(UserError, match=r"Do as you like(.|\n)*say --accept MIT if you accept that"):
            convert_package(path, tmp_path / "out", accepted=accepted, sha256=sha256)
    assert not (tmp_path / "out").exists()
    convert_package(path, tmp_path / "out", accepted="MIT", sha256=sha256)
    models, problems = read_folder(str(tmp_path / "out"))
    assert problems == []
    assert models.keys() == {DETECTOR, POSE}


def test_another_package_than_the_pinned_one_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = package(tmp_path)
    arguments: Sequence[str] = ["--accept", "MIT", "--out", str(tmp_path / "out")]
    assert main([str(path), *arguments]) == 2
    assert "expected 425e9c51dbbc" in capsys.readouterr().err
    assert main([str(tmp_path / "none.tgz"), *arguments]) == 2
    assert sentence("vlm.fetch_it") in capsys.readouterr().err
