"""What eyes in the kitchen see, as a `Scene`: a stand-in for a camera and a detector, made from the simulator's state.

It tells what can be seen: things, how they stand, how full and how dirty they are, where a hand is, how it is held,
and how a head moves. It does not tell what anybody means: what is pointed at follows from the hand's direction, a nod
from the movement of the head. Things at the person's side are not seen.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence

from nodes.kitchen.messages import KitchenThing, KitchenTruth
from nodes.kitchen.robot import PARKED_X_M
from nodes.kitchen.world import Kitchen, relations_of, seen_place
from nodes.msgs import Scene, SeenObject, SeenPerson
from nodes.perception.gestures import direction_of, nearest_to_line, swings
from runtime.clock import to_ns

NOISE_M = 0.003
POINT_AT_M, LOOK_AT_M = 0.10, 0.25
"""How far beside the line of a finger, or of a gaze, a thing may be."""
GESTURE_S = 1.6


class IdealDetector:
    """Remembers numbers of things and the last moments of a head."""

    def __init__(self, kitchen: Kitchen, person: str, seed: int) -> None:
        self._kitchen = kitchen
        self._person = person
        self._noise = random.Random(f"eyes/{seed}")
        self._ids: dict[str, str] = {}
        self._head: deque[tuple[int, float, float]] = deque()

    def see(self, truth: KitchenTruth, now_ns: int) -> Scene:
        """What is to be seen now."""
        is_hand_seen = truth.hand_m[0] < PARKED_X_M
        shown = [one for one in truth.things if one.held_by != "person" or is_hand_seen]
        things = [self._thing(one) for one in shown]
        places = [
            seen_place(name, place, is_dirty=name in truth.dirty_places) for name, place in self._kitchen.places.items()
        ]
        holders = {"": "", "robot": "robot", "person": self._person}
        standing = [(seen, holders[one.held_by], one.place) for one, seen in zip(shown, things, strict=True)]
        return Scene(
            things=(*things, *places), relations=relations_of(self._kitchen, standing),
            people=(self._see_person(truth, things, now_ns),), kinds=tuple(self._kitchen.kinds),
            places=tuple(self._kitchen.places),
        )  # fmt: skip

    def _thing(self, one: KitchenThing) -> SeenObject:
        if one.name not in self._ids:
            self._ids[one.name] = f"{one.kind.replace(' ', '-')}-{len(self._ids) + 1}"
        state = [word for word, is_so in (("dirty", one.is_dirty), ("open", one.is_open)) if is_so]
        if one.fill > 0.0:
            state.append("full" if one.fill > 0.8 else "half full")
        state += one.contents
        x, y, z = (value + self._noise.gauss(0.0, NOISE_M) for value in (one.x_m, one.y_m, one.z_m))
        return SeenObject(
            id=self._ids[one.name], label=one.kind, colour=one.colour if one.colour != "clear" else "", x_m=x, y_m=y,
            z_m=z, width_m=one.width_m, height_m=one.height_m, u_px=0.0, v_px=0.0, state=tuple(state), owner=one.owner,
        )  # fmt: skip

    def _see_person(self, truth: KitchenTruth, things: Sequence[SeenObject], now_ns: int) -> SeenPerson:
        is_hand_seen = truth.hand_m[0] < PARKED_X_M
        held = (
            next((self._ids[one.name] for one in truth.things if one.held_by == "person"), "") if is_hand_seen else ""
        )
        pointed = ""
        if is_hand_seen and truth.gesture == "point":
            line = direction_of(truth.hand_yaw_rad, truth.hand_pitch_rad)
            pointed = _nearest(truth.hand_m, line, things, POINT_AT_M)
        gaze = direction_of(truth.face_yaw_rad, truth.face_pitch_rad)
        self._head.append((now_ns, truth.face_pitch_rad, truth.face_yaw_rad))
        while self._head[0][0] < now_ns - to_ns(GESTURE_S):
            self._head.popleft()
        nods, shakes = (swings([sample[axis] for sample in self._head]) for axis in (1, 2))
        return SeenPerson(
            id=self._person, x_m=truth.body_m[0], y_m=truth.body_m[1], holds=held,
            points_at=pointed, looks_at=_nearest(truth.face_m, gaze, things, LOOK_AT_M),
            hand_m=truth.hand_m if is_hand_seen else None,
            hand="" if not is_hand_seen else "open" if truth.gesture == "open" and not held else
            "point" if truth.gesture == "point" else "",
            gesture="nod" if nods >= 3 else "shake" if shakes >= 3 else "",
        )  # fmt: skip


def _nearest(
    start: tuple[float, float, float], line: tuple[float, float, float], things: Sequence[SeenObject], within_m: float
) -> str:
    """The id of the thing nearest to a line from the start on; "" where none is near."""
    number = nearest_to_line(start, line, [(one.x_m, one.y_m, one.z_m) for one in things], within_m)
    return things[number].id if number is not None else ""
