"""`TableEnv`: the simulated robot and its table as a Gymnasium environment; the only file that imports gymnasium.

It is a `GuardedEnv` of launch/laptop.toml with nobody in it but driver, guard and cameras.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from nodes.msgs import JointCommand, RobotState
from nodes.robot.protocol import Body
from nodes.robot.robot_from_launch import load_body
from nodes.sim.guarded_env import GuardedEnv, Stepped
from nodes.sim.messages import Truth
from nodes.sim.world.table_scene import SIZES_M
from runtime.errors import ParameterError

Observation = dict[str, NDArray[Any]]
Action = NDArray[np.float32]
Reward = Callable[[RobotState, Truth], tuple[float, bool]]
"""Takes what the robot feels and what is so; gives the reward and whether the task is done."""

LAUNCH = "laptop"
WITHOUT = (
    "planner", "vlm", "policy", "reflex", "interrupt_records", "ladder", "shadow_compare", "collaborator", "recorder",
)  # fmt: skip
CAMERAS = {"head": "head/image", "wrist": "wrist/image"}
REACHED_M = 0.05


class TableEnv(gymnasium.Env[Observation, Action]):
    """Actions are -1 to 1: one for each joint over its range, then base speed and turning rate; the guard limits them.

    Observations: `state` (positions, velocities, x, y, heading, v, w, whether it grasps), `things` (x, y, z in m of
    each, odometry frame) and, with `camera`, `image` (height, width, 3). A step is 0.05 s; after `steps` of them the
    episode is truncated. `reward` is minus the distance in m from the fingers to the nearest thing, done at 5 cm; or
    give another.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012  # as Gymnasium declares it

    def __init__(
        self, steps: int = 400, camera: str = "", width: int = 160, height: int = 120, reward: Reward | None = None,
        render_mode: str | None = None,
    ) -> None:  # fmt: skip
        if camera not in ("", *CAMERAS):
            raise ParameterError(f"camera is {camera!r}; expected 'head', 'wrist' or '' for none")
        if render_mode not in (None, "rgb_array"):
            raise ParameterError(f"render_mode is {render_mode!r}; expected 'rgb_array' or None")
        self.render_mode = render_mode
        self._steps, self._camera, self._reward = steps, camera, reward or partial(_near_a_thing, load_body(""))
        drawn = {camera, "head"} if render_mode else {camera}
        changes = [f"{name}_camera.{key}={value}" for name in drawn & CAMERAS.keys()
                   for key, value in (("width", width), ("height", height), ("hz", 20))]  # fmt: skip
        unseen = [f"{name}_camera" for name in (*CAMERAS, "room") if name not in drawn]
        self._env = GuardedEnv(LAUNCH, without=(*WITHOUT, *unseen), changes=changes)
        self._step = 0
        self._now: Stepped | None = None
        joints, base = self._env.limits.joints, self._env.limits.base
        self._lowest = np.array([joint.lowest for joint in joints])
        self._range = np.array([joint.highest - joint.lowest for joint in joints])
        self._fastest = (base.wheel_speed_mps, 2 * base.wheel_speed_mps / base.track_m)
        self.action_space = spaces.Box(-1.0, 1.0, (len(joints) + 2,), np.float32)
        parts: dict[str, spaces.Space[Any]] = {
            "state": spaces.Box(-np.inf, np.inf, (2 * len(joints) + 6,), np.float64),
            "things": spaces.Box(-np.inf, np.inf, (len(SIZES_M), 3), np.float64),
        }
        if camera:
            parts["image"] = spaces.Box(0, 255, (height, width, 3), np.uint8)
        self.observation_space = spaces.Dict(parts)  # type: ignore[assignment]  # Gymnasium's own Dict names no parts

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Lay the table anew; the same seed lays the same table."""
        super().reset(seed=seed)
        self._step = 0
        self._now = self._env.reset(int(self.np_random.integers(2**31)))
        return self._observe(self._now), {}

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Command for 0.05 s. Raises ValueError where the action is not finite."""
        wanted = np.clip(np.asarray(action, np.float64), -1.0, 1.0)
        position = self._lowest + (wanted[:-2] + 1.0) / 2.0 * self._range
        v_mps, w_radps = (float(part) * most for part, most in zip(wanted[-2:], self._fastest, strict=True))
        command = JointCommand(position=tuple(position.tolist()), base_v_mps=v_mps, base_w_radps=w_radps)
        self._now = now = self._env.step(command)
        self._step += 1
        assert now.truth is not None, "the simulated driver tells it"
        reward, is_done = self._reward(now.state, now.truth)
        told = {"contact": now.state.contact, "guard": now.guard.mode if now.guard else ""}
        return self._observe(now), float(reward), is_done, self._step >= self._steps, told

    def render(self) -> NDArray[np.uint8] | None:
        """What the head camera sees, where `render_mode` is "rgb_array"."""
        return self._now.images[CAMERAS["head"]] if self.render_mode == "rgb_array" and self._now else None

    def close(self) -> None:
        """Let go of robot and renderer."""
        self._env.close()

    def _observe(self, now: Stepped) -> Observation:
        state = now.state
        base = (
            state.base_x_m, state.base_y_m, state.base_heading_rad, state.base_v_mps, state.base_w_radps,
            float(state.is_grasping),
        )  # fmt: skip
        assert now.truth is not None, "the simulated driver tells it"
        things = [(thing.x_m, thing.y_m, thing.z_m) for thing in now.truth.objects]
        observation = {"state": np.array([*state.position, *state.velocity, *base]), "things": np.array(things)}
        if self._camera:
            observation["image"] = now.images[CAMERAS[self._camera]]
        return observation


def _near_a_thing(body: Body, state: RobotState, truth: Truth) -> tuple[float, bool]:
    """Minus the way from the fingers to the nearest thing that can be picked up."""
    hand = np.array(body.hand_point(state))
    ways = [math.dist(hand, (thing.x_m, thing.y_m, thing.z_m)) for thing in truth.objects if not thing.is_in_bin]
    nearest = min(ways, default=0.0)
    return -nearest, nearest < REACHED_M
