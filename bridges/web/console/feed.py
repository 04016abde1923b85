"""What the console knows of the run, as the documents that the pages draw: a story of events, and one state."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Literal

from bridges.web.http.graph_messages import DraftDecision, SeatWord
from nodes.msgs import (
    Action,
    Feedback,
    GuardState,
    Interrupt,
    JointVector,
    Mark,
    RecorderState,
    RobotState,
    RobotStatus,
    Scene,
    SceneDescription,
    SeenObject,
    Subtask,
    Utterance,
)
from nodes.robot.protocol import PointM
from runtime.clock import to_ns, to_s
from runtime.coordination.lease import Lease
from runtime.message import Message, Stamped

EVENTS_KEPT = 400
EVENTS_AT_ONCE = 80
MOST_TOLD = 24
"""Sentences about how things stand, on the page at once."""
RECORDER_SILENT_S = 3.0
"""A recorder tells twice a second what it does."""
WISH_S = 2.0
"""So long after a person's wish the guard's word about that seat is its answer, and the same event."""
GUARD_SILENT_S = 1.0
"""A guard tells ten times a second how it is."""
RECORDER_MODES = ("stopped", "none", "recording", "waiting")

Kind = Literal["said", "heard", "plan", "action", "feedback", "interrupt", "guard", "mark", "seat", "draft"]
ORDINARY = {"moving", "holding"}
DIALOGUE: frozenset[Kind] = frozenset({"said", "heard"})

SEAT_NAMES = {"policy": "driving", "vlm": "acting", "planner": "planning"}
"""What people call the seats; any other keeps its own name."""
SEAT_WORDS = {
    "take": "takes over {seat}",
    "ask": "asks {of} for {seat}",
    "grant": "gives {seat} to {of}",
    "refuse": "keeps {seat}, which {of} asked for",
    "force": "takes {seat} from {of} by force",
    "give": "gives {seat} back",
}
DRAFT_WORDS = {
    "approve": "lets through",
    "edit": "lets through",
    "reject": "rejects",
    "expire": "is up for",
    "replace": "has something newer than",
}


class RunFeed:
    """The newest event of each kind, and all of the last ones in order."""

    def __init__(self, start_ns: int) -> None:
        self._start_ns = start_ns
        self._count = 0
        self.events: deque[dict[str, Any]] = deque(maxlen=EVENTS_KEPT)
        self.subtask: Subtask | None = None
        self.action: Action | None = None
        self.feedback: Feedback | None = None
        self._guard = ("", "")
        self._interrupt = ("", 0)  # what the newest one said, and when
        self._wished: dict[str, int] = {}  # seat -> when a person said that they take it, or give it away

    def take(self, message: Message, *, topic: str, at_ns: int, provenance: str = "") -> None:
        """Note an event of the graph; what is only a repetition is left out."""
        match message:
            case Utterance():
                kind: Kind = "said" if topic == "said" else "heard"
                self.tell(kind, message.speaker, message.text, at_ns, provenance=provenance)
            case Subtask():
                before, self.subtask = self.subtask, message
                if before is None or (before.id, before.text) != (message.id, message.text):
                    self.tell("plan", "planner", message.text, at_ns, provenance=provenance)
            case Action():
                before_action, self.action = self.action, message
                if before_action is None or before_action.id != message.id:
                    self.feedback = None
                    self.tell("action", "vlm", message.text or message.skill, at_ns, provenance=provenance)
            case Feedback():
                is_ours = self.action is not None and message.action_id == self.action.id
                if is_ours:
                    is_news = self.feedback is None or self.feedback.status != message.status
                    self.feedback = message
                    if is_news and message.status != "running":
                        text = f"{message.status}: {message.why}" if message.why else message.status
                        self.tell("feedback", "policy", text, at_ns)
            case Interrupt():
                self._interrupt = (message.text, at_ns)
                self.tell("interrupt", message.by, f"{message.depth}: {message.text}", at_ns)
            case Mark():
                text = f"{message.label}: {message.note}" if message.note else message.label
                self.tell("mark", message.by, text, at_ns)
            case SeatWord():
                seat = SEAT_NAMES.get(message.seat, message.seat)
                if message.do not in ("ask", "refuse"):
                    self._wished[message.seat] = at_ns
                self.tell("seat", message.by, SEAT_WORDS[message.do].format(seat=seat, of=message.of), at_ns)
            case DraftDecision():
                sent = message.sent_text or message.sent_sentence
                text = f"{DRAFT_WORDS[message.do]} {message.draft_text or message.draft_sentence!r}"
                is_changed = sent and sent != (message.draft_text or message.draft_sentence)
                self.tell("draft", message.by, f"{text}, as {sent!r}" if is_changed else text, at_ns)
            case GuardState():
                self._take_guard(message, at_ns)
            case _:
                raise TypeError(f"the feed does not show {type(message).__name__}")

    def _take_guard(self, message: GuardState, at_ns: int) -> None:
        now = (message.mode, message.reason)
        is_other_stop = message.is_stopped and now != self._guard  # an emergency stop, or re-armed
        is_ordinary = {now[0], self._guard[0]} <= ORDINARY  # to and fro at each key: the header shows it
        said, said_ns = self._interrupt
        is_told = bool(said) and said in message.reason and at_ns - said_ns < to_ns(WISH_S)  # the same event
        if ((now[0] != self._guard[0] and not is_ordinary) or is_other_stop) and not is_told:
            self.tell("guard", "guard", message.sentence, at_ns)
        self._guard = now

    def take_lease(self, lease: Lease, at_ns: int) -> None:
        """Who has a seat now, unless it was a person's own wish: that was told when they said so."""
        wished_ns = self._wished.get(lease.seat)
        if lease.is_repetition or (wished_ns is not None and at_ns - wished_ns < to_ns(WISH_S)):
            return
        before = f", after {lease.displaced}" if lease.displaced else ""
        seat = SEAT_NAMES.get(lease.seat, lease.seat)
        self.tell("seat", lease.holder, f"has {seat} now{before} ({lease.why})", at_ns)

    def tell(self, kind: Kind, who: str, text: str, at_ns: int, *, provenance: str = "") -> None:
        """Add a line to the story."""
        self._count += 1
        self.events.append(
            {
                "i": self._count,
                "kind": kind,
                "who": who,
                "text": text,
                "at_s": round(to_s(at_ns - self._start_ns), 1),
                "person": provenance.startswith("person"),
            }
        )

    def since(self, number: int, *, dialogue_only: bool) -> tuple[list[dict[str, Any]], int]:
        """The oldest events after that number that a message holds, and the number of the last one looked at.

        Who follows the dialogue alone is a participant, and is not told which of the robot's words a person chose.
        """
        found: list[dict[str, Any]] = []
        events = tuple(self.events)  # the node's thread goes on adding
        for event in events:
            if event["i"] <= number:
                continue
            if len(found) == EVENTS_AT_ONCE:
                return found, found[-1]["i"]
            if not dialogue_only:
                found.append(event)
            elif event["kind"] in DIALOGUE:
                found.append({**event, "person": False})
        return found, events[-1]["i"] if events else number

    def decisions(self) -> dict[str, Any]:
        """What is to be done, is being done, and how it goes."""
        return {
            "subtask": None if self.subtask is None else {"text": self.subtask.text, "state": self.subtask.state},
            "action": None
            if self.action is None
            else {
                "id": self.action.id,
                "skill": self.action.skill,
                "text": self.action.text or self.action.skill,
                "target": None if self.action.target is None else _thing(self.action.target),
            },
            "feedback": None if self.feedback is None else {"status": self.feedback.ending, "why": self.feedback.why},
        }


def age_ms(stamped: Stamped[Any] | None, now_ns: int) -> float | None:
    """How old a message is."""
    return None if stamped is None else round((now_ns - stamped.envelope.published_ns) * 1e-6, 1)


def robot_document(
    stamped: Stamped[RobotState] | None, now_ns: int, hand_point: Callable[[JointVector], PointM] | None = None
) -> dict[str, Any] | None:
    """The robot's own state, rounded to what a screen shows. `hand_point`: where its hand is in the base's frame."""
    if stamped is None:
        return None
    state = stamped.message
    return {
        "position": [round(value, 4) for value in state.position],
        "effort": [round(value) for value in state.effort],
        "x": round(state.base_x_m, 3),
        "y": round(state.base_y_m, 3),
        "heading": round(state.base_heading_rad, 4),
        "v": round(state.base_v_mps, 3),
        "w": round(state.base_w_radps, 3),
        "contact": list(state.contact),
        "grasping": state.is_grasping,
        "hand": None if hand_point is None else [round(value, 3) for value in hand_point(state.position)],
        "age_ms": age_ms(stamped, now_ns),
    }


def guard_document(stamped: Stamped[GuardState] | None, now_ns: int) -> dict[str, Any] | None:
    """What the guard lets through, and why not."""
    if stamped is None:
        return None
    state = stamped.message
    return {
        "mode": state.mode,
        "reason": state.reason,
        "holder": state.holder,
        "estop": state.estop,
        "rejected": state.rejected,
        "age_ms": age_ms(stamped, now_ns),
    }


def is_stopped(stamped: Stamped[GuardState] | None, now_ns: int) -> bool | None:
    """Whether the guard says that it has stopped the robot; None where no guard says anything."""
    if stamped is None or stamped.age_s(now_ns) > GUARD_SILENT_S:
        return None
    return stamped.message.is_stopped


def status_document(status: RobotStatus | None) -> dict[str, Any] | None:
    """What the robot says of itself; its battery where it has one."""
    if status is None:
        return None
    return {
        "mode": status.mode,
        "why": status.why,
        "battery_v": None if status.battery_v is None else round(status.battery_v, 1),
        "charging": status.is_charging,
        "alerts": list(status.alerts[:4]),
    }


class Recorders:
    """What each recorder of the graph has said last."""

    def __init__(self) -> None:
        self._said: dict[str, Stamped[RecorderState]] = {}

    def take(self, stamped: Stamped[RecorderState]) -> None:
        """Note it (the node's thread)."""
        self._said[stamped.envelope.source] = stamped

    @property
    def are_known(self) -> bool:
        """Whether any has said something."""
        return bool(self._said)

    def document(self, now_ns: int) -> dict[str, str]:
        """What becomes of the recording; one that has stopped, or is silent, is told before those that go on."""
        found = [self._one(stamped, now_ns) for stamped in tuple(self._said.values())]
        nobody = {"mode": "none", "file": "", "why": "no recorder runs"}
        return min(found, key=lambda one: RECORDER_MODES.index(one["mode"]), default=nobody)

    @staticmethod
    def _one(stamped: Stamped[RecorderState], now_ns: int) -> dict[str, str]:
        state = stamped.message
        if stamped.age_s(now_ns) > RECORDER_SILENT_S:
            return {"mode": "none", "file": state.file, "why": f"{stamped.envelope.source} is silent"}
        return {"mode": state.mode, "file": state.file, "why": state.why}


def scene_document(
    stamped: Stamped[SceneDescription] | None,
    now_ns: int,
    believed: Scene | None = None,
    reaches: Callable[[SeenObject], bool] = lambda thing: True,
) -> dict[str, Any] | None:
    """What the VLM sees, and in sentences how things stand and what people do.

    `reaches`: whether the hand gets there from where the robot stands.
    """
    if stamped is None:
        return None
    scene = stamped.message
    return {
        "text": scene.text,
        "progress": scene.progress,
        "objects": [{**_thing(thing), "reach": reaches(thing)} for thing in scene.objects[:64]],
        "told": [] if believed is None else scene_sentences(believed)[:MOST_TOLD],
        "age_ms": age_ms(stamped, now_ns),
    }


def scene_sentences(scene: Scene) -> list[str]:
    """ "red cup on table (half full)", "Ana holds the blue cup and points at the bin"."""
    names = {one.id: f"{one.colour} {one.label}".strip() for one in scene.things if one.id}
    states = {one.id: ", ".join((*one.state, *([f"of {one.owner}"] if one.owner else []))) for one in scene.things}
    told = []
    for one in scene.relations:
        if one.relation == "beside":
            continue  # who sees the picture sees that
        text = f"{names.get(one.subject, one.subject)} {one.relation} {names.get(one.object, one.object)}"
        told.append(f"{text} ({states[one.subject]})" if states.get(one.subject) else text)
    for person in scene.people:
        acts = [
            f"{verb} the {names.get(ident, ident)}"
            for verb, ident in (("holds", person.holds), ("points at", person.points_at), ("looks at", person.looks_at))
            if ident
        ]
        told.append(f"{person.id} {' and '.join(acts) or 'is there'}")
    return told


def _thing(thing: SeenObject) -> dict[str, Any]:
    return {
        "label": thing.label,
        "colour": thing.colour,
        "x": round(thing.x_m, 3),
        "y": round(thing.y_m, 3),
        "z": round(thing.z_m, 3),
        "w": round(thing.width_m, 3),
        "h": round(thing.height_m, 3),
        "u": round(thing.u_px, 1),
        "v": round(thing.v_px, 1),
        "p": round(thing.confidence, 2),
    }
