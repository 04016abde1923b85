"""`KitchenRobot`: the simulated robot in the kitchen of a scenario, and what happens there besides physics.

Physics moves things; rules about the truth do the rest: water in the sink cleans and empties, machines fill what stands
below their spout, and a sponge that is drawn over a place wipes it. A lid turns with the wrist.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from nodes.kitchen.messages import KitchenThing, KitchenTruth
from nodes.kitchen.mjcf import PARTS, build_kitchen
from nodes.kitchen.scenario import load_scenario
from nodes.kitchen.world import Laid, Layout, default_specs, lay_out, load_world, place_at
from nodes.msgs import JOINTS
from nodes.sim.messages import BodyPart
from nodes.sim.mjcf import SimScene
from nodes.sim.robot import SimRobot
from runtime.clock import to_ns

RULE_PERIOD_S = 0.1
WASH_S, FILL_S = 1.5, 4.0
WIPE_M = 0.25
"""How far a sponge is drawn over a place before it is clean."""
TWIST_RAD = 0.5
LIFTED_M = 0.04
PARKED_X_M = 1.6
"""A hand beyond this is at the person's side, and shows nobody what it holds."""
ROLL = JOINTS.index("wrist_roll")


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


class KitchenRobot(SimRobot):
    """`scenario` is a scenario file ("": a kitchen with something of everything), the seed lays it out."""

    person_parts = PARTS

    def __init__(
        self, scenario: str = "", seed: int = 0, head_pan_rad: float = 0.0, head_tilt_rad: float = 0.0
    ) -> None:
        found = load_scenario(Path(scenario)) if scenario else None
        world = load_world(Path(found.world) if found is not None and found.world else None)
        self.layout: Layout = lay_out(world, found.things if found is not None else default_specs(), seed)
        self.dirty_places = set(found.dirty if found is not None else ("table",))
        super().__init__(seed, head_pan_rad, head_tilt_rad)
        self.states = {
            one.thing.name: ThingState(
                fill=one.spec.fill, contents=(one.spec.contents,) if one.spec.fill else (), is_dirty=one.spec.dirty
            )
            for one in self.layout.things
        }
        self._still_speed[[JOINTS.index(name) for name in ("head_pan", "head_tilt")]] = math.inf  # it only looks round
        self.pose = dict.fromkeys(PARTS, (0.0, 0.0))  # yaw, pitch
        self.ever_touched: set[str] = set()
        self._rule_ns = 0
        self._wiped_m: dict[str, float] = {}
        self._wiped_at: tuple[str, float, float] | None = None

    def _build(self, seed: int) -> SimScene:
        return build_kitchen(self.layout)

    def start(self, now_ns: int) -> None:
        super().start(now_ns)
        self._rule_ns = now_ns
        for one in self.layout.things:
            if one.spec.at == "hand" or one.spec.hidden:
                self._give(one.thing.name)

    def advance(self, now_ns: int) -> None:
        super().advance(now_ns)
        while self._rule_ns + to_ns(RULE_PERIOD_S) <= now_ns:
            self._rule_ns += to_ns(RULE_PERIOD_S)
            self._live()

    def move_part(self, part: BodyPart) -> None:
        super().move_part(part)
        self.pose[part.part] = part.yaw_rad, part.pitch_rad

    # --- the rules

    def _hand_over(self) -> None:
        before = self._held
        super()._hand_over()
        if self._held and self._held != before:
            state = self.states[self._held]
            state.roll_rad, state.lifted_from_m = float(self._joint_position()[ROLL]), self._at(self._held)[2]
        elif before and not self._held:
            self.states[before].roll_rad = None

    def _live(self) -> None:
        self.ever_touched |= self._touched
        for one in self.layout.things:
            name, state = one.thing.name, self.states[one.thing.name]
            x, y, z = self._at(name)
            self._wash(one, state, x, y, z - one.thing.height_m / 2)
            if self._held == name:
                if z > state.lifted_from_m + LIFTED_M:
                    state.was_lifted = True
                self._twist(one, state)
        self._wipe()

    def _wash(self, one: Laid, state: ThingState, x: float, y: float, bottom_m: float) -> None:
        kind = self.layout.kitchen.kinds[one.spec.kind]
        is_wet = is_below = False
        for place in self.layout.kitchen.places.values():
            if not place.holds(x, y):
                continue
            is_inside = place.form == "box" and bottom_m < place.z_m - 0.01
            if is_inside and kind.vessel and state.fill > 0.0:
                state.fill, state.contents, state.is_emptied = 0.0, (), True
            is_wet = is_wet or (is_inside and place.washes)
            if place.fills and kind.vessel and self._held != one.thing.name and abs(bottom_m - place.z_m) < 0.03:
                is_below = True
                state.below_spout_s += RULE_PERIOD_S
                if state.below_spout_s > FILL_S and place.fills not in state.contents:
                    state.fill, state.contents = 1.0, (*state.contents, place.fills)
        state.wet_s = state.wet_s + RULE_PERIOD_S if is_wet else 0.0
        if not is_below:
            state.below_spout_s = 0.0
        if state.wet_s > WASH_S:
            state.is_dirty = False

    def _twist(self, one: Laid, state: ThingState) -> None:
        kind = self.layout.kitchen.kinds[one.spec.kind]
        if not kind.lid or one.spec.stuck or state.roll_rad is None:
            return
        turned = float(self._joint_position()[ROLL]) - state.roll_rad
        if abs(turned) > TWIST_RAD:
            state.is_open, state.roll_rad = turned > 0, None

    def _wipe(self) -> None:
        name = self._held
        if not name or not self.layout.kitchen.kinds[self._laid(name).spec.kind].wipes:
            self._wiped_at = None
            return
        x, y, z = self._at(name)
        bottom = z - self._laid(name).thing.height_m / 2
        where = next(
            (
                place_name
                for place_name, place in self.layout.kitchen.places.items()
                if place.form == "flat" and place.holds(x, y) and abs(bottom - place.z_m) < 0.03
            ),
            "",
        )
        before, self._wiped_at = self._wiped_at, (where, x, y) if where else None
        if where and before is not None and before[0] == where:
            self._wiped_m[where] = self._wiped_m.get(where, 0.0) + math.dist(before[1:], (x, y))
            if self._wiped_m[where] > WIPE_M:
                self.dirty_places.discard(where)

    # --- the truth

    def kitchen(self) -> KitchenTruth:
        """Where everything is and how it is."""
        truth = self.truth()
        self.ever_touched |= set(truth.touched)
        kitchen, found = self.layout.kitchen, []
        for one in self.layout.things:
            name, state = one.thing.name, self.states[one.thing.name]
            x, y, z = self._at(name)
            bottom = z - one.thing.height_m / 2
            held_by = "robot" if self._held == name else "person" if self.in_hand == name else ""
            place = "" if held_by else place_at(kitchen, x, y, bottom) or ("floor" if bottom < 0.08 else "")
            found.append(
                KitchenThing(
                    name=name, kind=one.spec.kind, colour=one.thing.colour, x_m=x, y_m=y, z_m=z,
                    width_m=one.thing.width_m, height_m=one.thing.height_m, place=place, held_by=held_by,
                    fill=state.fill, contents=state.contents, is_dirty=state.is_dirty, is_open=state.is_open,
                    is_emptied=state.is_emptied, was_lifted=state.was_lifted, owner=one.spec.owner,
                )
            )  # fmt: skip
        (hand_yaw, hand_pitch), (face_yaw, face_pitch) = self.pose["hand"], self.pose["face"]
        return KitchenTruth(
            things=tuple(found), dirty_places=tuple(sorted(self.dirty_places)),
            touched=tuple(sorted(self.ever_touched)),
            robot_x_m=truth.robot_x_m, robot_y_m=truth.robot_y_m, robot_heading_rad=truth.robot_heading_rad,
            is_moving=truth.is_moving, hand_m=self._part_m("hand"), hand_yaw_rad=hand_yaw, hand_pitch_rad=hand_pitch,
            gesture=self.gesture, face_m=self._part_m("face"), face_yaw_rad=face_yaw, face_pitch_rad=face_pitch,
            body_m=self._part_m("body"),
        )  # fmt: skip

    def _laid(self, name: str) -> Laid:
        return next(one for one in self.layout.things if one.thing.name == name)
