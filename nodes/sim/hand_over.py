"""`PersonsHand`: takes what is let go above it while it is open, and lets go of what the gripper holds."""

from __future__ import annotations

import math

from nodes.robot_file.engine import mujoco
from nodes.sim.grip import fix, keep_awake
from nodes.sim.world.world_file import Layout, PointM3

PALM_M, PALM_ABOVE_M = 0.10, 0.08
"""A thing that is let go this near to an open palm, and this little above it, is taken."""
REACH_M = 0.16
"""A person's hand takes what is this near."""


class PersonsHand:
    """What the person beside the robot holds; things are fixed to it by welds called "give_" and the thing."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, layout: Layout) -> None:
        self._model, self._data = model, data
        self._hand = int(model.body("hand").id) if "hand" in layout.world.person else -1
        self._height_of = {one.thing.name: one.thing.height_m for one in layout.things}
        self.gesture = ""
        self.holds = ""

    def show(self, gesture: str, robot_holds: str) -> None:
        """An open hand takes what is let go above it, "hold:NAME" takes a thing, "drop" lets go."""
        verb, _, name = gesture.partition(":")
        if verb == "hold" and not self.holds and name in self._height_of:
            if math.dist(self._at(name), self._palm()) < REACH_M and robot_holds != name:
                self.give(name)
        elif verb == "drop" and self.holds:
            self._let_go()
        self.gesture = verb

    def meet(self, held: str, before: str) -> None:
        """The gripper holds something else than before: what robot and person take from each other."""
        if held:
            if held == self.holds:
                self._let_go()
        elif self.gesture == "open" and not self.holds and self._is_over_palm(before):
            self.give(before)

    def give(self, name: str) -> None:
        """Fix it to the hand where it is now."""
        weld = self._model.equality(f"give_{name}").id
        fix(self._model, self._data, weld, self._hand, int(self._model.body(name).id))
        self.holds = name

    def _let_go(self) -> None:
        self._data.eq_active[self._model.equality(f"give_{self.holds}").id] = 0
        keep_awake(self._model, self._data, int(self._model.body(self.holds).id))
        self.holds = ""

    def _is_over_palm(self, name: str) -> bool:
        hand, (x, y, z) = self._palm(), self._at(name)
        above_m = z - self._height_of[name] / 2 - hand[2]
        return math.dist((x, y), hand[:2]) < PALM_M and -0.02 < above_m < PALM_ABOVE_M

    def _at(self, name: str) -> PointM3:
        x, y, z = self._data.xpos[self._model.body(name).id].tolist()
        return x, y, z

    def _palm(self) -> PointM3:
        x, y, z = self._data.mocap_pos[self._model.body("hand").mocapid[0]].tolist()
        return x, y, z
