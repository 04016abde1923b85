"""`RecordingsHandler`: beside console and study, the page on which finished recordings are scrubbed and rated."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import msgspec

from bridges.web.http.open_page import CameraStream, Session
from bridges.web.http.page import Page
from bridges.web.http.wire import FrameSeen, FromBrowser, PageHello, WatchCameras
from bridges.web.questionnaire.questionnaire import shipped
from bridges.web.recordings.rating_page import VIEWER, RateRecording, Seek, greeting, watched
from bridges.web.recordings.ratings import agreement
from bridges.web.recordings.recordings_folder import OpenedRecording, RecordingsFolder

ROLES = {"operator": "operator", "viewer": VIEWER}
LIST_NS = 2_000_000_000
MOST_LISTED = 60
_NAME = re.compile(r"\w[\w -]{0,31}")


class OpenRecording(FromBrowser, frozen=True, tag="open"):
    """Which recording is to be rated, and by whom; no recording: back to the list."""

    recording: Annotated[str, msgspec.Meta(max_length=400)] = ""
    rater: Annotated[str, msgspec.Meta(max_length=32)] = ""


_Incoming = PageHello | FrameSeen | WatchCameras | Seek | RateRecording | OpenRecording
decode: Callable[[str | bytes], _Incoming] = msgspec.json.Decoder(_Incoming).decode
"""The message in this text. Raises ValueError (msgspec's) in words where it is none."""


class _Reader:
    """One page: what it has open, in whose name, and what it was told."""

    def __init__(self) -> None:
        self.name = ""
        self.rater = ""
        self.shown = ""
        self.listed: list[dict[str, Any]] | None = None
        self.agreed: list[dict[str, Any]] | None = None


class RecordingsHandler:
    """Serves a folder; called in the server's thread only. `now_s` is Unix time."""

    def __init__(self, folder: Path, now_s: Callable[[], float]) -> None:
        scales = shipped("seven-dimensions")
        assert scales is not None
        self._readers: dict[str, _Reader] = {}
        self.folder = RecordingsFolder(folder, scales.item, now_s, lambda session: self._readers[session.ident].rater)
        self._sessions: dict[str, Session] = {}
        self.listed_ns = -LIST_NS
        self._list: list[dict[str, Any]] = []
        self._agreement: list[dict[str, Any]] = []

    def close(self) -> None:
        """The run is over."""
        self.folder.close()

    def welcome(self, session: Session) -> dict[str, Any]:
        """The scales; a recording comes when it is opened."""
        return greeting(session, self.folder.scales, None)

    def state(self, session: Session, now_ns: int) -> dict[str, Any]:
        """The list, the recording that was opened, its ratings, and the agreement: each where it is new."""
        reader, opened = self._readers[session.ident], self._opened(session)
        document: dict[str, Any] = {}
        if opened is not None:
            if reader.shown != reader.name:
                reader.shown = reader.name
                session.told = 0
                document["recording"] = opened.handler.recording()
            document |= opened.handler.news(session) if session.role != VIEWER else {}
        if reader.listed != self._list:
            reader.listed = self._list
            document["recordings"] = self._list
        if reader.agreed != self._agreement:
            reader.agreed = self._agreement
            document["agreement"] = self._agreement
        notices, session.notices = session.notices, []
        return {**document, "t": "state", "n": session.state_number, "notices": notices}

    def frame(self, camera: str, view: CameraStream, now_ns: int) -> tuple[dict[str, Any], bytes] | None:
        """The frame of the moment that the page is at."""
        session = self._sessions.get(watched(camera)[0])
        opened = self._opened(session) if session is not None else None
        return opened.handler.frame(camera, view, now_ns) if opened is not None else None

    def joined(self, session: Session) -> None:
        """A page was opened."""
        self._sessions[session.ident] = session
        self._readers[session.ident] = _Reader()

    def left(self, session: Session) -> None:
        """A page is gone."""
        if (opened := self._opened(session)) is not None:
            opened.handler.left(session)
        self._sessions.pop(session.ident, None)
        self._readers.pop(session.ident, None)

    def beat(self, now_ns: int) -> None:
        """Ten times a second: what was read, and now and then what there is to read. Without a page, nothing."""
        if not self._readers:
            return
        wanted = {reader.name for reader in self._readers.values() if reader.name}
        is_news = self.folder.look(wanted)
        for ident, reader in self._readers.items():
            if problem := self.folder.problems.get(reader.name):
                self._sessions[ident].notice(problem)
                reader.name = ""
        if is_news or now_ns - self.listed_ns >= LIST_NS:
            self.listed_ns = now_ns
            self._list = self.folder.listed(MOST_LISTED)
            found = agreement(self.folder.all_ratings(), self.folder.scales, self.folder.scores())
            self._agreement = [asdict(one) for one in found]

    def handle(self, session: Session, message: Any) -> None:
        """Open a recording, go to a moment of it, rate it."""
        reader, opened = self._readers[session.ident], self._opened(session)
        if isinstance(message, OpenRecording):
            self._open(session, reader, message)
        elif opened is None:
            session.notice("open a recording first")
        else:
            opened.handler.handle(session, message)

    def _open(self, session: Session, reader: _Reader, message: OpenRecording) -> None:
        rater = message.rater.strip()
        if session.role != VIEWER and message.recording and (not _NAME.fullmatch(rater) or rater == VIEWER):
            session.notice("give a name or code to rate under: letters, digits, spaces and -")
            return
        if message.recording and any(
            (one.name, one.rater) == (message.recording, rater) for one in self._readers.values() if one is not reader
        ):
            session.notice(f"somebody rates this as {rater} on another page; close that one, or take another name")
            return
        others = {one.name for one in self._readers.values() if one.name and one is not reader}
        if message.recording and self.folder.is_full(others, message.recording):
            session.notice("others have other recordings open; there is no room for one more")
            return
        if message.recording and (problem := self.folder.ask(message.recording)):
            session.notice(problem)
            return
        if (opened := self._opened(session)) is not None:
            opened.handler.left(session)
        reader.name, reader.rater, reader.shown = message.recording, rater, ""
        for view in session.views.values():
            view.shown = ("", 0)

    def _opened(self, session: Session) -> OpenedRecording | None:
        reader = self._readers.get(session.ident)
        return self.folder.opened.get(reader.name) if reader is not None else None


def recordings(handler: RecordingsHandler) -> Page:
    """The page of that handler, for the operators and viewers of the address that it is opened at."""
    return Page("recordings", "Recordings", "recordings/page.html", handler, decode, ROLES)
