"""What eyes in a world see, as a `Scene`: a stand-in for a camera and a detector, made from the simulator's state.

It tells what can be seen: things, how they stand, how full and how dirty they are, where a hand is, how it is held,
and how a head moves. It does not tell what anybody means: what is pointed at follows from the hand's direction, a nod
from the movement of the head. Things at the person's side are not seen.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence

from nodes.msgs import Scene, SeenObject, SeenPerson
from nodes.perception.gestures import direction_of, nearest_to_line, swings
from nodes.sim.messages import BodyPart, ObjectTruth, Obstacles, Truth
from nodes.sim.world.scenario import layout_of, load_scenario
from nodes.sim.world.world_file import WorldFile, relations_of, seen_place
from runtime import Node, Publisher, Subscription, on, to_ns

NOISE_M = 0.003
POINT_AT_M, LOOK_AT_M = 0.10, 0.25
"""How far beside the line of a finger, or of a gaze, a thing may be."""
GESTURE_S = 1.6
PARKED_X_M = 1.6
"""A hand beyond this is at the person's side, and shows nobody what it holds."""
NOWHERE = BodyPart(part="hand", x_m=PARKED_X_M, y_m=0.0, z_m=0.0)


class SimulatorEyes(Node):
    """Tells what can be seen in the simulated world, and what a range finder at the base finds."""

    truth = Subscription(Truth, "sim/truth")
    scene = Publisher(Scene, "sim/eyes")
    obstacles = Publisher(Obstacles, "obstacles")

    def __init__(self) -> None:
        self._eyes: IdealDetector | None = None
        self._still: tuple[tuple[float, float, float], ...] = ()

    @on(truth)
    def look(self, truth: Truth) -> None:
        """What is to be seen of it; the first one says which world the run's seed has laid out."""
        if self._eyes is None:
            layout, seed = layout_of(truth.scenario, self.run_info.seed), self.run_info.seed
            self._eyes = IdealDetector(layout.world, load_scenario(truth.scenario).person, seed)
            self._still = tuple((x, y, one.radius_m) for _, x, y, one in layout.obstacles)
        self.scene.publish(self._eyes.see(truth, self.clock.now_ns()))
        body = truth.person.get("body")
        people = ((body.x_m, body.y_m, 0.16),) if body is not None else ()
        self.obstacles.publish(Obstacles(furniture=self._still, people=people))


class IdealDetector:
    """Remembers numbers of things and the last moments of a head."""

    def __init__(self, world: WorldFile, person: str, seed: int) -> None:
        self._world = world
        self._person = person
        self._noise = random.Random(f"eyes/{seed}")
        self._ids: dict[str, str] = {}
        self._head: deque[tuple[int, float, float]] = deque()

    def see(self, truth: Truth, now_ns: int) -> Scene:
        """What is to be seen now."""
        is_hand_seen = truth.person.get("hand", NOWHERE).x_m < PARKED_X_M
        shown = [one for one in truth.objects if one.held_by != "person" or is_hand_seen]
        things = [self._thing(one) for one in shown]
        places = [
            seen_place(name, place, is_dirty=name in truth.dirty_places) for name, place in self._world.places.items()
        ]
        holders = {"": "", "robot": "robot", "person": self._person}
        standing = [(seen, holders[one.held_by], one.place) for one, seen in zip(shown, things, strict=True)]
        return Scene(
            things=(*things, *places), relations=relations_of(self._world, standing),
            people=(self._see_person(truth, things, now_ns),), kinds=tuple(self._world.kinds),
            places=tuple(self._world.places),
        )  # fmt: skip

    def _thing(self, one: ObjectTruth) -> SeenObject:
        if one.name not in self._ids:
            self._ids[one.name] = f"{one.label.replace(' ', '-')}-{len(self._ids) + 1}"
        state = [word for word, is_so in (("dirty", one.is_dirty), ("open", one.is_open)) if is_so]
        if one.fill > 0.0:
            state.append("full" if one.fill > 0.8 else "half full")
        state += one.contents
        x, y, z = (value + self._noise.gauss(0.0, NOISE_M) for value in (one.x_m, one.y_m, one.z_m))
        return SeenObject(
            id=self._ids[one.name], label=one.label, colour=one.colour if one.colour != "clear" else "", x_m=x, y_m=y,
            z_m=z, width_m=one.width_m, height_m=one.height_m, u_px=0.0, v_px=0.0, state=tuple(state), owner=one.owner,
        )  # fmt: skip

    def _see_person(self, truth: Truth, things: Sequence[SeenObject], now_ns: int) -> SeenPerson:
        parts = truth.person
        hand, face, body = (parts.get(part, NOWHERE) for part in ("hand", "face", "body"))
        is_hand_seen, gesture = hand.x_m < PARKED_X_M, hand.gesture
        held = (
            next((self._ids[one.name] for one in truth.objects if one.held_by == "person"), "") if is_hand_seen else ""
        )
        pointed = ""
        if is_hand_seen and gesture == "point":
            line = direction_of(hand.yaw_rad, hand.pitch_rad)
            pointed = nearest_to_line(_point(hand), line, things, POINT_AT_M)
        gaze = direction_of(face.yaw_rad, face.pitch_rad)
        self._head.append((now_ns, face.pitch_rad, face.yaw_rad))
        while self._head[0][0] < now_ns - to_ns(GESTURE_S):
            self._head.popleft()
        nods, shakes = (swings([sample[axis] for sample in self._head]) for axis in (1, 2))
        return SeenPerson(
            id=self._person, x_m=body.x_m, y_m=body.y_m, holds=held,
            points_at=pointed, looks_at=nearest_to_line(_point(face), gaze, things, LOOK_AT_M),
            hand_m=_point(hand) if is_hand_seen else None,
            hand="" if not is_hand_seen else "open" if gesture == "open" and not held else
            "point" if gesture == "point" else "",
            gesture="nod" if nods >= 3 else "shake" if shakes >= 3 else "",
        )  # fmt: skip


def _point(part: BodyPart) -> tuple[float, float, float]:
    return part.x_m, part.y_m, part.z_m
