"""What the annotation's pages are served: each annotator their own ratings, the viewer how far they agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import msgspec

from bridges.web.http.open_page import CameraStream, Session
from bridges.web.http.page import PageHandler
from bridges.web.http.wire import FrameSeen, FromBrowser, PageHello, WatchCameras
from bridges.web.questionnaire.questionnaire import Item
from bridges.web.recordings.ratings import Rating, Ratings, agreement
from bridges.web.recordings.recording import Recorded

VIEWER = "viewer"


class Seek(FromBrowser, frozen=True, tag="seek"):
    """Which moment is on screen."""

    at_s: Annotated[float, msgspec.Meta(ge=0.0, le=1e9)]


class RateRecording(FromBrowser, frozen=True, tag="rate"):
    """A score and why; None takes the score back."""

    name: Annotated[str, msgspec.Meta(max_length=200)]
    dimension: Annotated[str, msgspec.Meta(max_length=80)]
    score: int | None
    rationale: Annotated[str, msgspec.Meta(max_length=4000)] = ""


_Incoming = PageHello | FrameSeen | WatchCameras | Seek | RateRecording
decode: Callable[[str | bytes], _Incoming] = msgspec.json.Decoder(_Incoming).decode
"""The message in this text. Raises ValueError (msgspec's) in words where it is none."""


def watched(camera: str) -> tuple[str, int]:
    """Whose picture that is, and of which camera, as pages ask for it: "session 0"; -1 where it is none."""
    ident, _, number = camera.rpartition(" ")
    return ident, int(number) if number.isdecimal() else -1


def greeting(session: Session, scales: tuple[Item, ...], recording: dict[str, Any] | None) -> dict[str, Any]:
    """What a page is told first; without a recording it chooses one from a list."""
    return {
        "t": "welcome",
        "role": session.role,
        "may_rate": session.role != VIEWER,
        "has_list": recording is None,
        "recording": recording,
        "scales": [msgspec.to_builtins(one) for one in scales],
    }


class RatingHandler(PageHandler):
    """Serves one recording; called in the server's thread only. `now_s` is Unix time."""

    def __init__(
        self,
        recorded: Recorded,
        ratings: Ratings,
        scales: tuple[Item, ...],
        now_s: Callable[[], float],
        rater: Callable[[Session], str] = lambda session: session.role,
    ) -> None:
        """`rater`: under which name a page rates; each annotator has a token of their own, or gives a name."""
        self._recorded = recorded
        self._ratings = ratings
        self._scales = scales
        self._now_s = now_s
        self._rater = rater
        self._version = 1
        self._places: dict[str, float] = {}  # session -> seconds

    def welcome(self, session: Session) -> dict[str, Any]:
        """The whole recording but its pictures. The model's scores are shown to nobody who rates."""
        return greeting(session, self._scales, self.recording())

    def recording(self) -> dict[str, Any]:
        """All that there is to see of it but its pictures."""
        recorded = self._recorded
        return {
            "episode": recorded.episode,
            "begins_s": recorded.begins_s,
            "duration_s": recorded.duration_s,
            "events": recorded.events,
            "agents": recorded.agents,
            "parts": recorded.parts,
            "cameras": [camera.name for camera in recorded.cameras],
        }

    def state(self, session: Session, now_ns: int) -> dict[str, Any]:
        """The annotator's own ratings, or the agreement, where the page does not have them yet."""
        notices, session.notices = session.notices, []
        return {**self.news(session), "t": "state", "n": session.state_number, "notices": notices}

    def news(self, session: Session) -> dict[str, Any]:
        """What this page has not been told."""
        if session.told == self._version:
            return {}
        session.told = self._version
        if session.role == VIEWER:
            return {"agreement": self._agreement()}
        own = [
            {"name": one.name, "dimension": one.dimension, "score": one.score, "rationale": one.rationale}
            for one in self._ratings.by_key.values()
            if one.rater == self._rater(session) and one.episode == self._recorded.episode
        ]
        return {"ratings": own}

    def _agreement(self) -> list[dict[str, Any]]:
        scores = {(self._recorded.episode, *key): score for key, score in self._recorded.scores.items()}
        return [asdict(one) for one in agreement(self._ratings.by_key.values(), self._scales, scores)]

    def frame(self, camera: str, view: CameraStream, now_ns: int) -> tuple[dict[str, Any], bytes] | None:
        """The frame of the moment that the page is at. `camera`: the page's session, and which of the cameras."""
        ident, number = watched(camera)
        if not 0 <= number < len(self._recorded.cameras):
            return None
        shown = self._recorded.cameras[number]
        place = shown.frame_at(self._places.get(ident, 0.0))
        if place is None or view.shown == ("frame", place):
            return None
        view.shown = ("frame", place)
        return {"camera": camera, "at_s": shown.times_s[place]}, shown.frames[place]

    def left(self, session: Session) -> None:
        """A page is gone."""
        self._places.pop(session.ident, None)

    def handle(self, session: Session, message: Any) -> None:
        """Go to a moment, or keep a rating."""
        if isinstance(message, Seek):
            self._places[session.ident] = message.at_s
            session.wake.set()
        elif not isinstance(message, RateRecording):
            session.notice(f"{type(message).__name__} is not expected now")
        elif session.role == VIEWER:
            session.notice("a viewer rates nothing; take an annotator's address")
        else:
            self._rate(session, message)

    def _rate(self, session: Session, message: RateRecording) -> None:
        scale = next((one for one in self._scales if one.id == message.dimension), None)
        if scale is None or message.name not in self._recorded.agents:
            session.notice(f"there is no {message.dimension} of {message.name}")
            return
        if message.score is not None and (problem := scale.problem_of(message.score)):
            session.notice(problem)
            return
        rating = Rating(
            self._recorded.episode,
            self._rater(session),
            message.name,
            message.dimension,
            message.score,
            message.rationale.strip(),
            round(self._now_s(), 3),
        )
        try:
            self._ratings.save(rating)
        except OSError as problem_of_disk:
            session.notice(f"this was not saved: {problem_of_disk.strerror}")
            return
        self._version += 1
