"""`ConsoleHandler`: what the server gives to each page, and where it hands on what a page says."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from bridges.web.console.actions import Actions
from bridges.web.console.canned_phrases import Canned
from bridges.web.console.draft_review import DraftReview, ReviewedSeat
from bridges.web.console.driving.may_drive import DEPTH, OLDEST_PICTURE_S
from bridges.web.console.feed import (
    Recorders,
    RunFeed,
    guard_document,
    is_stopped,
    robot_document,
    scene_document,
    status_document,
)
from bridges.web.console.occupancy import SEATS
from bridges.web.console.ports import ConsolePorts
from bridges.web.console.response_time import ResponseTimes
from bridges.web.console.robot_sound import RobotSound, RobotWords
from bridges.web.console.seat_requests import Seats
from bridges.web.console.shadows import Shadows
from bridges.web.http.jpeg import JpegCache
from bridges.web.http.open_page import CameraStream, Session
from bridges.web.http.wire import Incoming, Talks
from bridges.web.speech.push_to_talk import PushToTalk
from nodes.msgs import JOINTS, Image, RobotState, SeenObject, TrainingScore
from nodes.robot.path_preview import path
from nodes.robot.protocol import Hand
from runtime import Stamped, Subscription, to_s

SOMEBODY = "Somebody else"
_NO_PIXELS = np.zeros((0, 0, 3), np.uint8)

FRESH_S = 1.0
"""A chunk or command that is older says nothing about where the robot is going."""
PAN, TILT = JOINTS.index("head_pan"), JOINTS.index("head_tilt")
RATE_OVER_NS = 2_500_000_000


def _score_document(score: TrainingScore | None) -> dict[str, Any] | None:
    return None if score is None else dict(msgspec.to_builtins(score))


class ConsoleHandler:
    """Called in the server's thread only."""

    def __init__(
        self,
        ports: ConsolePorts,
        feed: RunFeed,
        seats: Seats,
        reviews: Mapping[ReviewedSeat, DraftReview],
        shadows: Shadows,
        actions: Actions,
        hand: Hand | None,
        states: deque[RobotState],
        setting: dict[str, Any],
        canned: Canned,
        recorders: Recorders,
        talking: PushToTalk,
        responses: ResponseTimes,
        sound: RobotSound,
        words: RobotWords,
        names: Mapping[str, str],
    ) -> None:
        """`setting`: what each page is told once: joints, head_camera. Without `hand` no way of a hand is drawn.

        `names`: how participants are told of who speaks.
        """
        self._names = names
        self._ports = ports
        self._feed = feed
        self._seats = seats
        self._reviews = reviews
        self._shadows = shadows
        self._actions = actions
        self._hand = hand
        self._states = states
        self._setting = setting
        self._canned = canned
        self._recorders = recorders
        self._talking = talking
        self._responses = responses
        self._sound, self._words = sound, words
        self._cameras = {"head": ports.head_image, "wrist": ports.wrist_image, "room": ports.room_image}
        self._rates: dict[str, tuple[int, int, float]] = {}  # camera -> received, when, Hz
        self._pictures = JpegCache()

    def welcome(self, session: Session) -> dict[str, Any]:
        """All that a page needs to know once."""
        return {
            **self._setting,
            "t": "welcome",
            "role": session.role,
            "name": session.name,
            "oldest_picture_ms": 1000 * OLDEST_PICTURE_S,
            "cameras": list(self._cameras) if session.role != "participant" else [],
        }

    def state(self, session: Session, now_ns: int) -> dict[str, Any]:
        """What is so now, as this person may see it."""
        events, session.told = self._feed.since(session.told, dialogue_only=session.role == "participant")
        notices, session.notices = session.notices, []
        document: dict[str, Any] = {"t": "state", "n": session.state_number, "events": events, "notices": notices}
        if session.role == "participant":
            document["events"] = [{**one, "called": self._called(one["who"], session)} for one in events]
        document["stopped"] = is_stopped(self._ports.guard.stamped(), now_ns)
        if session.role != "viewer":
            document["voice"] = self._talking.document(session, is_told_why=session.is_operator)
        if session.role == "participant":
            return document
        if session.invited is not None:
            document["invited"], session.invited = session.invited, None
        heard, newest = self._sound.since(session.told_sound)
        session.told_sound = newest
        if heard is not None and session.listens:
            document["sound"] = heard
        if session.is_operator and session.told_canned != self._canned.version:
            session.told_canned = self._canned.version
            document |= self._canned.document()
        document.update(
            self._feed.decisions(),
            clock_ms=round(now_ns * 1e-6, 1),
            words=self._words.document(),
            voice_set={name: getattr(self._actions.voice, name) for name in ("volume", "speed", "pitch")},
            score=_score_document(self._ports.score.latest()),
            link_ms=None if session.round_trip_ms is None else round(session.round_trip_ms, 1),
            robot=robot_document(self._ports.robot.stamped(), now_ns, self._hand.point if self._hand else None),
            status=status_document(self._ports.status.latest()),
            path=self._path(now_ns),
            guard=guard_document(self._ports.guard.stamped(), now_ns),
            scene=scene_document(self._ports.scene.stamped(), now_ns, self._ports.believed.latest(), self._reaches),
            cameras={name: self._camera_document(name, port, now_ns) for name, port in self._cameras.items()},
            seats=self._seat_documents(session, now_ns),
            reviews={seat: one.document(now_ns) for seat, one in self._reviews.items()}
            if session.is_operator
            else None,
            invites=self._actions.invites() if session.is_operator else [],
            unsaid=self._actions.unsaid(session, now_ns),
            recording=self._recorders.document(now_ns),
            response=self._responses.document(now_ns) if session.is_operator else None,
            driving=self._actions.driving.refusal(session, now_ns) if session.is_operator else "",
            people=[{"name": one.name, "role": one.role} for one in self._seats.sessions],
            **self._ports.beside(now_ns),
        )
        return document

    def _called(self, who: str, session: Session) -> str:
        return "You" if who == session.name else self._names.get(who, SOMEBODY)

    def frame(self, camera: str, view: CameraStream, now_ns: int) -> tuple[dict[str, Any], bytes] | None:
        """The newest picture of a camera that this page has not been sent."""
        port = self._cameras.get(camera.removesuffix(DEPTH))
        stamped = port.stamped() if port is not None else None
        if stamped is None or view.shown == (stamped.envelope.source, stamped.envelope.seq):
            return None
        view.shown = (stamped.envelope.source, stamped.envelope.seq)
        image = stamped.message
        seen = Image(camera=image.camera, captured_ns=image.captured_ns, rgb=_NO_PIXELS)
        view.image = Stamped(seen, stamped.envelope)
        if image.rgb.ndim != 3:
            return None
        height, width = image.rgb.shape[:2]
        header = {
            "camera": camera,
            "age_ms": round((now_ns - image.captured_ns) * 1e-6, 1),
            "captured_ms": round(image.captured_ns * 1e-6, 1),
            "width": width,
            "height": height,
            "focal": round(image.focal_px, 2),
            "quality": view.pace.quality,
        }
        if pose := self._pose_at(image.captured_ns):
            header["pose"] = pose
        encode = self._pictures.encode_depth if camera.endswith(DEPTH) else self._pictures.encode
        try:
            return header, encode(stamped, view.pace.quality)
        except ValueError:
            return None  # a camera that fails takes nothing else from the page; its age tells

    def _pose_at(self, when_ns: int) -> list[float] | None:
        """Base and head when a picture was taken: x, y, heading, pan, tilt."""
        states = list(self._states)
        if not states or self._hand is None:
            return None
        then = min(states, key=lambda state: abs(state.read_ns - when_ns))
        head = then.position[PAN], then.position[TILT]
        return [round(value, 4) for value in (then.base_x_m, then.base_y_m, then.base_heading_rad, *head)]

    def joined(self, session: Session) -> None:
        """A page was opened."""
        self._seats.joined(session)

    def left(self, session: Session) -> None:
        """A page is gone."""
        self._talking.left(session)
        self._seats.left(session, self._ports.clock.now_ns())

    def beat(self, now_ns: int) -> None:
        """Ten times a second."""
        self._actions.beat(now_ns)
        self._talking.beat(now_ns)
        self._seats.beat(now_ns)
        for seat, review in self._reviews.items():
            review.beat(now_ns, is_seated=self._seats.has_person(seat))

    def handle(self, session: Session, message: Incoming) -> None:
        """Do what a person asks for."""
        if isinstance(message, Talks) and session.role != "viewer":
            self._talking.handle(session, message, session.name, self._ports.clock.now_ns())
        else:
            self._actions.handle(session, message)

    def _seat_documents(self, session: Session, now_ns: int) -> dict[str, dict[str, Any]]:
        state = self._ports.robot.latest()
        here = state.position if state is not None else None
        documents = self._seats.documents(session)
        for seat in SEATS:
            documents[seat].update(self._shadows.documents(seat, self._seats.holder(seat), here, now_ns))
        return documents

    def _reaches(self, thing: SeenObject) -> bool:
        """Whether the hand gets to above it; as long as nothing is known of the robot, everywhere."""
        state = self._ports.robot.latest()
        return (
            state is None
            or self._hand is None
            or not self._hand.above(state, (thing.x_m, thing.y_m, thing.z_m)).why_not
        )

    def _path(self, now_ns: int) -> dict[str, Any] | None:
        state, command, chunk = self._ports.robot.latest(), self._ports.setpoint.stamped(), self._ports.chunk.stamped()
        if state is None or self._hand is None:
            return None
        return path(
            state,
            command.message if command is not None and command.age_s(now_ns) < FRESH_S else None,
            chunk.message if chunk is not None and chunk.age_s(now_ns) < FRESH_S else None,
            self._hand.point,
        )

    def _camera_document(self, name: str, port: Subscription[Image], now_ns: int) -> dict[str, Any]:
        received, at_ns, hz = self._rates.get(name, (0, 0, 0.0))
        if now_ns - at_ns >= RATE_OVER_NS:
            count = port.received
            hz = (count - received) / to_s(now_ns - at_ns) if at_ns else 0.0
            self._rates[name] = (count, now_ns, hz)
        stamped: Stamped[Image] | None = port.stamped()
        return {
            "hz": round(hz, 1),
            "age_ms": None if stamped is None else round((now_ns - stamped.message.captured_ns) * 1e-6),
        }
