"""Every file and every machine with which the ONNX policy must not start."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from nodes.models.onnx_file import read_model
from nodes.models.onnx_runtime import open_session
from nodes.policy.onnx.inputs import Felt
from nodes.policy.onnx.policy import OnnxPolicy
from nodes.policy.onnx.session import PolicySession
from runtime.errors import ParameterError, PolyrhythmError
from tests.support.models.model_files import write_model
from tests.support.models.policy_model import policy_model
from tests.support.sentences import pattern, sentence


@pytest.fixture
def model(tmp_path: Path) -> str:
    return write_model(tmp_path, policy_model())


def test_a_missing_file_is_named_before_anything_starts(tmp_path: Path) -> None:
    path = str(tmp_path / "none.onnx")
    assert OnnxPolicy(path).problems() == [f"model {path!r} does not exist"]
    assert OnnxPolicy("").problems() == [sentence("models.no_file_named")]
    assert OnnxPolicy(str(tmp_path)).problems() == [f"model {str(tmp_path)!r} is not a file"]
    with pytest.raises(ParameterError, match="does not exist"):
        OnnxPolicy(path).on_start()


def test_the_hash_must_match_where_one_is_given(model: str) -> None:
    right = hashlib.sha256(Path(model).read_bytes()).hexdigest()
    assert OnnxPolicy(model, sha256=right.upper()).problems() == []
    assert OnnxPolicy(model, sha256="0" * 64).problems() == [f"model {model!r} has sha256 {right}, expected {'0' * 64}"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it has no graph"),
        (b"PK\x03\x04 a zip archive or a pickle", "the number 0"),
        (b"\x80\x04\x95pickle", "it is cut off"),
        (b"\x3a\xff\xff\xff\xff\x0f", "it is cut off"),
        (b"\x0b\x0c", "wire type 3"),
        (b"\x38\x01", "field 7 of its model is a number"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path: Path, data: bytes, why: str) -> None:
    problems = read_model(write_model(tmp_path, data))[1]
    assert len(problems) == 1
    assert "is no ONNX model" in problems[0]
    assert why in problems[0]


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    assert "by its name" in read_model(write_model(tmp_path, b"", "policy.pt"))[1][0]


def test_a_cut_model_is_refused_at_every_length(tmp_path: Path) -> None:
    whole = policy_model(steps=2)
    assert read_model(write_model(tmp_path, whole))[1] == []
    for length in range(0, len(whole) - 1, 37):
        data, problems = read_model(write_model(tmp_path, whole[:length]))
        if not problems:  # the cut fell between two fields: then the session finds out
            with pytest.raises(PolyrhythmError):
                PolicySession(data, name="it", width_px=160, height_px=120, providers=("CPUExecutionProvider",))


def external(name: str = "w") -> onnx.TensorProto:
    tensor = numpy_helper.from_array(np.zeros(4, np.float32), name)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "../secret"
    return tensor


def hidden_models() -> dict[str, onnx.ModelProto]:
    """Models with external data in every place where a tensor can be."""
    found = {}
    for place in ("initializer", "sparse", "constant", "sparse constant", "subgraph", "function", "training"):
        model = onnx.load_from_string(policy_model(steps=2))
        graph = model.graph
        sparse = onnx.SparseTensorProto(dims=[4])
        sparse.values.CopyFrom(external())
        if place == "initializer":
            graph.initializer.append(external())
        elif place == "sparse":
            graph.sparse_initializer.append(sparse)
        elif place == "constant":
            graph.node.append(helper.make_node("Constant", [], ["c"], value=external()))
        elif place == "sparse constant":
            graph.node.append(helper.make_node("Constant", [], ["c"], sparse_value=sparse))
        elif place == "subgraph":
            inner = helper.make_graph([helper.make_node("Constant", [], ["d"], value=external())], "inner", [], [])
            graph.node.append(helper.make_node("If", ["b"], ["c"], then_branch=inner, else_branch=inner))
        elif place == "function":
            node = helper.make_node("Constant", [], ["c"], value=external())
            model.functions.append(helper.make_function("x", "f", [], ["c"], [node], []))
        else:
            model.training_info.add().initialization.initializer.append(external())
        found[place] = model
    return found


@pytest.mark.parametrize("place", list(hidden_models()))
def test_external_data_is_refused_wherever_it_hides(tmp_path: Path, place: str) -> None:
    path = write_model(tmp_path, hidden_models()[place].SerializeToString())
    (problem,) = OnnxPolicy(path).problems()
    told = "'../secret'; expected a file beside it" if place == "initializer" else "other files; save it as one file"
    assert problem == f"model {path!r} keeps tensors in {told}"


def saved_with_data(folder: Path) -> str:
    """As torch exports a larger model today: weights in a file beside it."""
    folder.mkdir(exist_ok=True)
    path = folder / "policy.onnx"
    onnx.save(
        onnx.load_from_string(policy_model(steps=2)),
        path,
        save_as_external_data=True,
        location="policy.onnx.data",
        size_threshold=64,
    )
    return str(path)


def hash_of(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes() + Path(path + ".data").read_bytes()).hexdigest()


def test_weights_beside_the_model_are_taken_with_one_hash_over_both(tmp_path: Path) -> None:
    path = saved_with_data(tmp_path)
    whole = hash_of(path)
    assert OnnxPolicy(path).problems() == [
        f"model {path!r} {sentence('models.needs_sha256', file='policy.onnx.data', sha256=whole)} "
        "(cat policy.onnx policy.onnx.data | sha256sum)"
    ]
    assert OnnxPolicy(path, sha256=whole).problems() == []
    policy = OnnxPolicy(path, sha256=whole)
    policy.on_start()
    assert isinstance(policy.session, PolicySession)
    same = PolicySession(
        policy_model(steps=2), name="it", width_px=160, height_px=120, providers=("CPUExecutionProvider",)
    )
    seen = {"image": np.full((120, 160, 3), 200, np.uint8)}
    felt = Felt((0.1,) * 8)
    assert policy.session.run(seen, felt).chunk == pytest.approx(same.run(seen, felt).chunk)


@pytest.mark.parametrize("how", ["cut", "swapped"])
def test_weights_that_were_cut_or_swapped_are_refused(tmp_path: Path, how: str) -> None:
    path = saved_with_data(tmp_path)
    whole, file = hash_of(path), Path(path + ".data")
    data = file.read_bytes()
    file.write_bytes(data[:-8] if how == "cut" else bytes([data[0] ^ 1]) + data[1:])
    (problem,) = OnnxPolicy(path, sha256=whole).problems()
    assert problem == f"model {path!r} has sha256 {hash_of(path)}, expected {whole}"
    if how == "cut":
        with pytest.raises(PolyrhythmError, match="cannot be loaded"):
            OnnxPolicy(path, sha256=hash_of(path)).on_start()


def test_weights_that_are_not_there_are_named(tmp_path: Path) -> None:
    path = saved_with_data(tmp_path)
    Path(path + ".data").unlink()
    assert OnnxPolicy(path, sha256="0" * 64).problems() == [
        f"model {path!r} {sentence('models.not_beside_it', file='policy.onnx.data')}"
    ]


def test_a_model_in_one_file_is_asked_of_where_no_more_is_taken(tmp_path: Path) -> None:
    path = saved_with_data(tmp_path)
    assert read_model(path)[1] == [f"model {path!r} {sentence('models.save_as_one_file')}"]


def test_a_model_of_another_size_is_refused_with_both_shapes(model: str) -> None:
    with pytest.raises(
        PolyrhythmError, match=pattern("models.another_size", name="image", shape=r"\[1, 3, 120, 160\]")
    ):
        OnnxPolicy(model, image_width_px=320).on_start()


def test_other_inputs_and_outputs_are_refused_by_name(tmp_path: Path) -> None:
    model = onnx.load_from_string(policy_model(steps=2))
    model.graph.input[1].name = "angles"
    model.graph.node[2].input[0] = "angles"
    with pytest.raises(
        PolyrhythmError, match=pattern("models.other_inputs", inputs="angles, image", known=".*, and needs joints")
    ):
        OnnxPolicy(write_model(tmp_path, model.SerializeToString())).on_start()


def test_an_output_of_another_width_is_refused(tmp_path: Path) -> None:
    model = onnx.load_from_string(policy_model(steps=2))
    model.graph.node.append(helper.make_node("ReduceMean", ["chunk"], ["small"], keepdims=1))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("small", TensorProto.FLOAT, [1, 1, 1]))
    with pytest.raises(PolyrhythmError, match="its outputs are small"):
        OnnxPolicy(write_model(tmp_path, model.SerializeToString())).on_start()


def test_a_graph_that_the_runtime_refuses_is_a_sentence(tmp_path: Path) -> None:
    model = onnx.load_from_string(policy_model(steps=2))
    model.graph.node[0].op_type = "RunShell"
    with pytest.raises(PolyrhythmError, match="cannot be loaded"):
        OnnxPolicy(write_model(tmp_path, model.SerializeToString())).on_start()


def test_an_unknown_provider_lists_the_known_ones(model: str) -> None:
    with pytest.raises(PolyrhythmError, match=pattern("models.no_provider", provider="TPU") + ".*CPUExecutionProvider"):
        OnnxPolicy(model, providers=("TPU",)).on_start()


def test_a_provider_that_cannot_be_had_is_passed_over_for_the_next_one_and_that_is_said(
    model: str, caplog: pytest.LogCaptureFixture
) -> None:
    policy = OnnxPolicy(model, providers=("TPUExecutionProvider", "CPUExecutionProvider"))
    policy.on_start()
    assert isinstance(policy.session, PolicySession)
    said = f"model {model!r} {sentence('models.falls_back', provider='TPUExecutionProvider')}"
    assert policy.session.fallback == said
    assert said in caplog.text
    OnnxPolicy(model).on_start()
    assert caplog.text.count("cannot be had") == 1


class Cardless(onnxruntime.InferenceSession):  # type: ignore[misc]  # the library is not typed
    """The library on a machine whose graphics card does not start: it takes the CPU and says nothing."""

    def __init__(self, model: bytes, options: Any, providers: list[str]) -> None:
        super().__init__(model, options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize(
    ("providers", "fallback"),
    [
        (("CUDAExecutionProvider",), None),
        (
            ("CUDAExecutionProvider", "CPUExecutionProvider"),
            "runs on CPUExecutionProvider: CUDAExecutionProvider",
        ),
    ],
)
def test_a_card_that_does_not_start_is_no_silent_run_on_the_cpu(
    model: str, monkeypatch: pytest.MonkeyPatch, providers: tuple[str, ...], fallback: str | None
) -> None:
    monkeypatch.setattr(
        onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"]
    )
    monkeypatch.setattr(onnxruntime, "InferenceSession", Cardless)

    def session() -> PolicySession:
        data = Path(model).read_bytes()
        return PolicySession(data, name="it", width_px=160, height_px=120, providers=providers)

    if fallback is None:
        with pytest.raises(PolyrhythmError, match="it: provider 'CUDAExecutionProvider' does not start"):
            session()
    else:
        assert fallback in session().fallback


def test_what_a_model_draws_at_random_follows_the_seed() -> None:
    out = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    graph = helper.make_graph([helper.make_node("RandomNormal", [], ["x"], shape=[4])], "random", [], [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()

    def drawn(seed: int) -> list[list[float]]:
        session, _ = open_session(model, name="it", providers=("CPUExecutionProvider",), seed=seed)
        return [list(session.run(None, {})[0]) for _ in range(2)]

    first, second = drawn(1)
    assert first != second
    assert drawn(1) == [first, second]
    assert drawn(2)[0] != first
    assert drawn(0) == drawn(2**40)
