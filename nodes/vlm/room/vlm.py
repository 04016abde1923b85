"""`KitchenVLM`: a VLM for a room with a map, which sees things by its head camera's images and turns the head for more.

`SimulatorEyesVLM` reads a scene from the simulator instead: with it the suite of the nine skills measures what a robot
does with what it sees, not how well it sees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from nodes.msgs import JOINTS, Image, RobotState, Scene, SeenObject
from nodes.sim.world.world_file import WorldFile, load_world
from nodes.vlm.belief import SceneBelief
from nodes.vlm.choice.next_action import LOOKS_ROUND, MappedRoom, decide
from nodes.vlm.choice.situation import Situation
from nodes.vlm.choice.things import HAND, spot
from nodes.vlm.eyes.poses import Images
from nodes.vlm.node import VLM
from nodes.vlm.parts import EyesAsk, Moment, VLMEyes
from nodes.vlm.room.grounding import ground_in, is_named
from nodes.vlm.talk import HoldStill
from runtime import QoS, Subscription, to_s

if TYPE_CHECKING:
    from nodes.vlm.room.sight import Sight

GAZE_S, TASK_GAZE_S, FACE_S = 0.8, 1.6, 4.0
"""The head stays so long; where a task waits for something; on a face that is to nod."""
VIEW_RAD = 0.45
"""Places this near to each other are in one picture."""

Likely = Mapping[str, Mapping[str, float]]


class SightEyes(VLMEyes):
    """See by images; nothing is told before the head has gone round once, which takes `sight`."""

    has_seen = False

    def __init__(self, kitchen: WorldFile, belief: SceneBelief) -> None:
        self.kitchen, self.belief = kitchen, belief
        self.sight: Sight | None = None  # once the network is loaded
        self._images = Images()
        self._gazes: list[SeenObject] = []  # still to be looked at in this round
        self._gaze: SeenObject | None = None
        self._gazed_ns = 0

    @property
    def likely(self) -> Likely | None:
        """How likely each thing of the scene is of each kind, by id."""
        return self.sight.likely() if self.sight is not None else None

    def look(self, now: Moment) -> EyesAsk:
        """The newest image, and then the head turns on."""
        sight = self.sight
        if sight is None or not now.states:
            return EyesAsk()
        sight.grip(now.states[-1], now.body)
        if (posed := self._images.posed(now.image, now.states, now.body)) is not None:
            self.seen, state = posed
            sight.see(self.seen.message, state, now.body)
            self.shown_ns = sight.image_ns
        gaze, say = self._turn(sight, now)
        if self.has_seen:
            self.belief.take(sight.scene(now.now_ns), is_grasping=now.is_grasping)
        return EyesAsk(gaze, say, _nods(self.belief.now))

    def _turn(self, sight: Sight, now: Moment) -> tuple[SeenObject | None, str]:
        """Where the head turns, and what is said of it: to the face that a nod is expected of, else round the room, the
        table most.
        """
        if now.skills is None or not now.may_turn:
            return None, ""
        waited_s = to_s(now.now_ns - self._gazed_ns)
        face, gaze, say = sight.face_m, self._gaze, ""
        if now.is_asked and face is not None:
            if gaze is not None and gaze.label == "face" and waited_s <= FACE_S:
                return None, ""
            gaze = _spot("face", face)
        elif waited_s < GAZE_S or (now.task is not None and self.has_seen and waited_s < TASK_GAZE_S):
            return None, ""
        else:
            if not self._gazes:
                say = "" if gaze is not None else LOOKS_ROUND
                self.has_seen = self.belief.has_looked = self.has_seen or gaze is not None
                self._gazes = self._round(face, now.states[-1])
            gaze = self._gazes.pop(0)
        self._gaze, self._gazed_ns = gaze, now.now_ns
        return gaze, say

    def _round(self, face: tuple[float, float, float] | None, state: RobotState) -> list[SeenObject]:
        """The room by places, each in view from here, and the table in between, where people are."""
        named = {name: (*place.centre_m, place.z_m) for name, place in self.kitchen.places.items()}
        table = _spot("table", named.pop("table", (0.0, -0.6, 0.5)))
        far: list[tuple[float, SeenObject]] = []
        for name, at in sorted(named.items(), key=lambda one: math.atan2(one[1][1], one[1][0])):
            bearing = math.atan2(at[1] - state.base_y_m, at[0] - state.base_x_m)
            if all(abs(math.remainder(bearing - other, 2 * math.pi)) > VIEW_RAD for other, _ in far):
                far.append((bearing, _spot(name, at)))
        spots = [one for _, one in far]
        if not self.has_seen:
            return [table, *spots, table]
        return [one for each in spots for one in (table, each, *((_spot("face", face),) if face else ()))]


class KitchenVLM(VLM):
    """`world` is the file with the map of the room ("": ours)."""

    provenance = "model:kitchen-crops-1"
    made_for_joints = JOINTS

    def __init__(self, speaker: str = "robot", world: str = "") -> None:
        belief, kitchen = SceneBelief(), load_world(world or "kitchen")
        self.by_images = SightEyes(kitchen, belief)
        room = MappedRoom(kitchen, lambda text, now: meant(text, now, self.by_images.likely))
        super().__init__(
            self.by_images, belief, HoldStill(), lambda now: decide(now, room), speaker=speaker, looks_round="armed"
        )

    def libraries(self) -> tuple[str, ...]:
        return ("onnxruntime", "cv2")

    def on_start(self) -> None:
        """Load the network."""
        from nodes.vlm.room.crops import CropReader
        from nodes.vlm.room.sight import Sight

        super().on_start()
        self.by_images.sight = Sight(self.by_images.kitchen, CropReader())


class ToldEyes(VLMEyes):
    """Take the newest scene that is published."""

    def __init__(self, newest: Callable[[], Scene | None], belief: SceneBelief) -> None:
        self._newest, self.belief = newest, belief

    def look(self, now: Moment) -> EyesAsk:
        self.belief.take(self._newest() or self.belief.now, is_grasping=now.is_grasping)
        return EyesAsk(is_yes=_nods(self.belief.now))


class SimulatorEyesVLM(VLM):
    """Sees what the simulator's stand-in eyes publish, and no image. `world` is the map of the room ("": ours)."""

    provenance = "script:kitchen-vlm-1"
    made_for_joints = JOINTS

    shown = Subscription(Scene, "sim/eyes")
    image = Subscription(Image, "head/image", qos=QoS(required=False))  # nobody looks at one here

    def __init__(self, speaker: str = "robot", world: str = "") -> None:
        belief, room = SceneBelief(), MappedRoom(load_world(world or "kitchen"), meant)
        super().__init__(
            ToldEyes(lambda: self.shown.latest(), belief), belief, HoldStill(), lambda now: decide(now, room),
            speaker=speaker, looks_round="armed",
        )  # fmt: skip

    @classmethod
    def preload(cls) -> None:
        """No network, and no images."""


def meant(words: str, now: Situation, likely: Likely | None = None) -> tuple[Sequence[SeenObject], bool]:
    """The things that words may mean, and whether they name the first; `likely`: how likely each is of each kind."""
    things = tuple(one for one in now.objects if one.label != HAND)
    found = ground_in(words, Scene(things=things, relations=now.relations), likely)
    return found, bool(found) and is_named(words, found[0])


def _nods(scene: Scene) -> bool:
    return any(one.gesture == "nod" for one in scene.people)


def _spot(name: str, at: tuple[float, float, float]) -> SeenObject:
    """A place to look at."""
    return spot(name, *at, ident=f"gaze-{name}")
