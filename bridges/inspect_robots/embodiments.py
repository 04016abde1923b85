"""Our robots as Inspect Robots' embodiments: a launch file in virtual time, or a graph that runs. Behind the guard.

An action is a target for each joint. The base's speed comes beside it, as `meta["base"]`: v in m/s and w in rad/s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from inspect_robots import (
    ActionSemantics,
    Box,
    CameraSpec,
    EmbodimentInfo,
    Observation,
    ObservationSpace,
    Scene,
    StateField,
    StateSpec,
    StepResult,
    Target,
)
from inspect_robots.embodiment import AUTO_RESET, PRIVILEGED_SUCCESS, RENDERABLE, RESETTABLE, SEEDABLE, SELF_PACED
from inspect_robots.types import Action

from nodes.msgs import JointCommand
from nodes.robot.protocol import RobotLimits
from nodes.robot.robot_from_launch import load_body
from nodes.seats.attached_env import AttachedEnv
from nodes.sim.guarded_env import GuardedEnv, Stepped
from runtime.errors import UserError

WITHOUT = "collaborator,recorder,room_camera"
"""Left out of laptop.toml: the scripted person, who would give orders of their own, and what nobody here looks at."""
GRIPPER = "gripper"
IN_BIN, REACH = "in_bin", "reach"
"""The targets that are judged from where things really are: {"label": "cup"}, and {"within_m": 0.1}."""


class SimulatedRobot:
    """The graph of a launch file, all but some nodes; the scene's instruction is said to it, its seed lays the table.

    `without` are the nodes left out, with commas between. A policy that does not look needs no `images`.
    """

    def __init__(self, launch: str = "laptop", without: str = WITHOUT, images: bool = True) -> None:
        self._env = GuardedEnv(launch, without=[name for name in without.split(",") if name])
        self._images = images
        self._scene: Scene | None = None
        sizes = _sizes(self._env.reset()) if images else {}
        kinds = (SEEDABLE, RESETTABLE, AUTO_RESET, PRIVILEGED_SUCCESS, RENDERABLE)
        self.info = _info("polyrhythm", self._env, sizes, is_simulated=True, capabilities=kinds)

    def reset(self, scene: Scene, *, seed: int | None = None) -> Observation:
        """Lay the table by the scene's seed, or else by the trial's, and say the scene's instruction."""
        self._scene = scene
        self._env.instruction = scene.instruction
        chosen = scene.init_seed if scene.init_seed is not None else seed or 0
        return self._seen(self._env.reset(chosen % 2**31))

    def step(self, action: Action) -> StepResult:
        """Command for one period; the guard limits it. Raises UserError for what is no command, and nothing moves."""
        now = self._env.step(command_of(action))
        is_done, why = _judged(self._scene.target if self._scene else None, now, self._env)
        return StepResult(
            self._seen(now),
            terminated=is_done,
            termination_reason=why,
            info={"success": why == "success", **_told(now)},
        )

    def close(self) -> None:
        """End the run."""
        self._env.close()

    def _seen(self, now: Stepped) -> Observation:
        return _observation(now, self._scene.instruction if self._scene else "", with_images=self._images)


class RunningRobot:
    """A graph that runs, of a real robot too: its policy's seat is held while the trial goes on.

    `run` is its name or pid, "" where one goes on. People put the scene back, arm the robot and judge; a step takes a
    period of the clock on the wall.
    """

    def __init__(self, run: str = "", by: str = "") -> None:
        self._env = AttachedEnv(run or None, by=by)
        sizes = _sizes(self._env.reset())
        self.info = _info("polyrhythm_run", self._env, sizes, is_simulated=False, capabilities=(SELF_PACED,))
        self._instruction = ""

    def reset(self, scene: Scene, *, seed: int | None = None) -> Observation:
        """Take the seat and say the scene's instruction."""
        self._instruction = self._env.instruction = scene.instruction
        return _observation(self._env.reset(), scene.instruction)

    def step(self, action: Action) -> StepResult:
        """Command for one period; the guard limits it. Raises PolyrhythmError where the seat is lost."""
        now = self._env.step(command_of(action))
        return StepResult(_observation(now, self._instruction), info=_told(now))

    def close(self) -> None:
        """Give the seat back."""
        self._env.close()


def command_of(action: Action) -> JointCommand | None:
    """The command behind an action; None where it says that it is none (`meta["idle"]`)."""
    if action.meta.get("idle"):
        return None
    values = np.asarray(action.data, np.float64).reshape(-1)
    v_mps, w_radps = action.meta.get("base", (0.0, 0.0))
    return JointCommand(position=tuple(values.tolist()), base_v_mps=float(v_mps), base_w_radps=float(w_radps))


def _info(
    name: str,
    env: GuardedEnv | AttachedEnv,
    sizes: Mapping[str, tuple[int, int]],
    *,
    is_simulated: bool,
    capabilities: Sequence[str],
) -> EmbodimentInfo:
    joints = env.limits.joints
    number = (len(joints),)
    semantics = ActionSemantics(
        "joint_pos",
        gripper="continuous" if any(joint.name == GRIPPER for joint in joints) else "none",
        dim_labels=tuple(joint.name for joint in joints),
        max_step=tuple(joint.speed * env.step_s for joint in joints),
    )
    low, high = (np.array([getattr(joint, end) for joint in joints]) for end in ("lowest", "highest"))
    state = StateSpec((StateField("joint_pos", number, "m|rad"), StateField("joint_vel", (*number, 1), "m/s|rad/s")))
    cameras = tuple(CameraSpec(camera, height, width) for camera, (height, width) in sizes.items())
    return EmbodimentInfo(
        name=name,
        action_space=Box(number, low, high, semantics),
        observation_space=ObservationSpace(cameras, state=state),
        control_hz=1 / env.step_s,
        is_simulated=is_simulated,
        capabilities=frozenset(capabilities),
        supported_target_kinds=frozenset({IN_BIN, REACH}),
        docs=_docs(env.limits),
    )


def _docs(limits: RobotLimits) -> str:
    ranges = ", ".join(f"{joint.name} {joint.lowest:g} to {joint.highest:g}" for joint in limits.joints)
    return (
        f"Targets for the joints: {ranges}; m for what slides, rad for what turns. A guard limits speed and "
        "acceleration, and stops at the word of a person. The base drives by meta['base'] of an action: m/s, rad/s."
    )


def _sizes(now: Stepped) -> dict[str, tuple[int, int]]:
    return {_camera(topic): image.shape[:2] for topic, image in now.images.items()}


def _camera(topic: str) -> str:
    """ "head" of "head/image"."""
    return topic.removesuffix("/image")


def _observation(now: Stepped, instruction: str, *, with_images: bool = True) -> Observation:
    return Observation(
        images={_camera(topic): image for topic, image in now.images.items()} if with_images else {},
        state={"joint_pos": np.array(now.state.position), "joint_vel": np.array(now.state.velocity)[:, None]},
        instruction=instruction,
        state_time=now.state.read_ns * 1e-9,
        extra={"asked": now.asked, "robot_state": now.state},
    )


def _told(now: Stepped) -> dict[str, Any]:
    let = now.let_through
    return {
        "guard": now.guard.mode if now.guard else "",
        "let_through": list(let.position) if let else [],
        "said": list(now.said),
    }


def _judged(target: Target | None, now: Stepped, env: GuardedEnv) -> tuple[bool, str | None]:
    """Whether the trial is over, and why: by the target, or else by a node of the graph."""
    if target is not None and now.truth is not None:
        if target.kind == IN_BIN:
            meant = [thing for thing in now.truth.objects if thing.label == target.spec.get("label", thing.label)]
            is_done = bool(meant) and all(thing.is_in_bin for thing in meant)
            return is_done, "success" if is_done else None
        if target.kind == REACH:
            hand = load_body(env.launch.shared.get("robot", "")).hand_point(now.state)
            ways = [math.dist(hand, (thing.x_m, thing.y_m, thing.z_m)) for thing in now.truth.objects]
            is_done = min(ways, default=math.inf) < float(target.spec.get("within_m", 0.1))
            return is_done, "success" if is_done else None
        raise UserError(f"target {target.kind!r} cannot be judged here; known: {IN_BIN}, {REACH}")
    if now.outcome is None:
        return False, None
    return True, "success" if now.outcome[0] else now.outcome[1] or "failure"
