"""`KitchenVLM`: chooses the actions of one subtask in a kitchen: drive there, pick, carry, put down; by things' ids.

What there is it sees in its head camera's images (`sight`), and it turns the head to see more. `SimulatorEyesVLM` reads
a scene from the simulator instead: with it the suite of the nine skills measures what a robot does with what it sees,
not how well it sees. Conversation, stops and confirmations are `LocalVLM`'s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from nodes.kitchen.policy import stand_for
from nodes.kitchen.vision.grounding import ground_in, is_named
from nodes.msgs import JOINTS, Action, Argument, Image, Scene, SeenObject, Subtask, aimed_at
from nodes.sim.world_file import Place, WorldFile, load_world
from nodes.vlm.local import LocalVLM, hand_at
from nodes.vlm.next_action import LOOKS_ROUND, MOST_TRIES, Decision, Situation, held_up, is_still_good
from nodes.vlm.talk import HoldStill
from runtime import QoS, Subscription

if TYPE_CHECKING:
    from nodes.kitchen.vision.sight import Sight

MOST_DRIVES = 4
LINE_M, HEADING_RAD, ALONG_M = 0.12, 0.10, 2.2
"""A base this near to the line before a place, turned along it, gets to all of it by driving straight."""
GAZE_S, TASK_GAZE_S, FACE_S = 0.8, 1.6, 4.0
"""The head stays so long; where a task waits for something; on a face that is to nod."""
VIEW_RAD = 0.45
"""Places this near to each other are in one picture."""
SEEN_WITHIN_S = 1.5
"""How long after an action the eyes may still show what was before."""
ROOM_M, EDGE_M = 0.15, 0.08
"""Room around what is set down; so far from an edge it stays."""
WITH_THING = ("pick", "place", "take", "rinse", "hand_over", "open", "close", "point")


class KitchenVLM(LocalVLM):
    """`world` is the file with the map of the room ("": ours)."""

    provenance = "model:kitchen-crops-1"
    made_for_joints = JOINTS
    robot_parameter = ""

    def __init__(self, speaker: str = "robot", world: str = "") -> None:
        super().__init__(speaker, looks_round="armed")
        self.kitchen: WorldFile = load_world(world or "kitchen")
        self.now = Scene()
        self.sight: Sight | None = None
        self.gazes: list[SeenObject] = []  # still to be looked at in this round
        self.gaze: SeenObject | None = None
        self.gazed_ns = 0
        self.tried: dict[str, int] = {}  # skill and thing -> failures in this subtask
        self.tried_for = ""
        self.succeeded_ns = 0
        self.counted: set[int] = set()  # actions whose failure is counted already

    def make_talk(self) -> HoldStill:
        return HoldStill()

    # --- what is seen

    def libraries(self) -> tuple[str, ...]:
        return ("onnxruntime", "cv2")

    @classmethod
    def preload(cls) -> None:
        import nodes.kitchen.vision.sight
        import nodes.models.onnx_runtime  # noqa: F401

        super().preload()

    def on_start(self) -> None:
        """Load the network."""
        from nodes.kitchen.vision.crops import CropReader
        from nodes.kitchen.vision.sight import Sight

        super().on_start()
        self.sight = Sight(self.kitchen, CropReader())

    def _look(self) -> None:
        """Take in the newest image, and what gripper and head do."""
        self._see()
        if self.yes_state == "asked" and any(one.gesture == "nod" for one in self.now.people):
            self.hear_of_yes("person says yes")
        held = self._held()
        if held is None and self.holding is not None and not (self.states and self.states[-1].is_grasping):
            self.holding = None
        elif held is not None:
            self.holding = held

    def _see(self) -> None:
        """The newest image, and then the head turns on. Nothing is told before it has looked round once."""
        sight = self.sight
        if sight is None or not self.states:
            return
        sight.grip(self.states[-1], self.body)
        if (posed := self._posed_image()) is not None:
            self.seen, state = posed
            self.looked_ns = self.seen.message.captured_ns
            sight.see(self.seen.message, state, self.body)
            self.shown_ns = sight.image_ns
        self._turn_head(sight)
        if self.has_looked:
            self.now = sight.scene(self.clock.now_ns())

    def _has_seen(self) -> bool:
        return self.has_looked

    def _turn_head(self, sight: Sight) -> None:
        """Where nothing is under way: to the face that a nod is expected of, else round the room, the table most."""
        is_free = (self.doing is None or self.outcome != "running") and not self.is_stopped
        if not is_free or self.skills.latest() is None or not self._may_look_round:
            return
        waited_s = self.clock.since_s(self.gazed_ns)
        face = sight.face_m
        if self.yes_state == "asked" and face is not None:
            if self.gaze is None or self.gaze.label != "face" or waited_s > FACE_S:
                self._gaze_at(_spot("face", face))
            return
        if waited_s < GAZE_S or (self.task is not None and self.has_looked and waited_s < TASK_GAZE_S):
            return
        if not self.gazes:
            self._say("" if self.gaze is not None else LOOKS_ROUND)
            self.has_looked = self.has_looked or self.gaze is not None
            self.gazes = self._round(face)
        self._gaze_at(self.gazes.pop(0))

    def _round(self, face: tuple[float, float, float] | None) -> list[SeenObject]:
        """The room by places, each in view from here, and the table in between, where people are."""
        named = {name: (*place.centre_m, place.z_m) for name, place in self.kitchen.places.items()}
        table = _spot("table", named.pop("table", (0.0, -0.6, 0.5)))
        far: list[tuple[float, SeenObject]] = []
        state = self.states[-1]
        for name, at in sorted(named.items(), key=lambda one: math.atan2(one[1][1], one[1][0])):
            bearing = math.atan2(at[1] - state.base_y_m, at[0] - state.base_x_m)
            if all(abs(math.remainder(bearing - other, 2 * math.pi)) > VIEW_RAD for other, _ in far):
                far.append((bearing, _spot(name, at)))
        spots = [one for _, one in far]
        if not self.has_looked:
            return [table, *spots, table]
        return [one for spot in spots for one in (table, spot, *((_spot("face", face),) if face else ()))]

    def _gaze_at(self, spot: SeenObject) -> None:
        self.gaze, self.gazed_ns = spot, self.clock.now_ns()
        self.looks += 1
        look = Action(id=f"{self.name}-gaze-{self.looks}", skill="look", arguments=aimed_at(spot, "thing"))
        self.action.publish(look, stems_from=self._sources())

    def _things(self) -> tuple[SeenObject, ...]:
        shown = (one for one in self.now.people if one.hand == "open")
        return (*self.now.things, *(hand_at(one.hand_m, f"hand-{one.id}") for one in shown if one.hand_m is not None))

    def _scene(self) -> Scene:
        return self.now

    def _held(self) -> SeenObject | None:
        ids = {one.subject for one in self.now.relations if one.relation == "held by" and one.object == "robot"}
        return next((one for one in self.now.things if one.id in ids), None)

    def _is_there(self, thing: str, place: str) -> bool:
        return any(
            one.subject == thing and one.object == place and one.relation in ("in", "on") for one in self.now.relations
        )

    def _succeeded(self, action: Action) -> None:
        self.succeeded_ns = self.clock.now_ns()
        super()._succeeded(action)

    # --- what to do

    def _decide(self, now: Situation) -> Decision:
        task = now.subtask
        held_up_by = held_up(replace(now, is_to_look=False))  # the head turns by itself here
        if held_up_by is not None or task is None:
            return held_up_by or Decision("keep", "idle", "nothing to do")
        if self.tried_for != task.id:
            self.tried, self.tried_for = {}, task.id
        wanted = self._meant(task)
        if isinstance(wanted, Decision):
            return wanted
        thing = next((one for one in self._things() if one.id == wanted), None)
        if wanted and thing is None:
            return Decision("keep", "failed", f"I do not see the {task.text or wanted} any more")
        held = self._held()
        if held is not None and thing is not None and held.id != thing.id:
            return self._put_down(held)
        return self._work(task, thing, held)

    def _meant(self, task: Subtask) -> str | Decision:
        """The id of the thing of a subtask: as its planner says it, or by its words; "" for none. Or what to ask."""
        named = task.things[0] if task.things else None
        if task.skill not in WITH_THING or (named is not None and named.id):
            return named.id if named is not None else ""
        words = f"{named.colour} {named.label}".strip() if named is not None else task.text
        found = ground_in(words, self.now, self.sight.likely() if self.sight is not None else None)
        if not found or (len(found) == 1 and is_named(words, found[0])):
            return found[0].id if found else ""
        names = " or ".join(f"the {one.name}" for one in found)
        return Decision("keep", "failed", f"I am not sure whether {names} is meant by “{words}”")

    def _work(self, task: Subtask, thing: SeenObject | None, held: SeenObject | None) -> Decision:
        place = next((one for one in self._things() if one.is_place and one.label == task.place), None)
        has_it = held is not None and thing is not None and held.id == thing.id
        match task.skill:
            case "place" if thing is not None:
                return self._place(task, thing, place, has_it=has_it)
            case "pick" | "take" if thing is not None:
                return Decision("keep", "finished", f"holding the {thing.name}") if has_it else self._get(thing)
            case "rinse" | "wipe" if thing is not None and place is not None:
                if self._succeeded_in(task):
                    return Decision("keep", "finished", f"done with {task.text}")
                return self._do(task.skill, place, place) if has_it else self._get(thing)
            case "hand_over" if thing is not None:
                return self._hand_over(task, thing, has_it=has_it)
            case "wait_here" if thing is not None:
                fills = self.kitchen.places[task.place].fills if task.place in self.kitchen.places else ""
                if fills in thing.state:
                    return Decision("keep", "finished", f"there is {fills} in the {thing.name}")
                return Decision("keep", "working", f"waiting at the {task.place}")
            case "put_back" if held is not None:
                return self._put_down(held)
        if self._succeeded_in(task):
            return Decision("keep", "finished", f"done with {task.text}")
        target = thing or place
        return self._do(task.skill, target, target)

    def _place(self, task: Subtask, thing: SeenObject, place: SeenObject | None, *, has_it: bool) -> Decision:
        if not has_it and self._is_there(thing.id, task.place):
            return Decision("keep", "finished", f"put the {thing.name} there")
        if self._succeeded_in(task) and self.clock.since_s(self.succeeded_ns) < SEEN_WITHIN_S:
            return Decision("keep", "working", f"looking where the {thing.name} is")
        if place is None:
            return Decision("keep", "failed", f"I know no {task.place}")
        return self._do("place", self._spot_on(place), thing) if has_it else self._get(thing)

    def _hand_over(self, task: Subtask, thing: SeenObject, *, has_it: bool) -> Decision:
        is_giving = self.doing is not None and self.doing.skill == "hand_over" and self.done_for == task.id
        is_theirs = is_giving and not has_it and any(
            one.subject == thing.id and one.relation == "held by" for one in self.now.relations
        )  # fmt: skip
        if is_theirs and self.outcome == "running":
            return Decision("keep", "working", f"drawing back from the {thing.name}")
        if is_theirs or self._succeeded_in(task):
            return Decision("keep", "finished", f"gave the {thing.name}")
        if not has_it:
            return self._get(thing)
        hand = next((one for one in self._things() if one.label == "hand"), None)
        if hand is None:
            say = f"Here is the {thing.name}. Please hold out your hand."
            return Decision("keep", "working", "waiting for an open hand", say=say)
        return self._do("hand_over", hand, hand)

    def _get(self, thing: SeenObject) -> Decision:
        was_got = self.doing is not None and self.doing.skill in ("pick", "take") and self.outcome == "success"
        if was_got and self.clock.since_s(self.succeeded_ns) < SEEN_WITHIN_S:
            return Decision("keep", "working", f"looking whether I hold the {thing.name}")
        is_offered = any(one.subject == thing.id and one.relation == "held by" for one in self.now.relations)
        return self._do("take" if is_offered else "pick", thing, thing)

    def _put_down(self, held: SeenObject) -> Decision:
        """On the nearest flat place: what is held is not what is wanted now."""
        state = self.states[-1]
        flat = [
            one
            for one in self.now.things
            if one.is_place and one.height_m == 0.0 and one.label in ("table", "countertop")
        ]
        nearest = min(flat, key=lambda one: math.dist((one.x_m, one.y_m), (state.base_x_m, state.base_y_m)))
        return self._do("place", self._spot_on(nearest), held)

    def _succeeded_in(self, task: Subtask) -> bool:
        is_mine = self.doing is not None and self.done_for == task.id and self.doing.skill == task.skill
        return is_mine and self.outcome == "success"

    def _do(self, skill: str, target: SeenObject | None, about: SeenObject | None) -> Decision:
        """The action, or the way to it; or what is under way, or why it cannot be."""
        name = about.name if about is not None else ""
        text = f"{skill.replace('_', ' ')} {name}".strip()
        if skill in ("pick", "take"):
            text = f"picking up the {name}"
        is_reached = target is None or skill in ("look", "nod", "shake", "retreat", "hold") or self._reaches(target)
        step = skill if is_reached or skill == "drive" else "drive"
        key = f"{step} {name}"
        doing = self.doing
        is_same = doing is not None and doing.skill == step and self.done_for == (self.task.id if self.task else "")
        is_same = is_same and _is_near(doing.target if doing is not None else None, target, step)
        if is_same and self.outcome == "running":
            return Decision("keep", "working", text)
        if is_same and self.outcome == "failure" and self.actions not in self.counted:
            self.counted.add(self.actions)
            self.tried[key] = self.tried.get(key, 0) + 1
        if self.tried.get(key, 0) >= (MOST_DRIVES if step == "drive" else MOST_TRIES):
            return Decision("keep", "failed", self.why or f"I cannot {text}", code=self.code)
        if self.tried.get(key, 0) and self.code == "out_of_reach" and step != "drive":
            return Decision("keep", "failed", self.why, code=self.code)
        say = ""
        if step == "drive" and target is not None:
            where = target.label if target.is_place else f"{name}"
            is_blocked = self.tried.get(key, 0) > 0
            say = "Excuse me, may I pass?" if is_blocked else f"I drive to the {where}." if where != "hand" else ""
        elif skill in ("pick", "take"):
            say = f"I try the {name} again." if self.tried.get(key, 0) else f"I will pick up the {name}."
        argument = {"place": "place", "drive": "place", "rinse": "place", "wipe": "place", "hand_over": "person"}
        arguments = () if target is None else (Argument(name=argument.get(step, "thing"), thing=target),)
        return Decision(step, "working", text, target, say, arguments)

    def _reaches(self, target: SeenObject) -> bool:
        if not self.states:
            return True
        state = self.states[-1]
        x, y, heading = stand_for(self.kitchen, target.x_m, target.y_m)
        turned = math.remainder(heading - state.base_heading_rad, 2 * math.pi)
        dx, dy = x - state.base_x_m, y - state.base_y_m
        beside = -dx * math.sin(heading) + dy * math.cos(heading)
        along = dx * math.cos(heading) + dy * math.sin(heading)
        return abs(turned) < HEADING_RAD and abs(beside) < LINE_M and abs(along) < ALONG_M

    def _spot_on(self, place: SeenObject) -> SeenObject:
        """Where on a flat place there is room; a box as it is."""
        found = self.kitchen.places.get(place.label)
        if found is None or place.height_m > 0.0:
            return place
        held = self._held()
        taken = [
            (one.x_m, one.y_m) for one in self.now.things if not one.is_place and (held is None or one.id != held.id)
        ]
        best = _free_point(found, taken, self.states[-1].base_x_m if self.states else 0.0)
        x, y = best
        doing = self.doing if self.outcome == "running" else None
        if doing is not None and doing.skill in ("place", "drive") and doing.target is not None:
            before = (doing.target.x_m, doing.target.y_m)
            x, y = before if found.holds(*before) and is_still_good(before, best, taken) else best
        spot: SeenObject = msgspec.structs.replace(place, x_m=x, y_m=y)  # type: ignore[type-var]  # a Struct
        return spot


class SimulatorEyesVLM(KitchenVLM):
    """Sees what the simulator's stand-in eyes publish, and no image."""

    provenance = "script:kitchen-vlm-1"
    eyes = Subscription(Scene, "sim/eyes")
    image = Subscription(Image, "head/image", qos=QoS(required=False))  # nobody looks at one here

    def libraries(self) -> tuple[str, ...]:
        return ()

    @classmethod
    def preload(cls) -> None:
        """No network."""

    def on_start(self) -> None:
        LocalVLM.on_start(self)

    def _see(self) -> None:
        self.now = self.eyes.latest() or self.now

    def _has_seen(self) -> bool:
        return True


def _spot(name: str, at: tuple[float, float, float]) -> SeenObject:
    """A place to look at."""
    return SeenObject(
        id=f"gaze-{name}", label=name, colour="", x_m=at[0], y_m=at[1], z_m=at[2], width_m=0.0, height_m=0.0, u_px=0.0,
        v_px=0.0, is_place=True,
    )  # fmt: skip


def _free_point(place: Place, taken: Sequence[tuple[float, float]], x_m: float) -> tuple[float, float]:
    half = max(place.length_m / 2 - EDGE_M, 0.0)
    alongs = [step * 0.06 for step in range(-20, 21) if abs(step * 0.06) <= half] or [0.0]
    deeps: tuple[float, ...] = (0.12, 0.18)
    if place.length_m <= 0.5:  # something small is used up to its corners
        alongs = [*alongs, -half, half]
        deeps = (0.14, 0.10, *(deep for deep in (0.20, 0.26, 0.30) if deep <= place.depth_m - EDGE_M))
    points = [place.point_m(along, deep) for deep in deeps for along in alongs]
    free = [at for at in points if all(math.dist(at, other) > ROOM_M for other in taken)]
    if free:
        return min(free, key=lambda at: math.dist(at, place.point_m(0.0, 0.12)))
    return max(points, key=lambda at: min(math.dist(at, other) for other in taken))


def _is_near(one: SeenObject | None, other: SeenObject | None, step: str) -> bool:
    if one is None or other is None:
        return one is other
    return math.dist((one.x_m, one.y_m), (other.x_m, other.y_m)) < (0.3 if step == "drive" else 0.12)
