"""`TypedTopics`: what viewers know by name, made of a graph's messages: the same in a recording and in a live view.

- `transforms` (FrameTransforms) and `joints` (JointStates) of `robot/state`, 10 times a second
- `robot_description` (a URDF) and `scene/robot` (its shapes, meshes included), once
- `scene/things`: things, places and the table, of `scene`
- `scene/people`: those who are seen, of `scene`; a simulated person's hand and foot, of `sim/body`
- `scene/plan`: what the `action` goes to, and the way under the `chunk` or `command` of now, 4 times a second
- `scene/guard`: the body as the guard knows it, coloured by its mode, and its boxes, 4 times a second
- `TOPIC/calibration` (CameraCalibration) beside images, once a second and when it changes
- `log/conversation` and `log` (Log) of `heard`, `said` and journals; `events` (Event) of `interrupt`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from nodes.mcap.schema import ENVELOPE_KEY, Document, envelope_document
from nodes.msgs import (
    JOINTS,
    Action,
    ActionChunk,
    GuardState,
    Image,
    Interrupt,
    JointCommand,
    RobotState,
    Scene,
    Utterance,
)
from nodes.recording.foxglove import scene as drawn
from nodes.recording.foxglove.schemas import (
    CALIBRATION_NAME,
    DESCRIPTION_NAME,
    EVENT_NAME,
    JOINTS_NAME,
    LOG_NAME,
    SCENE_NAME,
    TRANSFORMS_NAME,
    time_document,
)
from nodes.robot.looks import BASE, ODOMETRY, Looks, looks_of
from nodes.robot.path_preview import path
from nodes.robot.protocol import Ball
from nodes.robot.robot_from_launch import DEFAULT, load_limits, outline_of
from nodes.robot.urdf import quaternion, turned, urdf_text
from nodes.sim.messages import BodyPart
from runtime.errors import ParameterError, UserError
from runtime.journal.calls import Calls
from runtime.message import Stamped

TRANSFORM_PERIOD_NS = 100_000_000
SCENE_PERIOD_NS = 250_000_000
CALIBRATION_PERIOD_NS = 1_000_000_000
FRESH_NS = 1_000_000_000
"""A chunk or a command that is older says nothing of where the robot goes."""
ASSETS = "package://robot/"
_LEVELS = ((50, 5), (40, 4), (30, 3), (20, 2), (0, 1))

TOPICS: Mapping[str, str] = {
    "transforms": TRANSFORMS_NAME,
    "joints": JOINTS_NAME,
    "robot_description": DESCRIPTION_NAME,
    "scene/robot": SCENE_NAME,
    "scene/things": SCENE_NAME,
    "scene/people": SCENE_NAME,
    "scene/plan": SCENE_NAME,
    "scene/guard": SCENE_NAME,
    "log/conversation": LOG_NAME,
    "log": LOG_NAME,
    "events": EVENT_NAME,
}
"""What is made, and its schema; calibrations beside images come to it."""
MADE_OF: Mapping[str, tuple[str, ...]] = {
    "robot/state": ("transforms", "joints", "robot_description", "scene/robot", "scene/plan", "scene/guard"),
    "guard/state": ("scene/guard",),
    "scene": ("scene/things", "scene/people"),
    "sim/body": ("scene/people",),
    "action": ("scene/plan",),
    "chunk": ("scene/plan",),
    "command": ("scene/plan",),
    "heard": ("log/conversation",),
    "said": ("log/conversation",),
    "interrupt": ("events",),
}
"""By our topic."""


class ViewerDocument(NamedTuple):
    """One document for viewers."""

    topic: str
    schema: str
    document: Document


class TypedTopics:
    """Of one run, one after another. `robot` is what `[run] robot` names, "": a Stretch where the joints are one's.

    `parameters` are those of all nodes, by name: where the guard's boxes are. `tell` hears in a sentence what of the
    robot cannot be shown; the rest is.
    """

    def __init__(
        self,
        robot: str,
        joints: Sequence[str],
        parameters: Mapping[str, Mapping[str, Any]],
        *,
        wall_offset_ns: int,
        tell: Callable[[str], None],
    ) -> None:
        self.robot, self.joints, self.wall_offset_ns, self.tell = robot, tuple(joints), wall_offset_ns, tell
        self._is_known = False
        self._looks: Looks | None = None
        self._outline: Callable[[tuple[float, ...]], Sequence[Ball]] | None = None
        self._boxes = list(_boxes(parameters))
        self._again: dict[str, int] = {}
        self._sketches = {topic: drawn.Sketch() for topic, schema in TOPICS.items() if schema == SCENE_NAME}
        self._mode = "disarmed"
        self._target: Action | None = None
        self._command: tuple[JointCommand, int] | None = None
        self._chunk: tuple[ActionChunk, int] | None = None
        self._people: dict[str, Document] = {}
        self._parts: dict[str, Document] = {}
        self._lenses: dict[str, tuple[float, int, int]] = {}

    def begin_again(self) -> None:
        """A new file, or somebody who begins to look: what is told once is told once more."""
        self._again.clear()

    def of(self, stamped: Stamped[Any]) -> Iterator[ViewerDocument]:
        """What viewers see of one message."""
        message, envelope = stamped.message, stamped.envelope
        for made in self._made(message, envelope.topic, envelope.published_ns):
            document = made.document if _is_finite(made.document) else _finite(made.document)
            if document is not None:
                document[ENVELOPE_KEY] = envelope_document(envelope)
                yield made._replace(document=document)
        if isinstance(message, Calls):
            for line in message.logs:
                document = self._log(line.at_ns, line.text, envelope.source, line.level)
                yield ViewerDocument("log", LOG_NAME, {**document, ENVELOPE_KEY: envelope_document(envelope)})

    def _made(self, message: Any, topic: str, now_ns: int) -> Iterator[ViewerDocument]:
        match message:
            case RobotState() if topic == "robot/state":
                yield from self._of_state(message, now_ns)
            case Image():
                yield from self._of_image(message, topic, now_ns)
            case Scene() if topic == "scene":
                yield self._update("scene/things", [drawn.thing_entity(one) for one in message.things], now_ns)
                if message.people or self._people:
                    self._people = {one.id: drawn.person_entity(one) for one in message.people}
                    yield self._update("scene/people", [*self._people.values(), *self._parts.values()], now_ns)
            case BodyPart():
                self._parts[message.part] = drawn.body_part_entity(message)
                yield self._update("scene/people", [*self._people.values(), *self._parts.values()], now_ns)
            case Action() if topic == "action":
                self._target = message
            case ActionChunk() if topic == "chunk":
                self._chunk = (message, now_ns)
            case JointCommand() if topic == "command":
                self._command = (message, now_ns)
            case GuardState() if topic == "guard/state":
                self._mode = message.mode
            case Utterance() if topic in ("heard", "said"):
                yield ViewerDocument("log/conversation", LOG_NAME, self._log(now_ns, message.text, message.speaker, 20))
            case Interrupt():
                facts = [{"key": key, "value": str(getattr(message, key))} for key in ("id", "depth", "by", "text")]
                stamp = time_document(now_ns + self.wall_offset_ns)
                yield ViewerDocument("events", EVENT_NAME, {"start_time": stamp, "end_time": stamp, "metadata": facts})
            case _:
                pass

    def _of_state(self, state: RobotState, now_ns: int) -> Iterator[ViewerDocument]:
        if not self._is_known:
            self._learn(len(state.position))
        looks = self._looks if self._looks is not None and len(self._looks.joints) == len(state.position) else None
        if looks is not None and self._is_due("robot", now_ns, 0):
            yield ViewerDocument("robot_description", DESCRIPTION_NAME, {"data": described(looks)})
            entities, problem = drawn.robot_entities(looks)
            if problem:
                self.tell(f"not all of the robot is shown: {problem}")
            yield self._update("scene/robot", entities, now_ns)
        if self._is_due("transforms", state.read_ns, TRANSFORM_PERIOD_NS):
            yield ViewerDocument("transforms", TRANSFORMS_NAME, self.transforms(state))
            yield ViewerDocument("joints", JOINTS_NAME, self._joint_states(state))
        if self._is_due("scene", now_ns, SCENE_PERIOD_NS):
            yield self._update("scene/plan", list(self._plan(state, looks, now_ns)), now_ns)
            yield self._update("scene/guard", list(self._guard(state)), now_ns)

    def transforms(self, state: RobotState) -> Document:
        """Where base, links and cameras are: odometry -> base -> each link; of an unknown robot the base alone."""
        if not self._is_known:
            self._learn(len(state.position))
        stamp = time_document(state.read_ns + self.wall_offset_ns)
        turn = quaternion(turned((0.0, 0.0, 1.0), state.base_heading_rad))
        rows = [(ODOMETRY, BASE, (state.base_x_m, state.base_y_m, 0.0), turn)]
        if self._looks is not None and len(self._looks.joints) == len(state.position):
            rows += self._looks.transforms(state.position)
        return {
            "transforms": [
                {
                    "timestamp": stamp,
                    "parent_frame_id": parent,
                    "child_frame_id": child,
                    "translation": {axis: round(part, 6) for axis, part in zip("xyz", place, strict=True)},
                    "rotation": {axis: round(part, 7) for axis, part in zip("xyzw", rotation, strict=True)},
                }
                for parent, child, place, rotation in rows
            ]
        }

    def _joint_states(self, state: RobotState) -> Document:
        number = len(state.position)
        names = self.joints or (JOINTS if number == len(JOINTS) else ())
        names = names if len(names) == number else tuple(f"joint_{place}" for place in range(1, number + 1))
        rows = zip(names, state.position, state.velocity, state.effort, strict=False)
        return {
            "timestamp": time_document(state.read_ns + self.wall_offset_ns),
            "joints": [{"name": name, "position": p, "velocity": v, "effort": e} for name, p, v, e in rows],
        }

    def _plan(self, state: RobotState, looks: Looks | None, now_ns: int) -> Iterator[Document]:
        if self._target is not None and (target := self._target.target) is not None:
            yield drawn.target_entity(target, self._target.text or self._target.skill)
        if looks is None or not looks.hand:
            return
        command, chunk = (
            one[0] if one is not None and now_ns - one[1] < FRESH_NS else None for one in (self._command, self._chunk)
        )
        try:
            way = path(state, command, chunk, looks.point)  # type: ignore[arg-type]  # each of its own kind
        except ValueError:  # of other joints than the robot's: a stand-in's, while a seat changes hands
            return
        if len(way["hand"]) > 1:
            yield drawn.way_entity("way of the hand", [tuple(point) for point in way["hand"]])
        if len(way["base"]) > 1:
            yield drawn.way_entity("way of the base", [(x, y, 0.01) for x, y in way["base"]])

    def _guard(self, state: RobotState) -> Iterator[Document]:
        if self._outline is not None:
            yield drawn.envelope_entity(self._outline(state.position), self._mode, BASE)
        for name, ends, is_allowed in self._boxes:
            yield drawn.box_entity(name, ends, is_allowed=is_allowed)

    def _of_image(self, image: Image, topic: str, now_ns: int) -> Iterator[ViewerDocument]:
        height, width = image.rgb.shape[:2]
        lens = (image.focal_px, width, height)
        name = f"{topic}/calibration"
        if self._lenses.get(name) != lens:
            self._again.pop(name, None)
        self._lenses[name] = lens
        if image.focal_px and self._is_due(name, now_ns, CALIBRATION_PERIOD_NS):
            focal_px, cx, cy = image.focal_px, width / 2, height / 2
            yield ViewerDocument(
                name,
                CALIBRATION_NAME,
                {
                    "timestamp": time_document(image.captured_ns + self.wall_offset_ns),
                    "frame_id": image.camera,
                    "width": width,
                    "height": height,
                    "distortion_model": "plumb_bob",
                    "D": [0.0] * 5,
                    "K": [focal_px, 0.0, cx, 0.0, focal_px, cy, 0.0, 0.0, 1.0],
                    "R": [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
                    "P": [focal_px, 0.0, cx, 0.0, 0.0, focal_px, cy, 0.0, 0.0, 0.0, 1.0, 0.0],
                },
            )

    def _log(self, at_ns: int, text: str, name: str, level: int) -> Document:
        return {
            "timestamp": time_document(at_ns + self.wall_offset_ns),
            "level": next(ours for floor, ours in _LEVELS if level >= floor),
            "message": text,
            "name": name,
            "file": "",
            "line": 0,
        }

    def _update(self, topic: str, entities: list[Document], now_ns: int) -> ViewerDocument:
        return ViewerDocument(topic, SCENE_NAME, self._sketches[topic].update(entities, now_ns + self.wall_offset_ns))

    def _is_due(self, key: str, now_ns: int, period_ns: int) -> bool:
        """Whether it has not been told for that long; 0: not at all."""
        last = self._again.get(key)
        if last is not None and (period_ns == 0 or now_ns - last < period_ns):
            return False
        self._again[key] = now_ns
        return True

    def _learn(self, joints: int) -> None:
        """What is known of the robot's body, at its first state: reading a robot file takes a moment."""
        self._is_known = True
        if not self.robot and (joints != len(JOINTS) or self.joints not in ((), JOINTS)):
            return
        try:
            self._looks = looks_of(self.robot)
            limits = load_limits(self.robot or DEFAULT)
            if limits.cartesian is not None:
                self._outline = outline_of(limits.cartesian)
        except (UserError, ParameterError, ImportError) as problem:
            self.tell(f"the robot's links are not shown: {problem}")


def described(looks: Looks) -> str:
    """The robot's URDF, its meshes as `package://robot/NAME`."""
    meshes = {shape.mesh for shapes in looks.urdf.shapes.values() for shape in shapes if shape.mesh}
    return urdf_text(looks.urdf, {name: f"{ASSETS}{name.rsplit('/', 1)[-1]}" for name in meshes})


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _finite(value: Any) -> Any:
    """The value without those of its parts, such as a joint or a shape, that hold what is no number; None: it does."""
    if isinstance(value, dict):
        kept = {key: _finite(part) for key, part in value.items()}
        return None if None in kept.values() else kept
    if isinstance(value, list) and any(isinstance(part, dict) for part in value):
        return [part for part in map(_finite, value) if part is not None]
    return value if _is_finite(value) else None


def _boxes(parameters: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Sequence[float], bool]]:
    for params in parameters.values():
        if _is_box(inside := params.get("keep_in")):
            yield "keep in", inside, True
        outside = params.get("keep_out")
        for name, ends in outside.items() if isinstance(outside, Mapping) else ():
            if _is_box(ends):
                yield f"keep out: {name}", ends, False


def _is_box(ends: Any) -> TypeGuard[Sequence[float]]:
    return isinstance(ends, list | tuple) and len(ends) == 6 and all(isinstance(end, int | float) for end in ends)
