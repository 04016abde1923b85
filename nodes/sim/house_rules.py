"""`HouseRules`: what happens in a world besides physics.

Water in the sink cleans and empties, machines fill what stands below their spout, and a sponge that is drawn over a
place wipes it. A lid turns with the wrist.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from nodes.sim.world.world_file import Laid, Layout, PointM3

RULE_PERIOD_S = 0.1
WASH_S, FILL_S = 1.5, 4.0
WIPE_M = 0.25
"""How far a sponge is drawn over a place before it is clean."""
TWIST_RAD = 0.5
LIFTED_M = 0.04


@dataclass(slots=True)
class ThingState:
    """What physics does not know of a thing."""

    fill: float = 0.0
    contents: tuple[str, ...] = ()
    is_dirty: bool = False
    is_open: bool = False
    is_emptied: bool = False
    was_lifted: bool = False
    wet_s: float = 0.0
    below_spout_s: float = 0.0
    roll_rad: float | None = None  # of the wrist, when the robot took hold of it
    lifted_from_m: float = 0.0


class HouseRules:
    """How the things of a world are, and which places are dirty."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.dirty_places = set(layout.dirty)
        self.states = {
            one.thing.name: ThingState(
                fill=one.spec.fill, contents=(one.spec.contents,) if one.spec.fill else (), is_dirty=one.spec.dirty
            )
            for one in layout.things
        }
        self._laid = {one.thing.name: one for one in layout.things}
        self._wiped_m: dict[str, float] = {}
        self._wiped_at: tuple[str, float, float] | None = None

    def take(self, name: str, z_m: float, roll_rad: float) -> None:
        """The robot has taken hold of it, with its wrist turned so."""
        self.states[name].roll_rad, self.states[name].lifted_from_m = roll_rad, z_m

    def let_go(self, name: str) -> None:
        """It has let go of it."""
        self.states[name].roll_rad = None

    def pass_time(self, at_m: Mapping[str, PointM3], held: str, roll_rad: float) -> None:
        """Let `RULE_PERIOD_S` pass with the middles of things there."""
        for name, state in self.states.items():
            one, z = self._laid[name], at_m[name][2]
            self._wash(one, state, at_m[name], is_held=held == name)
            if held == name:
                state.was_lifted = state.was_lifted or z > state.lifted_from_m + LIFTED_M
                self._twist(one, state, roll_rad)
        self._wipe(held, at_m)

    def _wash(self, one: Laid, state: ThingState, at_m: PointM3, *, is_held: bool) -> None:
        kind, (x, y, z) = self._layout.world.kinds[one.spec.kind], at_m
        bottom_m, is_wet, is_below = z - one.thing.height_m / 2, False, False
        for place in self._layout.world.places.values():
            if not (place.washes or place.fills or (kind.vessel and place.form == "box")) or not place.holds(x, y):
                continue
            is_inside = place.form == "box" and bottom_m < place.z_m - 0.01
            if is_inside and kind.vessel and state.fill > 0.0:
                state.fill, state.contents, state.is_emptied = 0.0, (), True
            is_wet = is_wet or (is_inside and place.washes)
            if place.fills and kind.vessel and not is_held and abs(bottom_m - place.z_m) < 0.03:
                is_below = True
                state.below_spout_s += RULE_PERIOD_S
                if state.below_spout_s > FILL_S and place.fills not in state.contents:
                    state.fill, state.contents = 1.0, (*state.contents, place.fills)
        state.wet_s = state.wet_s + RULE_PERIOD_S if is_wet else 0.0
        if not is_below:
            state.below_spout_s = 0.0
        if state.wet_s > WASH_S:
            state.is_dirty = False

    def _twist(self, one: Laid, state: ThingState, roll_rad: float) -> None:
        if not self._layout.world.kinds[one.spec.kind].lid or one.spec.stuck or state.roll_rad is None:
            return
        turned = roll_rad - state.roll_rad
        if abs(turned) > TWIST_RAD:
            state.is_open, state.roll_rad = turned > 0, None

    def _wipe(self, held: str, at_m: Mapping[str, PointM3]) -> None:
        if not held or not self._layout.world.kinds[self._laid[held].spec.kind].wipes:
            self._wiped_at = None
            return
        x, y, z = at_m[held]
        bottom = z - self._laid[held].thing.height_m / 2
        places = self._layout.world.places.items()
        flat = (name for name, place in places if place.form == "flat" and place.holds(x, y)
                and abs(bottom - place.z_m) < 0.03)  # fmt: skip
        where = next(flat, "")
        before, self._wiped_at = self._wiped_at, (where, x, y) if where else None
        if where and before is not None and before[0] == where:
            self._wiped_m[where] = self._wiped_m.get(where, 0.0) + math.dist(before[1:], (x, y))
            if self._wiped_m[where] > WIPE_M:
                self.dirty_places.discard(where)
