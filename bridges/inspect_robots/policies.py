"""Our policies as Inspect Robots' policies: the graph's own one on its seat, or a model's file."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from inspect_robots import (
    ActionChunk,
    ActionSemantics,
    Box,
    CameraSpec,
    EmbodimentInfo,
    Observation,
    ObservationSpace,
    PolicyConfig,
    PolicyInfo,
    Scene,
)
from inspect_robots.types import Action

from nodes.models.onnx_file import read_model
from nodes.msgs import JointCommand
from nodes.policy.onnx.convention import convention_of, out_of_range
from nodes.policy.onnx.inputs import Felt
from nodes.policy.onnx.policy import STEP_S
from nodes.policy.onnx.session import PolicySession
from nodes.robot.robot_from_launch import DEFAULT, load_limits
from runtime.errors import PolyrhythmError, UserError

CAMERAS = {"image": "head", "wrist": "wrist"}
"""By the model's name."""


class SeatPolicy:
    """What the embodiment's own policy would do: the whole graph, planner, VLM and policy, in a benchmark's loop.

    It needs the embodiment `polyrhythm`, with its policy not left out.
    """

    def __init__(self) -> None:
        self.info = PolicyInfo("polyrhythm_seat", _joints(len(load_limits(DEFAULT).joints)), _FELT)
        self.config = PolicyConfig(action_horizon=1)

    def bind(self, embodiment_info: EmbodimentInfo) -> None:
        """Take on the embodiment's joints. Raises UserError for another embodiment."""
        if embodiment_info.name != "polyrhythm":
            raise UserError(
                f"the embodiment is {embodiment_info.name!r}; this policy is that of a graph's own seat, so it "
                "needs the embodiment polyrhythm"
            )
        self.info = PolicyInfo("polyrhythm_seat", embodiment_info.action_space, _FELT)

    def reset(self, scene: Scene) -> None:
        """Nothing is kept here."""

    def act(self, observation: Observation) -> ActionChunk:
        """What the seat's holder commanded in this step; where it commanded nothing, neither does this."""
        asked = observation.extra.get("asked")
        if not isinstance(asked, JointCommand):
            return ActionChunk([Action(observation.state["joint_pos"], {"idle": True})])
        return ActionChunk([Action(np.array(asked.position), {"base": (asked.base_v_mps, asked.base_w_radps)})])


class ModelPolicy:
    """A policy's ONNX file, as `nodes.policy.onnx.policy:OnnxPolicy` runs it; the instruction is its text.

    `model` is its path; `width` and `height` are those of the images that it is shown, where its file leaves them open.
    """

    def __init__(self, model: str, width: int = 160, height: int = 120) -> None:
        path = Path(model)
        _, problems = read_model(model)
        if problems:
            raise UserError("; ".join(problems))
        data = path.read_bytes()
        self._session = PolicySession(
            data, name=path.name, width_px=width, height_px=height, providers=("CPUExecutionProvider",)
        )
        wants = self._session.wants()
        if unmet := wants.names & {"target", "size", "skill", "memory", "previous", "history"}:
            raise UserError(
                f"{path.name} wants {', '.join(sorted(unmet))}, which a benchmark does not tell; run it on its "
                "seat, with the policy polyrhythm_seat"
            )
        self._hz = 1 / (wants.step_s or STEP_S)
        self._cameras = {name: camera for name, camera in CAMERAS.items() if name in wants.names}
        shown = tuple(CameraSpec(camera, height, width) for camera in self._cameras.values())
        needs = ObservationSpace(shown, frozenset({"joint_pos"}))
        digest = hashlib.sha256(data).hexdigest()
        self._joint_limits = load_limits(DEFAULT).joints
        self.info = PolicyInfo("polyrhythm_model", _joints(len(self._joint_limits)), needs, self._hz, checkpoint=digest)
        self.config = PolicyConfig(action_horizon=self._session.steps)
        self._wants = wants
        self._convention = convention_of(wants.units, self._joint_limits)

    def reset(self, scene: Scene) -> None:
        """Nothing is kept here."""

    def act(self, observation: Observation) -> ActionChunk:
        """The model's chunk. Raises PolyrhythmError where it is not finite, or asks a joint far out of its range."""
        joints = observation.state["joint_pos"]
        images = {name: observation.images[camera] for name, camera in self._cameras.items()}
        felt = Felt(tuple(float(value) for value in joints), text=observation.instruction or "")
        convention = self._convention
        answer = self._session.run(images, felt if convention is None else convention.told(felt))
        is_relative = self._wants.is_relative
        chunk = (answer if convention is None else convention.ours(answer, is_relative=is_relative)).chunk
        if not np.isfinite(chunk).all():
            raise PolyrhythmError(f"{self._session.name} gave a chunk that is not finite; nothing was commanded")
        chunk[:, :8] += np.asarray(joints) if is_relative else 0.0
        if why := out_of_range(chunk, self._joint_limits):
            raise PolyrhythmError(f"{self._session.name}: {why}; nothing was commanded")
        return ActionChunk([Action(row[:8], {"base": (row[8], row[9])}) for row in chunk], control_hz=self._hz)


_FELT = ObservationSpace(state_keys=frozenset({"joint_pos"}))


def _joints(number: int) -> Box:
    return Box((number,), semantics=ActionSemantics("joint_pos", gripper="continuous"))
