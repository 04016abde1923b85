"""`polyrhythm policy adopt`: a LeRobot folder becomes one ONNX file for `OnnxPolicy`.

Where the folder has no exported model, LeRobot's own Python exports it, in a process of its own (`lerobot_side`), and
says what it makes of a sample; the file is kept only where it says the same.

LeRobot keeps names and shapes in config.json, and normalisation in the processors beside it (policy_preprocessor.json,
policy_postprocessor.json, with numbers in safetensors files). All of these become operations around the model, so that
what comes out takes joints and pixels and gives a chunk. Nothing of the folder is run or unpickled.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from nodes.models.onnx_file import LONGEST_FILE
from nodes.msgs import JOINTS
from nodes.policy.onnx.convention import convention_of, out_of_range
from nodes.policy.onnx.inputs import PolicyAnswer
from nodes.policy.onnx.tensors import ALL, COLUMNS, problems_of, unit_problem
from nodes.policy.onnx.training import PolicyTraining, training_of
from nodes.robot.robot_from_launch import DEFAULT, load_limits
from runtime.command_line.arguments import check_new, count
from runtime.errors import PolyrhythmError, UserError, choices
from runtime.extras import install
from runtime.operating_system.whole_file import write_whole

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, ValueInfoProto

T = TypeVar("T")

OURS = {
    "observation.state": "joints",
    "observation.images.head": "image",
    "observation.images.wrist": "wrist",
    "observation.target": "target",
    "observation.skill": "skill",
    "noise": "noise",
}
"""LeRobot's names, as `bag export --to lerobot` writes them, and those of a policy's inputs."""

WIDTHS = {"joints": len(JOINTS), "target": 3, "skill": 7}
STATE_WITH_BASE = len(JOINTS) + 3
STATS = {
    "MEAN_STD": ("mean", "std"),
    "MIN_MAX": ("min", "max"),
    "QUANTILES": ("q01", "q99"),
    "QUANTILE10": ("q10", "q90"),
}
"""Which two statistics a mode of normalisation needs."""

HARMLESS = ("to_batch_processor", "device_processor")
NORMALIZERS = ("normalizer_processor", "unnormalizer_processor")
RELATIVE, ABSOLUTE = "relative_actions_processor", "absolute_actions_processor"
LARGEST_STATS = 1 << 24
NUMBERS = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1",
}  # fmt: skip
"""Types of a safetensors file that statistics may have; of a bfloat16 these are the upper two bytes of a float32."""
OPSET = 18


class Feature(msgspec.Struct, frozen=True):
    """One input or output of LeRobot's config."""

    type: str
    shape: tuple[int, ...]


class Config(msgspec.Struct, frozen=True):
    """What is read of LeRobot's config.json."""

    type: str
    input_features: dict[str, Feature]
    output_features: dict[str, Feature]
    normalization_mapping: dict[str, str] = {}


class StepConfig(msgspec.Struct, frozen=True):
    """The settings of any step of a processor."""

    eps: float = 1e-8
    features: dict[str, Feature] = {}
    norm_map: dict[str, str] = {}
    rename_map: dict[str, str] = {}
    enabled: bool = False
    exclude_joints: tuple[str, ...] = ()
    action_names: tuple[str, ...] | None = None


class PipelineStep(msgspec.Struct, frozen=True):
    """One step of a processor."""

    registry_name: str = ""
    config: StepConfig = StepConfig()
    state_file: str = ""


class Processor(msgspec.Struct, frozen=True):
    """policy_preprocessor.json and policy_postprocessor.json."""

    steps: tuple[PipelineStep, ...] = ()


@dataclass(frozen=True, slots=True)
class Affine:
    """x * scale + offset, for the model's input or from its output."""

    scale: NDArray[np.float32]
    offset: NDArray[np.float32]


def main(argv: list[str]) -> int:
    """Write the file and say how to run it. Raises UserError where the folder cannot be adopted."""
    arguments = _parser().parse_args(argv)
    if arguments.verb == "gateway":
        from nodes.policy.onnx.lerobot_process import become_gateway

        become_gateway(arguments.python, arguments.folder, arguments.server, arguments.bind, arguments.device)
    if arguments.verb == "try":
        from nodes.policy.remote.try_server import try_server

        return try_server(arguments)
    names = OURS | dict(arguments.name)
    out: Path = arguments.out
    check_new(out)
    folder: Path = arguments.folder
    training = training_of(folder, arguments.dataset, arguments.joints, arguments.hz, dict(arguments.unit))
    if arguments.python and not arguments.model and not any(folder.glob("*.onnx")):
        model, notes = _adopt_from_lerobot(folder, arguments.python, names, training)
    else:
        model, notes = adopt(folder, _model_file(folder, arguments.model), names, training)
    write_whole(out, model)
    width_px, height_px = _image_size(model)
    wrong = problems_of(str(out), "", width_px=width_px, height_px=height_px)
    if wrong := wrong or _why_it_does_not_run(model, width_px, height_px):
        out.unlink()
        raise UserError("; ".join(wrong))
    for note in notes:
        print(f"note: {note}")
    print(f"{out}: sha256 {hashlib.sha256(model).hexdigest()}")
    print(
        "polyrhythm run laptop --set policy.use=nodes.policy.onnx.policy:OnnxPolicy "
        f"--set policy.model={out} "
        f"--set policy.image_width_px={width_px} --set policy.image_height_px={height_px}"
    )
    return 0


def _why_it_does_not_run(model: bytes, width_px: int, height_px: int) -> list[str]:
    """What ONNX Runtime says against the file, which is loaded and asked once."""
    from nodes.policy.onnx.session import PolicySession

    try:
        cpu = ("CPUExecutionProvider",)
        PolicySession(model, name="the adopted model", width_px=width_px, height_px=height_px, providers=cpu)
    except PolyrhythmError as problem:
        return [str(problem)]
    return []


def adopt(
    folder: Path, exported: Path, names: Mapping[str, str], training: PolicyTraining | None = None
) -> tuple[bytes, list[str]]:
    """The ONNX file's bytes, and what a person should know; `exported` is the model as exported. Raises UserError."""
    try:
        import onnx
    except ModuleNotFoundError as problem:
        raise UserError(f"adopting a model needs onnx: {install('nodes[adopt]')}") from problem
    training = training or PolicyTraining()
    config = _decoded(folder / "config.json", Config)
    before, after = (_processor(folder / f"policy_{which}processor.json") for which in ("pre", "post"))
    notes = list(training.notes)
    if (before is None) != (after is None):
        raise UserError(f"{folder} has one of its two processors; expected policy_preprocessor.json and the other")
    if before is None or after is None:
        if set(config.normalization_mapping.values()) - {"IDENTITY"}:
            raise UserError(
                f"{folder} was saved by a LeRobot before 0.4, with its statistics among the weights; write it anew with"
                " lerobot's migrate_policy_normalization, and adopt that"
            )
        notes.append(f"{folder} has no processors: the model is taken to normalise what it is given by itself")
    _check_size(exported)
    try:
        model = onnx.load(exported, load_external_data=False)
        _check_size(exported, *_beside(model, exported.parent))
        onnx.load_external_data_for_model(model, str(exported.parent))
        onnx.checker.check_model(model)
        if _opset_of(model) < OPSET:
            from onnx import version_converter

            notes.append(f"its opset {_opset_of(model)} is converted to {OPSET}")
            model = version_converter.convert_version(model, OPSET)
    except UserError:
        raise
    except Exception as problem:  # the library has no exception class in common
        raise UserError(f"{folder}: its model cannot be read: {str(problem)[:300]}") from problem
    action = config.output_features.get("action")
    width = action.shape[-1] if action is not None and action.shape else 0
    if width not in (len(JOINTS), COLUMNS):
        raise UserError(
            f"{folder}: its action has {width} numbers; expected {len(JOINTS)} ({', '.join(JOINTS)}), "
            f"or {COLUMNS} with the base's v and w"
        )
    if wrong := training.problem(width):
        raise UserError(f"{folder}: {wrong}")
    graph = _Graph(model, training)
    affine = _affines(folder, after, config, notes, inverse=True).get("action")
    if affine is None and before is not None and _normalises(before, "ACTION"):
        raise UserError(f"{folder}: its actions are normalised, and its postprocessor does not take that back")
    notes += _doubts(affine, training, width)
    graph.take_inputs(config, names, _affines(folder, before, config, notes, inverse=False), notes)
    graph.take_output(width, affine, _relative(before, width))
    onnx.helper.set_model_props(model, {"adopted_from": f"lerobot {config.type}", **training.metadata})
    return model.SerializeToString(), notes


def _beside(model: ModelProto, folder: Path) -> list[Path]:
    """The files in which the model keeps its weights."""
    named = {entry.value for tensor in model.graph.initializer for entry in tensor.external_data
             if entry.key == "location"}  # fmt: skip
    return [folder / name for name in sorted(named)]


def _check_size(*files: Path) -> None:
    """Raise UserError where these do not go into one ONNX file; nothing of them is read."""
    size = sum(file.stat().st_size for file in files if file.is_file())
    if size > LONGEST_FILE:
        raise UserError(
            f"{files[0]} has {size / 1e9:.1f} GB with its weights, and an ONNX file holds {LONGEST_FILE / 1e9:.1f}; "
            "serve such a policy where it was trained, and ask it by nodes.policy.remote.openpi:OpenPiPolicy"
        )


def _normalises(processor: Processor, kind: str) -> bool:
    return any(
        step.registry_name in NORMALIZERS and step.config.norm_map.get(kind, "IDENTITY") != "IDENTITY"
        for step in processor.steps
    )


def _doubts(affine: Affine | None, training: PolicyTraining, width: int) -> list[str]:
    """Whether the middle of its actions is where no joint goes: then units are missing, or wrong."""
    if affine is None or affine.offset.size != width:
        return []
    limits = load_limits(DEFAULT).joints
    middle = affine.offset.reshape(1, -1)[:, training.of_action(width)].astype(np.float64)
    convention = convention_of(training.units, limits)
    told = PolicyAnswer(middle) if convention is None else convention.ours(PolicyAnswer(middle), is_relative=False)
    why = out_of_range(told.chunk, limits)
    return [f"in the middle of its training {why}"] if why else []


def _adopt_from_lerobot(
    folder: Path, python: str, names: Mapping[str, str], training: PolicyTraining
) -> tuple[bytes, list[str]]:
    """The same, exported by LeRobot and compared with it. Raises UserError."""
    from nodes.policy.onnx.lerobot_process import as_lerobot_says, exported

    config = _decoded(folder / "config.json", Config)
    if weights := sorted(folder.glob("model*.safetensors")):
        _check_size(*weights)  # before LeRobot loads them
    affines = _affines(folder, _processor(folder / "policy_preprocessor.json"), config, [], inverse=False)
    sample = {name: _sample(feature, affines.get(name)) for name, feature in config.input_features.items()}
    for name, values in sample.items():
        if names.get(name) == "joints" and values.shape == (STATE_WITH_BASE,):
            values[training.of_state(STATE_WITH_BASE)[-3:]] = _pose(affines.get(name), training)
    with tempfile.TemporaryDirectory(prefix="polyrhythm-adopt-") as place:
        answer = exported(python, folder, sample, Path(place))
        model, notes = adopt(folder, Path(place) / "model.onnx", names, training)
    given = {names[name]: values[None] for name, values in sample.items() if name in names}
    if "joints" in given:
        given["joints"] = given["joints"][:, training.of_state(given["joints"].shape[1])[: len(JOINTS)]]
    notes.append(as_lerobot_says(model, given, answer[:, training.of_action(answer.shape[1])]))
    return model, notes


def _sample(feature: Feature, affine: Affine | None) -> NDArray[np.float32]:
    """Something that a policy may be given: an image from 0 to 1, or numbers about as large as in training."""
    generator = np.random.default_rng(7)
    if feature.type == "VISUAL":
        return generator.random(feature.shape, np.float32)
    values = generator.standard_normal(feature.shape).astype(np.float32)
    return values if affine is None else (0.3 * values - affine.offset) / affine.scale


def _pose(affine: Affine | None, training: PolicyTraining) -> NDArray[np.float32]:
    """Of the base, nothing special: what becomes 0."""
    if affine is None:
        return np.zeros(3, np.float32)
    where = training.of_state(STATE_WITH_BASE)[-3:]
    return -affine.offset.reshape(-1)[where] / affine.scale.reshape(-1)[where]


def _opset_of(model: ModelProto) -> int:
    return next((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), 0)


class _Graph:
    """A model that is being wrapped."""

    def __init__(self, model: ModelProto, training: PolicyTraining) -> None:
        from onnx import helper, numpy_helper

        self.helper, self.arrays = helper, numpy_helper
        self.graph = model.graph
        self.training = training
        self.before: list[NodeProto] = []
        self.after: list[NodeProto] = []

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """Add a constant, and return its name."""
        name = f"adopted {name}"
        self.graph.initializer.append(self.arrays.from_array(np.ascontiguousarray(value), name))
        return name

    def take_inputs(
        self, config: Config, names: Mapping[str, str], affines: Mapping[str, Affine], notes: list[str]
    ) -> None:
        """Rename and normalise each input. Raises UserError."""
        constants = {one.name for one in self.graph.initializer}
        read = {name for node in self.graph.node for name in node.input}
        plain = {_plain(theirs): theirs for theirs in (*config.input_features, *names)}
        found: list[ValueInfoProto] = []
        for one in [one for one in self.graph.input if one.name not in constants and one.name in read]:
            theirs = plain.get(_plain(one.name), one.name)
            ours = names.get(theirs)
            if ours is None:
                known = choices(names)
                raise UserError(
                    f"its input {one.name!r} is not known (known: {known}); say --name {theirs}=image or so"
                )
            sizes = [dim.dim_value or None for dim in one.type.tensor_type.shape.dim]
            kind = one.type.tensor_type.elem_type
            _check_float(one, kind)
            inner = one.name
            if ours == "joints" and sizes[-1:] == [STATE_WITH_BASE]:
                inner = self._with_base(inner, affines.get(theirs))
                notes.append("the base's pose in its state is set to the training's mean: odometry begins anywhere")
                sizes[-1] = len(JOINTS)
            elif ours in WIDTHS and sizes[-1:] != [WIDTHS[ours]]:
                raise UserError(f"its input {one.name!r} has the shape {sizes}; expected (1, {WIDTHS[ours]})")
            affine = affines.get(theirs)
            given = ours
            if ours == "joints" and inner == one.name:
                given = self._in_their_order(ours, len(JOINTS))
            if affine is not None and inner == one.name:
                self._scaled(given, inner, affine, self.before)
            elif inner == one.name:
                self.before.append(self.helper.make_node("Identity", [given], [inner]))
            sizes[0] = 1
            found.append(self.helper.make_tensor_value_info(ours, kind, sizes))
        del self.graph.input[:]
        if "joints" not in [one.name for one in found]:
            shape = [1, len(JOINTS)]
            found.append(self.helper.make_tensor_value_info("joints", 1, shape))  # every policy has it
        self.graph.input.extend(found)

    def _with_base(self, inner: str, affine: Affine | None) -> str:
        """Joints and a base's pose that is nothing special."""
        pose = _pose(affine, self.training)
        both = f"{inner} with base"
        self.before.append(
            self.helper.make_node("Concat", ["joints", self.constant("pose", pose[None])], [both], axis=1)
        )
        given = self._in_their_order(both, STATE_WITH_BASE)
        if affine is not None:
            self._scaled(given, inner, affine, self.before)
        else:
            self.before.append(self.helper.make_node("Identity", [given], [inner]))
        return both

    def _in_their_order(self, given: str, width: int) -> str:
        """The same numbers in the order of its dataset."""
        places = np.argsort(self.training.of_state(width))
        if (places == np.arange(width)).all():
            return given
        name = f"{given} in their order"
        self.before.append(
            self.helper.make_node("Gather", [given, self.constant(f"order {given}", places)], [name], axis=1)
        )
        return name

    def _scaled(self, given: str, into: str, affine: Affine, where: list[NodeProto]) -> None:
        scale, offset = self.constant(f"scale {into}", affine.scale), self.constant(f"offset {into}", affine.offset)
        where.append(self.helper.make_node("Mul", [given, scale], [f"{into} scaled"]))
        where.append(self.helper.make_node("Add", [f"{into} scaled", offset], [into]))

    def take_output(self, width: int, affine: Affine | None, relative: NDArray[np.float32] | None) -> None:
        """Make of the one output `chunk`, in numbers of the robot. Raises UserError."""
        if len(self.graph.output) != 1:
            raise UserError(
                f"its outputs are {choices(one.name for one in self.graph.output)}; expected one, the actions"
            )
        output = self.graph.output[0]
        name = output.name
        _check_float(output, output.type.tensor_type.elem_type)
        sizes = [dim.dim_value or None for dim in output.type.tensor_type.shape.dim]
        if sizes[-1:] != [width] or len(sizes) not in (2, 3):
            raise UserError(f"its output {name!r} has the shape {sizes}; expected (1, steps, {width}) or (1, {width})")
        if len(sizes) == 2:
            axes = self.constant("steps", np.array([1], np.int64))
            self.after.append(self.helper.make_node("Unsqueeze", [name, axes], [f"{name} steps"]))
            name, sizes = f"{name} steps", [1, 1, width]
        if affine is not None:
            self._scaled(name, "actions", affine, self.after)
            name = "actions"
        places = self.training.of_action(width)
        if (places != np.arange(width)).any():
            self.after.append(
                self.helper.make_node("Gather", [name, self.constant("our order", places)], ["ordered"], axis=2)
            )
            name = "ordered"
        if relative is not None and relative[places].any():
            mask, axes = (
                self.constant("mask", relative[places][: len(JOINTS)]),
                self.constant("row", np.array([1], np.int64)),
            )
            self.after.append(self.helper.make_node("Mul", ["joints", mask], ["start"]))
            self.after.append(self.helper.make_node("Unsqueeze", ["start", axes], ["start row"]))
            if width == COLUMNS:
                still = self.constant("still", np.array([0, 0, 0, 0, 0, 2], np.int64))
                self.after.append(self.helper.make_node("Pad", ["start row", still], ["whole start"]))
            start = "whole start" if width == COLUMNS else "start row"
            self.after.append(self.helper.make_node("Add", [name, start], ["absolute actions"]))
            name = "absolute actions"
        if relative is not None and relative[places][len(JOINTS) :].any():
            raise UserError("its base velocities are relative to the state; train it with these in exclude_joints")
        pads = self.constant("pads", np.array([0, 0, 0, 0, 0, COLUMNS - width], np.int64))
        self.after.append(self.helper.make_node("Pad", [name, pads], ["chunk"]))
        nodes = [*self.before, *self.graph.node, *self.after]
        del self.graph.node[:]
        self.graph.node.extend(nodes)
        kind = output.type.tensor_type.elem_type
        del self.graph.output[:]
        self.graph.output.append(self.helper.make_tensor_value_info("chunk", kind, [1, sizes[1], COLUMNS]))


def _check_float(one: ValueInfoProto, kind: int) -> None:
    if kind != 1:
        raise UserError(f"{one.name!r} is not float32; export the model with float32 inputs and outputs")


def _plain(name: str) -> str:
    """As an exporter may have written it."""
    return "".join(letter if letter.isalnum() else "_" for letter in name)


def _relative(processor: Processor | None, width: int) -> NDArray[np.float32] | None:
    """Which of the actions are the way from the state; None where none is. Raises UserError."""
    for step in processor.steps if processor is not None else ():
        if step.registry_name == RELATIVE and step.config.enabled:
            names = step.config.action_names or ()
            tokens = [token.lower() for token in step.config.exclude_joints]
            mask = np.ones(width, np.float32)
            for number, name in enumerate(names[:width]):
                mask[number] = not any(token in name.lower() for token in tokens)
            return mask
    return None


def _affines(
    folder: Path, processor: Processor | None, config: Config, notes: list[str], *, inverse: bool
) -> dict[str, Affine]:
    """By feature. Raises UserError for a step that is not known."""
    found: dict[str, Affine] = {}
    of_model = config.input_features | config.output_features
    for step in processor.steps if processor is not None else ():
        name, renames = step.registry_name, step.config.rename_map
        if name == "rename_observations_processor" and renames:
            raise UserError(f"{folder} renames {choices(renames)}; say --name for each, and empty its rename_map")
        if name in NORMALIZERS:
            stats = _stats(folder, step.state_file)
            for feature, told in step.config.features.items():
                mode = step.config.norm_map.get(told.type, "IDENTITY")
                if mode == "IDENTITY":
                    continue
                if not any(known.startswith(f"{feature}.") for known in stats):
                    if told.type == "ACTION" and inverse:
                        had = choices(sorted(stats)) if stats else "nothing"
                        raise UserError(f"{feature} is normalised by {mode} and has no statistics; the file has {had}")
                    notes.append(f"{feature} has no statistics: it is left as it is, as LeRobot does")
                else:
                    shape = of_model.get(feature, told).shape
                    low, high = _both(folder / step.state_file, feature, mode, stats, shape)
                    found[feature] = _affine(feature, mode, low, high, step.config.eps, inverse=inverse)
        elif name not in (*HARMLESS, RELATIVE, ABSOLUTE, "rename_observations_processor"):
            remedy = "a policy that reads words comes in by nodes.policy.remote.openpi:OpenPiPolicy"
            raise UserError(f"{folder} has the step {name!r}, which cannot be adopted; {remedy}")
    return found


def _both(
    file: Path, feature: str, mode: str, stats: Mapping[str, NDArray[np.float32]], shape: tuple[int, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The two statistics of a feature of that shape. Raises UserError."""
    if mode not in STATS:
        raise UserError(f"{feature} is normalised by {mode}; known: {choices(STATS)}")
    keys = [f"{feature}.{stat}" for stat in STATS[mode]]
    if lacking := [key for key in keys if key not in stats]:
        raise UserError(f"{feature} is normalised by {mode}, and its {choices(lacking)} lacks")
    wanted = (shape[0], 1, 1) if len(shape) == 3 else shape  # of an image, a number for each channel
    found = []
    for key in keys:
        values = stats[key].astype(np.float64)
        try:
            found.append(np.broadcast_to(values.reshape(-1, 1, 1) if len(shape) == 3 else values, wanted))
        except ValueError:
            raise UserError(
                f"{file}: {key} has the shape {values.shape}; expected {wanted}, since {feature} has {shape} in "
                "config.json"
            ) from None
    return found[0], found[1]


def _affine(
    feature: str, mode: str, low: NDArray[np.float64], high: NDArray[np.float64], eps: float, *, inverse: bool
) -> Affine:
    if mode == "MEAN_STD":
        centre, half = low, high if inverse else high + eps
    else:
        span = np.where(high == low, eps, high - low)
        centre, half = low + span / 2, span / 2
    scale, offset = (half, centre) if inverse else (1 / half, -centre / half)
    if not (np.isfinite(scale).all() and np.isfinite(offset).all()):
        raise UserError(f"the statistics of {feature} are not finite")
    return Affine(scale.astype(np.float32), offset.astype(np.float32))


def _stats(folder: Path, name: str) -> dict[str, NDArray[np.float32]]:
    """The numbers of a safetensors file in the folder. Raises UserError."""
    file = folder / name
    if not name or Path(name).name != name or not file.is_file():
        raise UserError(f"{folder}: its processor names the statistics {name!r}, which are not in the folder")
    if file.stat().st_size > LARGEST_STATS:
        raise UserError(f"{file} is too long for statistics")
    data = file.read_bytes()
    try:
        length = int.from_bytes(data[:8], "little")
        head = msgspec.json.decode(data[8 : 8 + length], type=dict[str, dict[str, Any]])
        found = {}
        for tensor, told in head.items():
            if tensor == "__metadata__":
                continue
            if told["dtype"] not in NUMBERS:
                raise UserError(f"{file}: {tensor} has the type {told['dtype']}; expected one of {choices(NUMBERS)}")
            begin, end = told["data_offsets"]
            numbers = np.frombuffer(data[8 + length :][begin:end], NUMBERS[told["dtype"]])
            if told["dtype"] == "BF16":
                numbers = (numbers.astype("<u4") << 16).view("<f4")
            found[tensor] = numbers.reshape(told["shape"]).astype(np.float32)
    except (ValueError, KeyError, TypeError, msgspec.MsgspecError) as problem:
        raise UserError(f"{file} is no safetensors file: {problem}") from problem
    return found


def _processor(file: Path) -> Processor | None:
    return _decoded(file, Processor) if file.exists() else None


def _decoded(file: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except OSError as problem:
        raise UserError(
            f"{file} cannot be read ({problem.strerror}); expected a folder as LeRobot saves it"
        ) from problem
    except msgspec.MsgspecError as problem:
        raise UserError(f"{file}: {problem}") from problem


def _model_file(folder: Path, name: str) -> Path:
    found = [folder / name] if name else sorted(folder.glob("*.onnx"))
    if len(found) == 1 and found[0].is_file():
        return found[0]
    if name or not found:
        what = name or "exported model (*.onnx)"
        remedy = "say --python, that of LeRobot's environment, and it exports LeRobot's safetensors"
        raise UserError(f"{folder} has no {what}; {remedy}")
    raise UserError(f"{folder} has {choices(file.name for file in found)}; say which with --model")


def _image_size(model: bytes) -> tuple[int, int]:
    import onnx

    for one in onnx.load_from_string(model).graph.input:
        if one.name == "image":
            sizes = [dim.dim_value for dim in one.type.tensor_type.shape.dim]
            return (sizes[3] or 160, sizes[2] or 120) if len(sizes) == 4 else (160, 120)
    return 160, 120


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm policy",
        description="A policy that LeRobot trained takes the seat: as one ONNX file, or in LeRobot's own server. "
        "The server of any policy is tried before a robot stands there.",
        epilog="example: polyrhythm policy adopt outputs/train/act/pretrained_model --python ~/lerobot/bin/python "
        "--out act.onnx",
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    adopting = verbs.add_parser(
        "adopt", help="make one ONNX file for nodes.policy.onnx.policy:OnnxPolicy from a folder that LeRobot trained"
    )
    adopting.add_argument("folder", type=Path, help="with config.json, the processors and the model")
    adopting.add_argument("--out", type=Path, default=Path("policy.onnx"), help="default: %(default)s")
    adopting.add_argument(
        "--model", default="", metavar="NAME", help="which ONNX file of the folder, where it has several"
    )
    adopting.add_argument(
        "--python", default="", metavar="PATH", help="of LeRobot's environment: exports the model where it has none yet"
    )
    adopting.add_argument("--name", action="append", default=[], type=_name, metavar="THEIRS=OURS", help="of an input")
    adopting.add_argument("--dataset", type=Path, metavar="DIR",
                          help="what it was trained on; default: as train_config.json has it")  # fmt: skip
    adopting.add_argument("--hz", type=_hz, help="frames per second of its training; default: the dataset's")
    adopting.add_argument("--joints", type=_joints, default=(), metavar="NAMES",
                          help="ours, in the order of its dataset, with commas; default: its own")  # fmt: skip
    adopting.add_argument("--unit", action="append", default=[], type=_unit, metavar="[JOINT=]UNIT",
                          help="degrees, percent or 'signed percent' of the range; default: rad, m")  # fmt: skip
    gateway = verbs.add_parser(
        "gateway",
        help="LeRobot's asynchronous policy server, on this machine, for nodes.policy.remote.openpi:OpenPiPolicy",
    )
    gateway.add_argument("folder", type=Path, help="with config.json, the processors and the model")
    gateway.add_argument("--python", required=True, metavar="PATH", help="of LeRobot's environment")
    gateway.add_argument("--server", default="127.0.0.1:8080", metavar="ADDRESS:PORT", help="default: %(default)s")
    gateway.add_argument("--bind", default="127.0.0.1:8000", metavar="ADDRESS:PORT", help="default: %(default)s")
    gateway.add_argument("--device", default="cpu", help="of the server; default: %(default)s")
    trying = verbs.add_parser("try", help="warm up and time the server of a policy; nothing moves")
    trying.add_argument("server", help="its address: ws://127.0.0.1:8000 of openpi, tcp://127.0.0.1:5555 of GR00T")
    trying.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="changes",
                        help="a parameter of the policy's node, as in a launch file: within_s=0.3")  # fmt: skip
    trying.add_argument("--answers", type=count, default=5, metavar="N", help="to be timed; default: %(default)s")
    trying.add_argument("--json", action="store_true", help="print what was found as JSON")
    return parser


def _name(text: str) -> tuple[str, str]:
    theirs, _, ours = text.partition("=")
    if not theirs or not ours:
        raise argparse.ArgumentTypeError(f"{text!r} is no pair; expected one like observation.images.top=image")
    return theirs, ours


def _joints(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if sorted(names[: len(JOINTS)]) != sorted(JOINTS):
        raise argparse.ArgumentTypeError(f"{text!r} are not the joints; expected {','.join(JOINTS)} in some order")
    return names


def _unit(text: str) -> tuple[str, str]:
    joint, _, unit = text.rpartition("=")
    pair = (joint or ALL, unit)
    if wrong := unit_problem(dict([pair])):
        raise argparse.ArgumentTypeError(wrong)
    return pair


def _hz(text: str) -> float:
    try:
        hz = float(text)
    except ValueError:
        hz = math.nan
    if not 0.1 <= hz <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is no rate; expected 0.1 to 1000")
    return hz
