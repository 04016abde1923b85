"""`Felt`: what a policy's model can be told besides images, and the arrays that its inputs get."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from nodes.models.onnx_file import Tensor
from nodes.msgs import Action, JointVector, RobotState
from nodes.policy.onnx.tensors import ABOUT_THE_ACTION, SKILLS
from nodes.stretch.kinematics import from_odometry
from runtime.errors import PolyrhythmError

Trigger = Literal["image", "wrist", "felt"]
"""What a model answers: each head image, where it sees none each wrist image, where it sees nothing the joints."""

FLOATS: dict[str, type[np.floating[Any]]] = {"float": np.float32, "float16": np.float16, "double": np.float64}
"""By the name of ONNX."""

NOTHING: JointVector = (0.0,) * 8
Pose = tuple[float, float, float]
"""x and y in m and heading in rad, odometry frame."""


class Wants(msgspec.Struct, frozen=True):
    """What a model is to be given."""

    names: frozenset[str]
    history: int = 0
    skills: tuple[str, ...] = ()  # that it has learned, where it says so
    previous: int = 0  # steps of what is planned
    judges: bool = False  # it says whether an action is done
    is_relative: bool = False  # its positions are the way from the joints as they are felt
    step_s: float = 0.0  # from step to step of its chunks, where it says so
    units: dict[str, str] = {}  # of its joints, where these are not rad and m

    @property
    def trigger(self) -> Trigger:
        """What calls for an answer."""
        return "image" if "image" in self.names else "wrist" if "wrist" in self.names else "felt"

    @property
    def is_about_action(self) -> bool:
        """Whether its answer is for one action."""
        return bool(self.names & ABOUT_THE_ACTION)


class Felt(msgspec.Struct, frozen=True):
    """Plain numbers and words at one moment; see docs/policy.md for each."""

    joints: JointVector
    velocity: JointVector = NOTHING
    effort: JointVector = NOTHING
    grasp: float = 0.0
    history: tuple[JointVector, ...] = ()  # oldest first
    base: Pose = (0.0, 0.0, 0.0)
    elapsed: float = 0.0  # s since the action began, without the time in which the robot was stopped
    target: tuple[float, float, float] = (0.0, 0.0, 0.0)
    size: tuple[float, float] = (0.0, 0.0)
    skill: str = ""
    text: str = ""
    previous: tuple[tuple[float, ...], ...] = ()  # commands that are planned for now and later
    seed: int = 0  # of the input "noise"
    seen_ns: int = 0  # when its newest image was captured
    frozen: float = 0.0  # how many of these will have been played when the answer comes
    memory: bytes = b""  # float32: what the model's answer before this one left behind; empty: it begins


@dataclass(frozen=True, slots=True)
class PolicyAnswer:
    """What a model says: a chunk (steps, 10), and how sure it is that the action is done, where it says that."""

    chunk: NDArray[np.float64]
    done: float | None = None
    memory: bytes = b""  # for `Felt.memory` of the next question


class PolicyModel(Protocol):
    """A model that can be asked: in this process, behind `polyrhythm serve`, or behind another project's server."""

    def wants(self) -> Wants:
        """Return what the model is to be given. Raises PolyrhythmError where that is not known now."""

    def run(self, images: Mapping[str, NDArray[np.uint8]], felt: Felt) -> PolicyAnswer:
        """Ask the model, with RGB images by camera and what is felt. Raises PolyrhythmError without an answer."""


def pose_of(state: RobotState) -> Pose:
    """Return the base's pose: x and y in m, heading in rad."""
    return state.base_x_m, state.base_y_m, state.base_heading_rad


def feel(
    state: RobotState,
    action: Action | None = None,
    began: Pose | None = None,
    recent: tuple[JointVector, ...] = (),
    history: int = 0,
    elapsed_s: float = 0.0,
) -> Felt:
    """Return what is felt now; `began`: the base's pose when the action began, `recent`: postures before, at 20 Hz."""
    shown = recent[-history:] if history else ()
    return Felt(
        joints=state.position,
        velocity=state.velocity,
        effort=state.effort,
        grasp=float(state.is_grasping),
        history=(*(shown[:1] or (state.position,)) * (history - len(shown)), *shown) if history else (),
        base=_moved(began, pose_of(state)) if began is not None else (0.0, 0.0, 0.0),
        elapsed=elapsed_s,
        target=target_of(action, state),
        size=(action.target.width_m, action.target.height_m) if action and action.target else (0.0, 0.0),
        skill=action.skill if action else "",
        text=action.text if action else "",
    )


def target_of(action: Action | None, state: RobotState) -> tuple[float, float, float]:
    """Return the centre of the action's target in m, in the base's frame now; zeros where there is no target."""
    if action is None or action.target is None:
        return (0.0, 0.0, 0.0)
    place = np.array((action.target.x_m, action.target.y_m, action.target.z_m))
    x, y, z = from_odometry(*pose_of(state), place)
    return float(x), float(y), float(z)


def one_hot(skill: str) -> tuple[float, ...]:
    """Return a skill as ones and zeros, in the order of `SKILLS`; zeros where there is none."""
    return tuple(float(skill == known) for known in SKILLS)


def feed(tensors: Iterable[Tensor], images: Mapping[str, NDArray[np.float32]], felt: Felt) -> dict[str, NDArray[Any]]:
    """Return the arrays for a model with these inputs; `images` are those of the cameras, normalised."""
    return {
        tensor.name: images[tensor.name].astype(FLOATS[tensor.kind], copy=False)
        if tensor.name in images
        else _array(tensor, felt)
        for tensor in tensors
    }


def _array(tensor: Tensor, felt: Felt) -> NDArray[Any]:
    if tensor.name == "text":
        return words(felt.text, tensor.shape[1])
    kind = FLOATS[tensor.kind]
    if tensor.name == "noise":
        shape = (1, *(size or 1 for size in tensor.shape[1:]))
        return np.random.default_rng(felt.seed).standard_normal(shape).astype(kind)
    if tensor.name == "memory":
        shape = (1, *(size or 1 for size in tensor.shape[1:])) if tensor.shape else ()
        kept = np.frombuffer(felt.memory, np.float32) if felt.memory else np.zeros(math.prod(shape), np.float32)
        if kept.size != math.prod(shape):
            raise PolyrhythmError(f"a memory of {kept.size} numbers; the model has {math.prod(shape)}")
        return kept.reshape(shape).astype(kind)
    value = one_hot(felt.skill) if tensor.name == "skill" else getattr(felt, tensor.name)
    return np.asarray([[value] if tensor.name in ("grasp", "frozen", "elapsed") else value], kind)


def words(text: str, length: int | None) -> NDArray[np.int64]:
    """Return the text's UTF-8 bytes as (1, length), cut or filled with zeros; without a length as many as there are."""
    data = text.encode()
    filled = data[:length].ljust(length, b"\0") if length is not None else data or b"\0"
    return np.frombuffer(filled, np.uint8).astype(np.int64)[None]


def _moved(began: Pose, now: Pose) -> Pose:
    x, y, _ = from_odometry(*began, np.array((now[0], now[1], 0.0)))
    return float(x), float(y), math.remainder(now[2] - began[2], math.tau)
