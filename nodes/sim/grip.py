"""`Grip`: notices when both fingers press on the same thing, and fixes it to the hand until the gripper opens."""

from __future__ import annotations

import numpy as np

from nodes.robot.products import product
from nodes.robot_file.engine import mujoco

PRESS_N = 1.5
"""Force of each fingertip from which it counts as pressing."""
SETTLE_STEPS = 4
"""Steps in a row with both fingers pressing on the same thing before it is fixed."""
RELEASE_M = 0.006
"""A target opening wider than the held thing by this much lets go."""

AWAKE_STEPS = 25
"""Steps in which a thing that was let go may not fall asleep: it hangs still at first, and has a way to fall."""


def fix(model: mujoco.MjModel, data: mujoco.MjData, weld: int, hand: int, thing: int) -> None:
    """Switch a weld on that keeps a thing where it is now, seen from the hand; both are numbers of bodies."""
    inverse, turn = np.zeros(4), np.zeros(4)
    mujoco.mju_negQuat(inverse, data.xquat[hand])
    mujoco.mju_mulQuat(turn, inverse, data.xquat[thing])
    model.eq_data[weld, 0:3] = 0.0
    model.eq_data[weld, 3:6] = product(data.xpos[thing] - data.xpos[hand], data.xmat[hand].reshape(3, 3))
    model.eq_data[weld, 6:10] = turn
    data.eq_active[weld] = 1


def keep_awake(model: mujoco.MjModel, data: mujoco.MjData, thing: int) -> None:
    """Let a body that is awake count its steps at rest anew."""
    tree = model.body_treeid[thing]
    if data.tree_asleep[tree] < 0:  # the count of its steps at rest, upwards to -1; from 0 on it sleeps
        data.tree_asleep[tree] = -(1 + mujoco.mjMINAWAKE)


class Grip:
    """What the two fingers press on, and what is fixed to the hand."""

    def __init__(self, model: mujoco.MjModel, things: tuple[str, ...], *, hand: str, fingers: tuple[str, str]) -> None:
        self._model = model
        self._hand = model.body(hand).id
        self._weld_of = {model.body(name).id: model.equality(f"hold_{name}").id for name in things}
        self._finger = np.full(model.ngeom, -1)
        for number, finger in enumerate(fingers):
            self._finger[model.geom_bodyid == model.body(finger).id] = number
        self._held = -1
        self._held_opening_m = 0.0
        self._pressed_steps = 0
        self._pressed_thing = -1
        self._let_go = -1
        self._awake_steps = 0

    @property
    def is_grasping(self) -> bool:
        """Whether both fingers press on one thing, or hold it."""
        return self._held >= 0 or self._pressed_steps > 0

    @property
    def held(self) -> int:
        """The body that is fixed to the hand, or -1."""
        return self._held

    def update(self, data: mujoco.MjData, opening_m: float, target_m: float) -> None:
        """After each physics step, with the gripper's opening and the opening that it aims at."""
        if self._awake_steps:
            self._awake_steps -= 1
            keep_awake(self._model, data, self._let_go)
        if self._held >= 0:
            if target_m > self._held_opening_m + RELEASE_M:
                self._release(data)
            return
        if target_m >= opening_m:
            self._pressed_steps = 0  # opening, or not closing any more: nothing is being gripped
            return
        thing = self._thing_between(data)
        self._pressed_steps = (
            self._pressed_steps + 1 if thing >= 0 and thing == self._pressed_thing else int(thing >= 0)
        )
        self._pressed_thing = thing
        if self._pressed_steps >= SETTLE_STEPS:
            self._hold(data, thing, opening_m)

    def _thing_between(self, data: mujoco.MjData) -> int:
        """The body that both fingers press on, or -1."""
        if not data.ncon:
            return -1
        pairs = data.contact.geom
        fingers = self._finger[pairs]  # (contacts, 2), -1 where no finger
        force = np.zeros(6)
        pressed: tuple[dict[int, float], dict[int, float]] = ({}, {})
        for number in np.flatnonzero(fingers.max(axis=1) >= 0):
            side = 0 if fingers[number, 0] >= 0 else 1
            body = int(self._model.geom_bodyid[pairs[number, 1 - side]])
            if body not in self._weld_of:
                continue
            mujoco.mj_contactForce(self._model, data, number, force)
            by_body = pressed[fingers[number, side]]
            by_body[body] = by_body.get(body, 0.0) + force[0]
        left, right = pressed
        return next((body for body in left if left[body] > PRESS_N and right.get(body, 0.0) > PRESS_N), -1)

    def _hold(self, data: mujoco.MjData, thing: int, opening_m: float) -> None:
        fix(self._model, data, self._weld_of[thing], self._hand, thing)
        self._held = thing
        self._held_opening_m = opening_m

    def _release(self, data: mujoco.MjData) -> None:
        data.eq_active[self._weld_of[self._held]] = 0
        self._let_go, self._awake_steps = self._held, AWAKE_STEPS
        keep_awake(self._model, data, self._let_go)
        self._held = -1
        self._pressed_steps = 0
