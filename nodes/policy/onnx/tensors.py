"""The tensors that an ONNX policy may have: one table of names, shapes and types, and what of a model is not in it.

A model is given what it names, and nothing else. All inputs but `joints` may be left out; so may all outputs but
`chunk`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nodes.models.onnx_file import Tensor, declared, metadata_of, read_model_with_data
from nodes.msgs import JOINTS
from runtime.errors import UserError, choices

SKILLS = ("pick", "place", "look", "point", "nod", "shake", "hold")
"""The order of the one-hot input `skill`: pick, place, look, point, nod, shake, hold."""

COLUMNS = len(JOINTS) + 2
"""Of a chunk: joint positions, base v in m/s, base w in rad/s."""

LONGEST_HISTORY = 64
LONGEST = {"history": LONGEST_HISTORY, "previous": 256}
"""Rows of an input."""

RELATIVE = "relative"
"""The metadata `positions` of a model whose positions are the way from the joints as they are felt."""

CAMERAS = ("image", "wrist", "camera_3", "camera_4")
"""The first two call for an answer; the others are looked at beside them."""

UNITS = ("rad", "m", "degrees", "percent", "signed percent")
"""Of a model's joints; percent from 0 to 100 over the joint's range, signed percent from -100 to 100."""

ALL = "all"
"""In place of a joint's name: every joint whose unit is not said."""

ABOUT_THE_ACTION = frozenset({"target", "size", "skill", "text", "base", "elapsed"})
"""A model with one of these answers for one action; without, it knows of none."""


def known_inputs(width_px: int, height_px: int) -> dict[str, Tensor]:
    """Every input that a policy can be given, by name; the size is that of `image`."""
    joints = len(JOINTS)
    found = (
        Tensor("image", "float", (1, 3, height_px, width_px)),
        *(Tensor(camera, "float", (1, 3, None, None)) for camera in CAMERAS[1:]),
        Tensor("joints", "float", (1, joints)),
        Tensor("velocity", "float", (1, joints)),
        Tensor("effort", "float", (1, joints)),
        Tensor("grasp", "float", (1, 1)),
        Tensor("history", "float", (1, None, joints)),
        Tensor("previous", "float", (1, None, COLUMNS)),
        Tensor("frozen", "float", (1, 1)),
        Tensor("base", "float", (1, 3)),
        Tensor("elapsed", "float", (1, 1)),
        Tensor("target", "float", (1, 3)),
        Tensor("size", "float", (1, 2)),
        Tensor("skill", "float", (1, len(SKILLS))),
        Tensor("text", "int64", (1, None)),
        Tensor("noise", "float", (), is_of_any_shape=True),
        Tensor("memory", "float", (), is_of_any_shape=True),
    )
    return {tensor.name: tensor for tensor in found}


OUTPUTS = {
    "chunk": Tensor("chunk", "float", (1, None, COLUMNS)),
    "done": Tensor("done", "float", (1,)),
    "next_memory": Tensor("next_memory", "float", (), is_of_any_shape=True),
}

LARGEST_MEMORY = 1 << 16
"""Numbers that a recurrent model may keep between two answers."""


def problems(inputs: Sequence[Tensor], outputs: Sequence[Tensor], *, width_px: int, height_px: int) -> list[str]:
    """What of a model's tensors is not as in the table, in sentences that want the model's name before them."""
    known = known_inputs(width_px, height_px)
    found = [
        *_unlike(inputs, known, "input", "joints"),
        *_unlike(outputs, OUTPUTS, "output", "chunk"),
    ]
    for tensor in inputs:
        if (
            not found
            and tensor.name in (*CAMERAS[1:], "history", "previous", "noise", "memory")
            and None in tensor.shape[1:]
        ):
            found.append(f"input {tensor.name!r} is {tensor}; the model must fix its sizes")
        if not found and tensor.name in LONGEST and not 1 <= (tensor.shape[1] or 0) <= LONGEST[tensor.name]:
            what = "postures" if tensor.name == "history" else "steps"
            found.append(f"input {tensor.name!r} is {tensor}; expected 1 to {LONGEST[tensor.name]} {what}")
    names = {tensor.name for tensor in inputs}
    if not found and names & set(CAMERAS[2:]) and names.isdisjoint(CAMERAS[:2]):
        found.append(f"it sees by {choices(sorted(names & set(CAMERAS)))} alone; one of its cameras is image or wrist")
    memory = next((tensor for tensor in inputs if tensor.name == "memory"), None)
    after = next((tensor for tensor in outputs if tensor.name == "next_memory"), None)
    if not found and (memory is None) != (after is None):
        found.append("a recurrent model has the input 'memory' and the output 'next_memory'; it has one of them")
    if not found and memory is not None and not 1 <= math.prod(size or 1 for size in memory.shape) <= LARGEST_MEMORY:
        found.append(f"input 'memory' is {memory}; expected 1 to {LARGEST_MEMORY} numbers")
    return found


def problems_of(path: str, sha256: str, *, width_px: int, height_px: int) -> list[str]:
    """What speaks against a file as a policy's model, with an image of that size, in sentences; its tensors, too."""
    data, _, found = read_model_with_data(path, sha256)
    if found:
        return found
    try:
        inputs, outputs = declared(data)
        metadata = metadata_of(data)
    except ValueError as problem:
        return [f"model {path!r} is no ONNX model: {problem}"]
    wrong = problems(inputs, outputs, width_px=width_px, height_px=height_px)
    try:
        trained_of(metadata)
    except UserError as problem:
        wrong.append(str(problem))
    return [f"model {path!r}: {sentence}" for sentence in wrong]


@dataclass(frozen=True, slots=True)
class Trained:
    """What a file says of its training: seconds from step to step (0: nothing), and units by joint."""

    step_s: float = 0.0
    units: Mapping[str, str] = field(default_factory=dict)


def trained_of(metadata: Mapping[str, str]) -> Trained:
    """By the metadata `step_s`, `units` and `joints`. Raises UserError for what cannot be meant."""
    try:
        step_s = float(metadata.get("step_s", "0"))
    except ValueError:
        step_s = math.nan
    if not 0 <= step_s < math.inf or ("step_s" in metadata and not step_s):
        raise UserError(f"its metadata step_s is {metadata['step_s']!r}; expected a positive number of seconds")
    joints = tuple(name for name in metadata.get("joints", "").split(",") if name)
    if joints and joints != JOINTS:
        raise UserError(
            f"it was trained for the joints {', '.join(joints)}; expected {', '.join(JOINTS)}, in this order"
        )
    units = dict(pair.partition("=")[::2] for pair in metadata.get("units", "").split(",") if pair)
    if wrong := unit_problem(units):
        raise UserError(f"its metadata {wrong}")
    return Trained(step_s, units)


def unit_problem(units: Mapping[str, str]) -> str:
    """What is wrong with units by joint, in a sentence; "" where nothing is."""
    if unknown := sorted(set(units) - {*JOINTS, ALL}):
        return f"units names {choices(unknown)}; known: {choices([*JOINTS, ALL])}"
    if unknown := sorted(set(units.values()) - set(UNITS)):
        return f"units has {choices(unknown)}; expected {choices(UNITS)}"
    return ""


def _unlike(found: Sequence[Tensor], known: dict[str, Tensor], what: str, needed: str) -> list[str]:
    names = [tensor.name for tensor in found]
    unknown = [name for name in names if name not in known]
    if unknown or needed not in names:
        lack = "" if needed in names else f", and needs {needed}"
        return [f"its {what}s are {choices(names)}; a policy knows {choices(known)}{lack}"]
    return [
        f"{what} {tensor.name!r} is {tensor}; expected {known[tensor.name]}"
        for tensor in found
        if not known[tensor.name].fits(tensor)
    ]
