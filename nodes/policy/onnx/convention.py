"""`Convention`: the units in which a model speaks of joints, made ours and back; and what no joint can be asked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from nodes.policy.onnx.inputs import Felt, PolicyAnswer
from nodes.policy.onnx.tensors import ALL
from nodes.robot.protocol import JointLimit

BEYOND = 0.25
"""How far out of a joint's range a chunk may ask, as a share of it. What was learned overshoots by a few percent."""

Numbers = tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Convention:
    """ours = offset + scale * theirs, for each joint."""

    scale: NDArray[np.float64]  # (joints,)
    offset: NDArray[np.float64]

    def told(self, felt: Felt) -> Felt:
        """What is felt, as the model counts. Efforts are percent in any convention."""
        columns = len(self.scale)

        def position(row: Sequence[float]) -> Numbers:
            joints = (np.asarray(row[:columns]) - self.offset) / self.scale
            return (*joints.tolist(), *row[columns:])

        return msgspec.structs.replace(
            felt,
            joints=position(felt.joints),
            velocity=tuple((np.asarray(felt.velocity) / self.scale).tolist()),
            history=tuple(map(position, felt.history)),
            previous=tuple(map(position, felt.previous)),
        )

    def ours(self, answer: PolicyAnswer, *, is_relative: bool) -> PolicyAnswer:
        """The answer in rad and m; a relative one has no offset."""
        chunk = answer.chunk.copy()
        columns = len(self.scale)
        chunk[:, :columns] = chunk[:, :columns] * self.scale + (0.0 if is_relative else self.offset)
        return replace(answer, chunk=chunk)


def convention_of(units: Mapping[str, str], joints: Sequence[JointLimit]) -> Convention | None:
    """The one of a model with these units by joint (`tensors.UNITS`); None where all are ours."""
    scale, offset = np.ones(len(joints)), np.zeros(len(joints))
    for number, joint in enumerate(joints):
        span = joint.highest - joint.lowest
        match units.get(joint.name, units.get(ALL, "")):
            case "degrees":
                scale[number] = math.pi / 180
            case "percent":
                scale[number], offset[number] = span / 100, joint.lowest
            case "signed percent":
                scale[number], offset[number] = span / 200, joint.lowest + span / 2
    return Convention(scale, offset) if (scale != 1).any() else None


def out_of_range(chunk: NDArray[np.float64], joints: Sequence[JointLimit]) -> str:
    """Why a chunk in rad and m cannot be meant, in a sentence; "" where it may be."""
    wrong = []
    for number, joint in enumerate(joints):
        asked, far = chunk[:, number], BEYOND * (joint.highest - joint.lowest)
        worst = float(asked[np.argmax(np.maximum(joint.lowest - asked, asked - joint.highest))])
        if not joint.lowest - far <= worst <= joint.highest + far:
            wrong.append(f"{joint.name} to {worst:.3g} (range {joint.lowest:g} to {joint.highest:g})")
    if not wrong:
        return ""
    return f"the model asks {', '.join(wrong)}; is it in degrees or percent (say units), or not unnormalised?"
