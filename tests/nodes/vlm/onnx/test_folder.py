"""What `check` and `run` say of a model's folder, and of a machine, that will not do."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from nodes.vlm.onnx.vlm import OnnxVLM
from runtime.errors import ParameterError
from tests.nodes.vlm.onnx.vlm_model import write_model
from tests.support.sentences import pattern, sentence

Spoil = Callable[[Path], object]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "vlm")
    return tmp_path / "vlm"


def missing(what: str) -> str:
    return sentence("vlm.does_not_exist", what=what)


def part(name: str) -> str:
    return f"onnx/{name}.onnx"


def model(inputs: dict[str, list[str | int | None]], kind: int = TensorProto.FLOAT) -> bytes:
    """A model with those inputs, which gives the first one back."""
    first = next(iter(inputs))
    told = [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()]
    out = helper.make_tensor_value_info("out", kind, inputs[first])
    graph = helper.make_graph([helper.make_node("Identity", [first], ["out"])], "g", told, [out])
    data: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9
    ).SerializeToString()
    return data


def put(name: str, data: bytes | str) -> Spoil:
    return lambda folder: (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)


def external(folder: Path) -> None:
    loaded = onnx.load(folder / part("embed_tokens"))
    onnx.save(loaded, folder / part("embed_tokens"), save_as_external_data=True, size_threshold=0)


def test_a_whole_folder_lacks_nothing(folder: Path) -> None:
    assert OnnxVLM(str(folder)).problems() == []


SEEN_BY_CHECK: dict[str, tuple[Spoil, str]] = {
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), missing("tokenizer.json")),
    "no config": (lambda folder: (folder / "config.json").unlink(), missing("config.json")),
    "half a config": (put("config.json", '{"model_type"'), sentence("vlm.no_json", file="config.json")),
    "a list": (put("config.json", "[]"), sentence("vlm.no_json_object", file="config.json")),
    "another family": (put("config.json", '{"model_type": "llava"}'), sentence("vlm.another_family", value="llava")),
    "another template": (
        put("chat_template.json", '{"chat_template": "[INST]"}'),
        sentence("vlm.template_ends_no_turn", ending="<end_of_utterance>"),
    ),
    "no size": (
        put("preprocessor_config.json", '{"image_mean": [1,1,1]}'),
        sentence("vlm.field_is_missing", file="preprocessor_config.json"),
    ),
    "a size of 0": (
        put(
            "preprocessor_config.json",
            json.dumps({"max_image_size": {"longest_edge": 0}, "image_mean": [0, 0, 0], "image_std": [1, 1, 1]}),
        ),
        sentence("vlm.senseless_size", edge=0, std="(1.0, 1.0, 1.0)"),
    ),
    "a part missing": (
        lambda folder: (folder / part("vision_encoder")).unlink(),
        missing(part("vision_encoder")),
    ),
    "a part of another precision": (
        lambda folder: [
            shutil.move(folder / part("embed_tokens"), folder / part(f"embed_tokens_{name}"))
            if name == "q4"
            else shutil.copy(folder / part("vision_encoder"), folder / part(f"embed_tokens_{name}"))
            for name in ("fp16", "q4")
        ],
        sentence("vlm.another_precision", file="embed_tokens.onnx", known="'fp16', 'q4'"),
    ),
    "other inputs": (
        put(part("vision_encoder"), model({"images": [1, 3, 9, 9]})),
        sentence("vlm.other_inputs", file="vision_encoder.onnx", inputs="images"),
    ),
    "other sizes": (
        put(part("vision_encoder"), model({"pixel_values": [1, 3, 9, 9]})),
        sentence(
            "vlm.another_input",
            file="vision_encoder.onnx",
            name="pixel_values",
            type="float",
            shape="[1, 3, 9, 9]",
            expected="float, float16 with 5 sizes",
        ),
    ),
    "no cache": (
        put(part("decoder_model_merged"), model({"inputs_embeds": [1, "n", 9], "attention_mask": [1, "n"]})),
        sentence("vlm.no_cache", file="decoder_model_merged.onnx", name="past_key_values.0.key"),
    ),
    "other types": (
        put(part("embed_tokens"), model({"input_ids": [1, "n"]}, TensorProto.DOUBLE)),
        sentence(
            "vlm.another_input",
            file="embed_tokens.onnx",
            name="input_ids",
            type="double",
            shape="[1, any]",
            expected="int32, int64 with 2",
        ),
    ),
    "tensors elsewhere": (external, sentence("models.save_as_one_file")),
    "no model": (put(part("decoder_model_merged"), "version https://git-lfs.github.com/spec/v1"), "is no ONNX model"),
}


@pytest.mark.parametrize("name", list(SEEN_BY_CHECK))
def test_check_says_what_is_wrong_with_the_folder_and_a_run_does_not_start(folder: Path, name: str) -> None:
    spoil, said = SEEN_BY_CHECK[name]
    spoil(folder)
    problems = OnnxVLM(str(folder)).problems()
    assert any(said in problem for problem in problems), problems
    with pytest.raises(ParameterError, match="vlm: "):
        OnnxVLM(str(folder)).on_start()


def test_a_tokenizer_that_is_none_is_refused_at_start(folder: Path) -> None:
    put("tokenizer.json", "{}")(folder)
    with pytest.raises(ParameterError, match=r"tokenizer\.json is no tokenizer"):
        OnnxVLM(str(folder)).on_start()


def test_parts_of_different_models_are_refused(folder: Path, tmp_path: Path) -> None:
    tokens = np.zeros((600, 5), np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["inputs_embeds"])],
        "g",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "n"])],
        [helper.make_tensor_value_info("inputs_embeds", TensorProto.FLOAT, [1, "n", 5])],
        [numpy_helper.from_array(tokens, "table")],
    )
    other = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (folder / part("embed_tokens")).write_bytes(other.SerializeToString())
    with pytest.raises(ParameterError, match=pattern("vlm.different_models", width=5)):
        OnnxVLM(str(folder)).on_start()


def test_a_newer_folder_says_in_another_file_how_an_image_becomes_a_tile(folder: Path) -> None:
    old = folder / "preprocessor_config.json"
    (folder / "processor_config.json").write_text(json.dumps({"image_processor": json.loads(old.read_text())}))
    old.unlink()
    assert OnnxVLM(str(folder)).problems() == []
    (folder / "processor_config.json").write_text('{"image_processor": {}}')
    (problem,) = OnnxVLM(str(folder)).problems()
    assert (
        f"{sentence('vlm.field_is_missing', file='processor_config.json')} required field `max_image_size`" in problem
    )
    (folder / "processor_config.json").write_text("{}")
    (problem,) = OnnxVLM(str(folder)).problems()
    assert problem.endswith("preprocessor_config.json does not exist")


def test_a_precision_is_found_by_its_name(folder: Path) -> None:
    for file in (folder / "onnx").glob("*.onnx"):
        shutil.copy(file, file.with_name(f"{file.stem}_q4.onnx"))
    assert OnnxVLM(str(folder), "q4").problems() == []
    assert OnnxVLM(str(folder)).problems() == [], "the plain one is taken where none is named"
    problems = OnnxVLM(str(folder), "int8").problems()
    assert len(problems) == 3
    assert sentence("vlm.another_precision", file="vision_encoder_int8.onnx", known="") in problems[0]


@pytest.mark.parametrize(
    ("folder_name", "said"),
    [("", sentence("vlm.no_folder_named")), ("/nowhere", missing("folder '/nowhere'"))],
)
def test_a_folder_that_is_none_is_named(folder_name: str, said: str) -> None:
    (problem,) = OnnxVLM(folder_name).problems()
    assert said in problem


def test_without_the_package_tokenizers_check_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "tokenizers" else find(name))
    assert OnnxVLM(str(folder)).problems() == [sentence("vlm.no_tokenizer_package")]


def test_a_card_that_is_not_there_is_told_before_the_start(folder: Path) -> None:
    (problem,) = OnnxVLM(str(folder), providers=("TPUExecutionProvider",)).problems()
    assert problem.startswith(sentence("models.no_provider", provider="TPUExecutionProvider"))


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"deadline_s": 0.0}, sentence("vlm.deadline_expected", value="0.0")),
        ({"max_objects": 41}, sentence("vlm.expected_range", name="max_objects", value=41, low=1, high=40)),
        ({"max_tokens": 0}, sentence("vlm.expected_range", name="max_tokens", value=0, low=1, high=10000)),
        ({"threads": -1}, sentence("vlm.none_or_more", name="threads", value=-1)),
        ({"providers": ()}, sentence("vlm.no_providers")),
        ({"coordinates": "metre"}, sentence("vlm.unknown_coordinates", value="metre")),
    ],
)
def test_parameters_out_of_range_are_named(parameters: dict[str, object], said: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(said)):
        OnnxVLM("x", **parameters)  # type: ignore[arg-type]  # as a launch file might
