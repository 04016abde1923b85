"""`polyrhythm policy adopt`, with folders made here in LeRobot's published format; `make interop` has LeRobot's own."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from nodes.msgs import Action, Image, RobotState
from nodes.policy.onnx.adopt import main
from nodes.policy.onnx.inputs import Felt
from nodes.policy.onnx.policy import OnnxPolicy
from nodes.policy.onnx.session import PolicySession
from nodes.policy.onnx.tensors import trained_of
from nodes.stretch.limits import STRETCH_3
from runtime import Node, Publisher, Simulation, every
from runtime.errors import UserError
from tests.support.sentences import pattern, sentence
from tests.support.standing import HOME, standing

STEPS = 5
STATE_MEAN, STATE_STD = np.linspace(-1, 1, 11, dtype=np.float32), np.linspace(0.5, 2, 11, dtype=np.float32)
IMAGE_MEAN, IMAGE_STD = np.array([0.5, 0.4, 0.3], np.float32), np.array([0.2, 0.3, 0.4], np.float32)
RANGES = np.array(
    [*((joint.lowest, joint.highest) for joint in STRETCH_3.joints), (-0.3, 0.3), (-1.0, 1.0)], np.float32
)
MIDDLE, SPAN = RANGES.mean(1), RANGES[:, 1] - RANGES[:, 0]
ACTION_MIN, ACTION_MAX = MIDDLE - np.float32(0.05) * SPAN, MIDDLE + np.float32(0.1) * SPAN  # where a robot's joints go
BY_STATE = (np.arange(110, dtype=np.float32).reshape(11, 10) % 7 - 3) / 20
BY_COLOUR = np.full((3, 10), 0.01, np.float32)


def exported(state: str = "observation.state", width: int = 11, actions: int = 10) -> bytes:
    """(1, steps, actions): the state and the mean colour, each times its weights."""
    nodes = [
        helper.make_node("MatMul", [state, "by state"], ["from state"]),
        helper.make_node("ReduceMean", ["observation.images.head", "pixels"], ["colour"], keepdims=0),
        helper.make_node("MatMul", ["colour", "by colour"], ["from colour"]),
        helper.make_node("Add", ["from state", "from colour"], ["row"]),
        helper.make_node("Unsqueeze", ["row", "one"], ["one row"]),
        helper.make_node("Expand", ["one row", "shape"], ["action"]),
    ]
    constants: dict[str, NDArray[Any]] = {
        "by state": BY_STATE[:width, :actions],
        "by colour": BY_COLOUR[:, :actions],
        "pixels": np.array([2, 3], np.int64),
        "one": np.array([1], np.int64),
        "shape": np.array([1, STEPS, actions], np.int64),
    }
    graph = helper.make_graph(
        nodes,
        "act",
        [
            helper.make_tensor_value_info(state, TensorProto.FLOAT, ["batch", width]),
            helper.make_tensor_value_info("observation.images.head", TensorProto.FLOAT, ["batch", 3, 24, 32]),
        ],
        [helper.make_tensor_value_info("action", TensorProto.FLOAT, ["batch", STEPS, actions])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    data: bytes = model.SerializeToString()
    return data


def safetensors(tensors: Mapping[str, NDArray[Any]], kind: str = "F32") -> bytes:
    head, body = {}, b""
    for name, value in tensors.items():
        offsets = [len(body), len(body) + value.nbytes]
        head[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": offsets}
        body += value.tobytes()
    told = json.dumps(head).encode()
    return struct.pack("<Q", len(told)) + told + body


def trained(
    folder: Path, *, model: bytes | None = None, steps: list[dict[str, Any]] | None = None, actions: int = 10
) -> Path:
    """As LeRobot 0.4 and newer save a policy, with an exported model beside it."""
    features = {
        "observation.state": {"type": "STATE", "shape": [11]},
        "observation.images.head": {"type": "VISUAL", "shape": [3, 24, 32]},
        "action": {"type": "ACTION", "shape": [actions]},
    }
    of_action = {"action": features["action"]}
    of_input = {name: feature for name, feature in features.items() if name != "action"}
    config = {"type": "act", "input_features": of_input, "output_features": of_action, "chunk_size": STEPS}
    norm_map = {"VISUAL": "MEAN_STD", "STATE": "MEAN_STD", "ACTION": "MIN_MAX"}
    stats = {
        "observation.state.mean": STATE_MEAN,
        "observation.state.std": STATE_STD,
        "observation.images.head.mean": IMAGE_MEAN.reshape(3, 1, 1),
        "observation.images.head.std": IMAGE_STD.reshape(3, 1, 1),
        "action.min": ACTION_MIN[:actions],
        "action.max": ACTION_MAX[:actions],
    }
    name = "policy_preprocessor_step_3_normalizer_processor.safetensors"
    settings = {"eps": 1e-8, "features": features, "norm_map": norm_map}
    before = [
        {"registry_name": "rename_observations_processor", "config": {"rename_map": {}}},
        {"registry_name": "to_batch_processor", "config": {}},
        {"registry_name": "device_processor", "config": {"device": "cuda", "float_dtype": None}},
        *(steps or []),
        {"registry_name": "normalizer_processor", "config": settings, "state_file": name},
    ]
    after = [
        {
            "registry_name": "unnormalizer_processor",
            "config": {**settings, "features": of_action},
            "state_file": name,
        },
        {"registry_name": "device_processor", "config": {"device": "cpu", "float_dtype": None}},
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "policy_preprocessor.json").write_text(json.dumps({"name": "policy_preprocessor", "steps": before}))
    (folder / "policy_postprocessor.json").write_text(json.dumps({"name": "policy_postprocessor", "steps": after}))
    (folder / name).write_bytes(safetensors(stats))
    (folder / "model.onnx").write_bytes(model or exported(actions=actions))
    return folder


def expected(joints: tuple[float, ...], colour: float, actions: int = 10) -> NDArray[np.float64]:
    """LeRobot's own arithmetic, in numpy: normalise, the model, undo."""
    state = np.array([*joints, *STATE_MEAN[8:]])
    seen = (np.full(3, colour) - IMAGE_MEAN) / (IMAGE_STD + 1e-8)
    row = ((state - STATE_MEAN) / (STATE_STD + 1e-8)) @ BY_STATE + seen @ BY_COLOUR
    found: NDArray[np.float64] = (row[:actions] + 1) / 2 * (ACTION_MAX - ACTION_MIN)[:actions] + ACTION_MIN[:actions]
    return found


def adopted(folder: Path, tmp_path: Path, *more: str) -> Path:
    out = tmp_path / "adopted.onnx"
    assert main(["adopt", str(folder), "--out", str(out), *more]) == 0
    return out


def chunk(file: Path, colour: int = 255) -> NDArray[np.float64]:
    session = PolicySession(
        file.read_bytes(), name="it", width_px=32, height_px=24, providers=("CPUExecutionProvider",)
    )
    return session.run({"image": np.full((24, 32, 3), colour, np.uint8)}, Felt(HOME)).chunk


def test_what_comes_out_is_what_lerobot_s_processors_and_the_model_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = chunk(adopted(trained(tmp_path / "act"), tmp_path, "--hz", "10"))
    assert found.shape == (STEPS, 10)
    for row in found:
        assert row == pytest.approx(expected(HOME, 1.0), abs=1e-5)
    said = capsys.readouterr().out
    assert sentence("policy.pose_is_the_mean") in said
    assert "--set policy.image_width_px=32 --set policy.image_height_px=24" in said


def test_actions_of_the_joints_alone_leave_the_base_where_it_is(tmp_path: Path) -> None:
    found = chunk(adopted(trained(tmp_path / "act", actions=8), tmp_path))
    assert found[0, :8] == pytest.approx(expected(HOME, 1.0, 8), abs=1e-5)
    assert (found[:, 8:] == 0.0).all()


def test_actions_relative_to_the_state_are_counted_from_the_joints(tmp_path: Path) -> None:
    names = ["lift", "arm", "wrist_yaw", "wrist_pitch", "wrist_roll", "gripper", "head_pan", "head_tilt", "base_v"]
    settings = {"enabled": True, "exclude_joints": ["gripper", "base"], "action_names": [*names, "base_w"]}
    step = {"registry_name": "relative_actions_processor", "config": settings}
    found = chunk(adopted(trained(tmp_path / "act", steps=[step]), tmp_path))
    start = np.array([*HOME, 0.0, 0.0])
    start[5] = 0.0
    assert found[0] == pytest.approx(expected(HOME, 1.0) + start, abs=1e-5)
    settings["exclude_joints"] = []
    with pytest.raises(UserError, match=pattern("policy.relative_velocities")):
        adopted(trained(tmp_path / "other", steps=[step]), tmp_path / "other")


def test_an_exporter_s_names_are_understood_and_others_are_given_by_hand(tmp_path: Path) -> None:
    folder = trained(tmp_path / "act", model=exported("observation_state"))
    assert chunk(adopted(folder, tmp_path))[0] == pytest.approx(expected(HOME, 1.0), abs=1e-5)
    folder = trained(tmp_path / "named", model=exported("proprio"))
    with pytest.raises(UserError, match="its input 'proprio' is not known"):
        adopted(folder, folder)
    assert chunk(adopted(folder, folder, "--name", "proprio=joints")).shape == (STEPS, 10)


def beside_its_dataset(folder: Path, state: list[str], action: list[str], fps: float = 25) -> None:
    """As LeRobot's training leaves it: the policy names the dataset, which names the numbers."""
    dataset = folder.parent / "dataset"
    features = {"observation.state": {"names": {"motors": state}}, "action": {"names": action}}
    (dataset / "meta").mkdir(parents=True)
    (dataset / "meta" / "info.json").write_text(json.dumps({"fps": fps, "features": features}))
    told = {"dataset": {"repo_id": "local/mine", "root": str(dataset)}}
    (folder / "train_config.json").write_text(json.dumps(told))


def test_rate_order_and_units_come_from_its_dataset_and_travel_with_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = trained(tmp_path / "act")
    turned = ["lift", "arm", "head_tilt", "head_pan", "gripper", "wrist_roll", "wrist_pitch", "wrist_yaw"]
    action = [*(f"{name}.pos" for name in turned), "base_v", "base_w"]
    beside_its_dataset(folder, [*turned, "base_x", "base_y", "base_heading"], action)
    file = adopted(folder, tmp_path, "--unit", "wrist_yaw=degrees")
    order = [0, 1, 7, 6, 5, 4, 3, 2]
    theirs = expected(tuple(HOME[place] for place in order), 1.0)
    assert chunk(file)[0, :8] == pytest.approx(theirs[:8][order], abs=1e-5)
    assert chunk(file)[0, 8:] == pytest.approx(theirs[8:], abs=1e-5)
    told = trained_of({one.key: one.value for one in onnx.load(file).metadata_props})
    assert (told.step_s, told.units) == (0.04, {"wrist_yaw": "degrees"})
    assert pattern("policy.order_is_not_known") not in capsys.readouterr().out


def test_the_joints_of_another_robot_are_refused_and_may_be_named_by_hand(tmp_path: Path) -> None:
    folder = trained(tmp_path / "act")
    beside_its_dataset(folder, ["shoulder_pan.pos", "elbow.pos"], ["shoulder_pan.pos", "elbow.pos"])
    with pytest.raises(UserError, match=pattern("policy.names_other_joints", names="shoulder_pan, elbow")):
        adopted(folder, tmp_path)
    named = ",".join(["lift", "arm", "wrist_yaw", "wrist_pitch", "wrist_roll", "gripper", "head_pan", "head_tilt"])
    assert chunk(adopted(folder, tmp_path, "--joints", named))[0] == pytest.approx(expected(HOME, 1.0), abs=1e-5)


class Robot(Node):
    """Stands, and sees grey."""

    state = Publisher(RobotState, "robot/state")
    image = Publisher(Image, "head/image")

    @every(hz=20)
    def live(self) -> None:
        now_ns = self.clock.now_ns()
        self.state.publish(standing(now_ns))
        self.image.publish(Image(camera="head", captured_ns=now_ns, rgb=np.full((48, 64, 3), 128, np.uint8)))


def test_it_takes_the_policy_s_seat_without_an_edit(tmp_path: Path) -> None:
    file = adopted(trained(tmp_path / "act"), tmp_path)
    sim = Simulation(Robot(), OnnxPolicy(str(file), image_width_px=32, image_height_px=24))
    commands = sim.record(OnnxPolicy.command)
    sim.publish("robot/state", standing(0))
    sim.publish("action", Action(id="a1", skill="nod"))
    sim.run(seconds=1.0)
    assert commands[-1].position == pytest.approx(expected(HOME, 128 / 255)[:8], abs=1e-3)


def with_statistics(folder: Path, kind: str = "F32", **changed: NDArray[np.float32]) -> None:
    """Write the statistics anew: some changed, all of that type."""
    stats = {
        "observation.state.mean": STATE_MEAN, "observation.state.std": STATE_STD,
        "action.min": ACTION_MIN, "action.max": ACTION_MAX,
    } | {name.replace("_", "."): value for name, value in changed.items()}  # fmt: skip
    packed: dict[str, NDArray[Any]] = {}
    for name, value in stats.items():
        floats = value.astype("<f4")
        packed[name] = (
            (floats.view("<u4") >> 16).astype("<u2")
            if kind == "BF16"
            else floats.astype({"F16": "<f2"}.get(kind, "<f4"))
        )
    next(folder.glob("*.safetensors")).write_bytes(safetensors(packed, kind))


def saved_before_processors(folder: Path) -> None:
    for file in folder.glob("policy_*processor.json"):
        file.unlink()
    config = json.loads((folder / "config.json").read_text())
    config["normalization_mapping"] = {"STATE": "MEAN_STD", "ACTION": "MIN_MAX"}
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("kind", ["BF16", "F16"])
def test_statistics_of_half_precision_are_taken(tmp_path: Path, kind: str) -> None:
    folder = trained(tmp_path / "act")
    with_statistics(folder, kind)
    halved = chunk(adopted(folder, tmp_path))
    with_statistics(folder)
    (tmp_path / "adopted.onnx").unlink()
    assert halved == pytest.approx(chunk(adopted(folder, tmp_path)), abs=0.05)
    assert np.ptp(halved) > 0.2


@pytest.mark.parametrize(
    ("break_it", "why"),
    [
        (lambda folder: (folder / "config.json").unlink(), "cannot be read"),
        (lambda folder: (folder / "config.json").write_text("{}"), "missing required field `type`"),
        (lambda folder: (folder / "model.onnx").unlink(), sentence("policy.lerobots_python")),
        (lambda folder: (folder / "model.onnx").write_bytes(b"PK"), sentence("policy.model_is_unreadable")),
        (lambda folder: (folder / "b.onnx").write_bytes(b""), sentence("policy.say_which_model")),
        (lambda folder: next(folder.glob("*.safetensors")).unlink(), sentence("policy.not_in_the_folder")),
        (lambda folder: next(folder.glob("*.safetensors")).write_bytes(b"cut"), sentence("policy.no_safetensors")),
        (lambda folder: next(folder.glob("*.safetensors")).write_bytes(safetensors({})), "has no statistics"),
        (
            lambda folder: with_statistics(folder, action_min=ACTION_MIN[:6]),
            pattern("policy.statistics_of_wrong_width"),
        ),
        (
            lambda folder: with_statistics(folder, action_min=ACTION_MIN[:6], action_max=ACTION_MAX[:6]),
            pattern("policy.statistics_of_wrong_width"),
        ),
        (
            lambda folder: with_statistics(
                folder, observation_images_head_mean=IMAGE_MEAN[:2], observation_images_head_std=IMAGE_STD[:2]
            ),
            pattern("policy.statistics_of_other_width"),
        ),
        (lambda folder: saved_before_processors(folder), sentence("policy.before_processors")),
    ],
)
def test_a_folder_that_cannot_be_adopted_is_told_in_a_sentence(tmp_path: Path, break_it: Any, why: str) -> None:
    folder = trained(tmp_path / "act")
    break_it(folder)
    with pytest.raises(UserError, match=why):
        adopted(folder, tmp_path)
    assert not (tmp_path / "adopted.onnx").exists()


def test_steps_and_shapes_that_are_not_known_are_refused(tmp_path: Path) -> None:
    step = {"registry_name": "tokenizer_processor", "config": {}}
    with pytest.raises(
        UserError, match=f"{pattern('policy.cannot_be_adopted', step='tokenizer_processor')} .*OpenPiPolicy"
    ):
        adopted(trained(tmp_path / "words", steps=[step]), tmp_path)
    with pytest.raises(UserError, match="its action has 6 numbers; expected 8"):
        adopted(trained(tmp_path / "six", actions=6), tmp_path)
    with pytest.raises(UserError, match=r"'observation\.state' has the shape \[None, 9\]; expected \(1, 8\)"):
        adopted(trained(tmp_path / "nine", model=exported(width=9)), tmp_path)
    old = onnx.load_from_string(exported())
    old.opset_import[0].version = 13
    with pytest.raises(UserError, match=r"opset 13|cannot be read"):
        adopted(trained(tmp_path / "old", model=old.SerializeToString()), tmp_path)


def lerobot_python(folder: Path, off: float = 0.0) -> Path:
    """A stand-in for LeRobot's Python: it "exports" these tests' model, and answers the sample by their oracle."""
    (folder / "export.onnx_").write_bytes(exported())
    oracle = folder / "oracle.npz"
    np.savez(oracle, by_state=BY_STATE, by_colour=BY_COLOUR, low=ACTION_MIN, high=ACTION_MAX, mean=IMAGE_MEAN)
    code = f"""#!{sys.executable}
import sys
import numpy as np
folder, sample, out = sys.argv[3:]
seen, of = np.load(sample), np.load({str(oracle)!r})
open(out + "/model.onnx", "wb").write(open({str(folder / "export.onnx_")!r}, "rb").read())
state = (seen["observation.state"] - {STATE_MEAN.tolist()}) / {STATE_STD.tolist()}
colour = (seen["observation.images.head"].mean((1, 2)) - of["mean"]) / {IMAGE_STD.tolist()}
row = (state @ of["by_state"] + colour @ of["by_colour"] + 1) / 2 * (of["high"] - of["low"]) + of["low"]
np.save(out + "/answer.npy", np.tile(row, ({STEPS}, 1)) + {off})
"""
    python = folder / "python"
    python.write_text(code)
    python.chmod(0o755)
    return python


def test_lerobot_exports_what_it_saved_and_the_file_is_kept_where_it_says_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = trained(tmp_path / "act")
    (folder / "model.onnx").unlink()
    file = adopted(folder, tmp_path, "--python", str(lerobot_python(tmp_path)))
    assert chunk(file)[0] == pytest.approx(expected(HOME, 1.0), abs=1e-5)
    assert sentence("policy.compared_with_lerobot") in capsys.readouterr().out
    file.unlink()
    with pytest.raises(UserError, match=pattern("policy.is_off", off=r"0\.01")):
        adopted(folder, tmp_path, "--python", str(lerobot_python(tmp_path, off=0.01)))
    assert not file.exists()


def test_a_python_named_by_a_path_from_here_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = trained(tmp_path / "act")
    (folder / "model.onnx").unlink()
    lerobot_python(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert adopted(folder, tmp_path, "--python", "./python").exists()


def test_a_python_without_lerobot_is_told_what_to_install(tmp_path: Path) -> None:
    folder = trained(tmp_path / "act")
    (folder / "model.onnx").unlink()
    with pytest.raises(
        UserError, match=f"{pattern('policy.lerobot_exports_not')} .*No module named .*-m pip install 'lerobot==0.4.4'"
    ):
        adopted(folder, tmp_path, "--python", sys.executable)
    with pytest.raises(UserError, match="cannot be started"):
        adopted(folder, tmp_path, "--python", str(tmp_path / "none"))
    with pytest.raises(UserError, match=r"has no config\.json"):
        main(["gateway", str(tmp_path), "--python", sys.executable])


def test_a_model_of_forty_gigabytes_is_refused_and_not_read(tmp_path: Path) -> None:
    folder = trained(tmp_path / "act")
    with next(folder.glob("*.onnx")).open("r+b") as file:
        file.truncate(40_000_000_000)  # a hole: it takes no room
    with pytest.raises(UserError, match=pattern("policy.gigabytes", size="40.0")):
        adopted(folder, tmp_path)


def test_an_input_that_the_model_does_not_read_is_no_input(tmp_path: Path) -> None:
    model = onnx.load_from_string(exported())
    model.graph.input.append(helper.make_tensor_value_info("observation.skill", TensorProto.FLOAT, [1, 7]))
    file = adopted(trained(tmp_path / "act", model=model.SerializeToString()), tmp_path)
    assert [one.name for one in onnx.load(file).graph.input] == ["joints", "image"]


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    folder = trained(tmp_path / "act")
    file = adopted(folder, tmp_path)
    with pytest.raises(UserError, match="is there already"):
        main(["adopt", str(folder), "--out", str(file)])
