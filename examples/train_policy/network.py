"""The network of the shipped policy: what it is made of, how it learns, and the ONNX file that it becomes.

What is felt goes in as it is and as distances to landmarks (the target from the gripper, the ends of the joints' ways)
at three scales, since a base that is 6 mm off and one that is 1 m off call for different things. Each number of the
chunk is a mixture of affine functions of what is felt, which hits a joint's goal to the millimetre; the network says
which of them counts now.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from nodes.policy.onnx.tensors import COLUMNS
from nodes.policy.skill_phases import BELOW_TOP_M, GRASP_ABOVE_BOTTOM_M
from nodes.policy.stretch_motion import OPEN_M, travel_lift_m
from nodes.stretch.kinematics import (
    ARM,
    ARM_Z_M,
    DOWN_RAD,
    GRASP_REACH_M,
    GRIPPER,
    HEAD_PAN,
    HEAD_TILT,
    HEAD_Z_M,
    LIFT,
    MAST_XY_M,
    WRIST_DROP_M,
    WRIST_OUT_M,
    WRIST_PITCH,
    WRIST_YAW,
)

INPUTS = {"joints": 8, "velocity": 8, "grasp": 1, "target": 3, "size": 2, "skill": 7}
FELT = sum(INPUTS.values())
STEPS, EXPERTS, WIDTH = 6, 3, 128
TARGET, HEIGHT = 17, 21  # where these begin in a row of what is felt
SCALES = (100.0, 25.0, 6.0)  # per m or rad
AT_LEAST_M = 0.05
TOLERANCE = (0.01, 0.01, 0.1, 0.1, 0.1, 0.01, 0.1, 0.1, 0.02, 0.05)
"""An error of this much in a column counts as 1."""


def landmarks() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Distances as an affine map (FELT, n), (n,) of what is felt."""
    rows: list[tuple[dict[int, float], float]] = [
        ({TARGET: 1.0}, 0.0),  # how far to drive
        ({TARGET + 1: -1.0, ARM: -1.0}, -WRIST_OUT_M),  # to reach
        ({TARGET + 2: 1.0, HEIGHT: 0.5, LIFT: -1.0}, WRIST_DROP_M + GRASP_REACH_M - ARM_Z_M - BELOW_TOP_M),
        ({TARGET + 2: 1.0, HEIGHT: -0.5, LIFT: -1.0}, WRIST_DROP_M + GRASP_REACH_M - ARM_Z_M + GRASP_ABOVE_BOTTOM_M),
        ({LIFT: 1.0}, -travel_lift_m(0.68, None)),
        ({ARM: 1.0}, -0.03),
        ({WRIST_YAW: 1.0}, -2.3),
        ({WRIST_YAW: 1.0}, 0.0),
        ({WRIST_PITCH: 1.0}, -DOWN_RAD),
        ({GRIPPER: 1.0}, 0.02 - OPEN_M),
        ({GRIPPER: 1.0}, -0.02),
        ({8 + LIFT: 0.2}, 0.0),
        ({8 + GRIPPER: 0.2}, 0.0),
        ({8 + HEAD_PAN: 0.1}, 0.0),
        ({8 + HEAD_TILT: 0.1}, 0.0),
    ]
    by = np.zeros((FELT, len(rows)), np.float32)
    for column, (parts, _) in enumerate(rows):
        for row, weight in parts.items():
            by[row, column] = weight
    return by, np.array([offset for _, offset in rows], np.float32)


def gaze() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """What the head's goal is made of, as such a map: target from the mast ahead, right and up; pan, tilt."""
    by = np.zeros((FELT, 5), np.float32)
    by[TARGET, 0], by[TARGET + 1, 1], by[TARGET + 2, 2], by[HEAD_PAN, 3], by[HEAD_TILT, 4] = 1, -1, 1, 1, 1
    return by, np.array([-MAST_XY_M[0], MAST_XY_M[1], -HEAD_Z_M, np.pi / 2, 0.0], np.float32)


class Pupil(nn.Module):  # type: ignore[misc]  # torch is not there where types are checked
    """From what is felt (n, FELT) to chunks (n, STEPS, COLUMNS) and the logits of done (n,)."""

    def __init__(self, mean: NDArray[np.float32], deviation: NDArray[np.float32]) -> None:
        super().__init__()
        by, offset = landmarks()
        eye, eye_offset = gaze()
        known = {"mean": mean, "scale": 1 / deviation, "by": by, "offset": offset, "eye": eye, "eye_offset": eye_offset}
        for name, value in known.items():
            self.register_buffer(name, torch.tensor(value))
        features = FELT + len(SCALES) * (by.shape[1] + 2)
        self.first, self.second = nn.Linear(features, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.choice = nn.Linear(WIDTH, STEPS * COLUMNS * EXPERTS)
        self.affine = nn.Linear(FELT, COLUMNS * EXPERTS)
        self.speed = nn.Linear(WIDTH, STEPS)
        self.done = nn.Linear(WIDTH, 1)
        with torch.no_grad():
            self.affine.weight.mul_(0.1)
            self.affine.bias.zero_()
            for joint in range(8):  # one of the functions begins as "stay"
                self.affine.weight[joint * EXPERTS, joint] += float(deviation[joint])
                self.affine.bias[joint * EXPERTS : (joint + 1) * EXPERTS] = float(mean[joint])

    def forward(self, felt: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        usual = (felt - self.mean) * self.scale
        ahead, right, up, pan, tilt = (felt @ self.eye + self.eye_offset).split(1, 1)
        right = right.clamp(min=AT_LEAST_M)
        off_pan = pan - torch.atan(ahead / right)
        off_tilt = tilt - torch.atan(up / torch.sqrt(ahead * ahead + right * right))
        far = torch.cat([felt @ self.by + self.offset, off_pan, off_tilt], 1)
        hidden = torch.cat([usual, *(torch.tanh(far * scale) for scale in SCALES)], 1)
        hidden = torch.relu(self.second(torch.relu(self.first(hidden))))
        weight = torch.softmax(self.choice(hidden).view(-1, STEPS, COLUMNS, EXPERTS), 3)
        mixed = (weight * self.affine(usual).view(-1, 1, COLUMNS, EXPERTS)).sum(3)
        driven = torch.zeros(COLUMNS)
        driven[8] = 1.0
        return mixed + self.speed(hidden).unsqueeze(2) * driven, self.done(hidden)[:, 0]


def chunks(wanted: NDArray[np.float32], runs: NDArray[np.int64]) -> NDArray[np.float32]:
    """What was wanted at each tick and the next ones (n, STEPS, COLUMNS), to the end of the run."""
    ends = np.searchsorted(np.flatnonzero(np.diff(runs)), np.arange(len(runs)))
    lasts = np.append(np.flatnonzero(np.diff(runs)), len(runs) - 1)[ends]
    ahead = np.minimum(np.arange(len(runs))[:, None] + np.arange(STEPS), lasts[:, None])
    return wanted[ahead, :COLUMNS]


def learn(
    felt: NDArray[np.float32], wanted: NDArray[np.float32], runs: NDArray[np.int64],
    *, epochs: int, before: Pupil | None = None, seed: int = 0,
) -> tuple[Pupil, float]:  # fmt: skip
    """A pupil that has gone through the rows so many times, from `before` on, and its loss in the end."""
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    pupil = before or Pupil(felt.mean(0), np.maximum(felt.std(0), 0.05))
    seen, goals = torch.tensor(felt), torch.tensor(chunks(wanted, runs))
    done, tolerance = torch.tensor(wanted[:, COLUMNS]), torch.tensor(TOLERANCE)
    batch = 1024
    steps = max(1, epochs * (len(seen) // batch))
    optimiser = torch.optim.AdamW(pupil.parameters(), lr=2e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=steps, pct_start=0.1)
    recent: list[float] = []
    for number in range(steps):
        if number % max(1, len(seen) // batch) == 0:
            order = torch.randperm(len(seen), generator=generator)
        at = (number % max(1, len(seen) // batch)) * batch
        rows = order[at : at + batch]
        chunk, logit = pupil(seen[rows])
        off = (chunk - goals[rows]) / tolerance
        loss = nn.functional.smooth_l1_loss(off, torch.zeros_like(off)) + 2.0 * (
            nn.functional.binary_cross_entropy_with_logits(logit, done[rows])
        )
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(pupil.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        recent = [*recent[-200:], float(loss.detach())]
    return pupil, float(np.mean(recent))


def as_onnx(pupil: Pupil, notes: dict[str, str]) -> bytes:
    """The pupil as one ONNX file, with the notes as its metadata."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    held: dict[str, NDArray[Any]] = {
        "mean": _array(pupil.mean), "scale": _array(pupil.scale),
        "by": _array(pupil.by), "offset": _array(pupil.offset),
        "eye": _array(pupil.eye), "eye offset": _array(pupil.eye_offset), "at least": np.array(AT_LEAST_M, np.float32),
        "choices": np.array([-1, STEPS, COLUMNS, EXPERTS], np.int64),
        "options": np.array([-1, 1, COLUMNS, EXPERTS], np.int64),
        "last": np.array([3], np.int64), "two": np.array([2], np.int64), "one number": np.array([1], np.int64),
        "driven": np.array([0.0] * 8 + [1.0, 0.0], np.float32),
    }  # fmt: skip
    nodes = [
        helper.make_node("Concat", list(INPUTS), ["felt"], axis=1),
        helper.make_node("Sub", ["felt", "mean"], ["off"]),
        helper.make_node("Mul", ["off", "scale"], ["usual"]),
        helper.make_node("Gemm", ["felt", "by", "offset"], ["from landmarks"]),
        helper.make_node("Gemm", ["felt", "eye", "eye offset"], ["gaze"]),
        helper.make_node("Split", ["gaze"], ["ahead", "any right", "up", "pan", "tilt"], axis=1, num_outputs=5),
        helper.make_node("Max", ["any right", "at least"], ["right"]),
        helper.make_node("Div", ["ahead", "right"], ["pan tangent"]),
        helper.make_node("Atan", ["pan tangent"], ["wanted pan"]),
        helper.make_node("Sub", ["pan", "wanted pan"], ["off pan"]),
        helper.make_node("Mul", ["ahead", "ahead"], ["ahead squared"]),
        helper.make_node("Mul", ["right", "right"], ["right squared"]),
        helper.make_node("Add", ["ahead squared", "right squared"], ["away squared"]),
        helper.make_node("Sqrt", ["away squared"], ["away"]),
        helper.make_node("Div", ["up", "away"], ["tilt tangent"]),
        helper.make_node("Atan", ["tilt tangent"], ["wanted tilt"]),
        helper.make_node("Sub", ["tilt", "wanted tilt"], ["off tilt"]),
        helper.make_node("Concat", ["from landmarks", "off pan", "off tilt"], ["far"], axis=1),
    ]
    for number, scale in enumerate(SCALES):
        held[f"scale {number}"] = np.array(scale, np.float32)
        nodes += [
            helper.make_node("Mul", ["far", f"scale {number}"], [f"far {number}"]),
            helper.make_node("Tanh", [f"far {number}"], [f"near {number}"]),
        ]
    near = [f"near {number}" for number in range(len(SCALES))]
    nodes.append(helper.make_node("Concat", ["usual", *near], ["features"], axis=1))

    def linear(name: str, source: str) -> None:
        layer = getattr(pupil, name)
        held[f"{name} weight"], held[f"{name} bias"] = _array(layer.weight), _array(layer.bias)
        nodes.append(helper.make_node("Gemm", [source, f"{name} weight", f"{name} bias"], [name], transB=1))

    linear("first", "features")
    nodes.append(helper.make_node("Relu", ["first"], ["first on"]))
    linear("second", "first on")
    nodes.append(helper.make_node("Relu", ["second"], ["hidden"]))
    for name, source in (("choice", "hidden"), ("affine", "usual"), ("speed", "hidden")):
        linear(name, source)
    held["done weight"], held["done bias"] = _array(pupil.done.weight), _array(pupil.done.bias)
    nodes += [
        helper.make_node("Reshape", ["choice", "choices"], ["shaped choice"]),
        helper.make_node("Softmax", ["shaped choice"], ["weight"], axis=3),
        helper.make_node("Reshape", ["affine", "options"], ["shaped affine"]),
        helper.make_node("Mul", ["weight", "shaped affine"], ["parts"]),
        helper.make_node("ReduceSum", ["parts", "last"], ["mixed"], keepdims=0),
        helper.make_node("Unsqueeze", ["speed", "two"], ["speeds"]),
        helper.make_node("Mul", ["speeds", "driven"], ["driving"]),
        helper.make_node("Add", ["mixed", "driving"], ["chunk"]),
        helper.make_node("Gemm", ["hidden", "done weight", "done bias"], ["logit"], transB=1),
        helper.make_node("Sigmoid", ["logit"], ["sure"]),
        helper.make_node("Reshape", ["sure", "one number"], ["done"]),
    ]
    graph = helper.make_graph(
        nodes,
        "clear-table",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size]) for name, size in INPUTS.items()],
        [
            helper.make_tensor_value_info("chunk", TensorProto.FLOAT, [1, STEPS, COLUMNS]),
            helper.make_tensor_value_info("done", TensorProto.FLOAT, [1]),
        ],
        [numpy_helper.from_array(value, name) for name, value in held.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    helper.set_model_props(model, notes)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _array(tensor: Any) -> NDArray[np.float32]:
    return np.asarray(tensor.detach().numpy(), np.float32)
