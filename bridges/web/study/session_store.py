"""`SessionStore`: the session that is under way and its file; every event is on the disk before anybody is told of
it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from bridges.web.study.journal import SessionFile, SessionFolder, open_session, write_table
from bridges.web.study.protocol import Protocol
from bridges.web.study.session import Event, SessionProgress, SessionRefused
from runtime.errors import UserError

_log = logging.getLogger("study")


class SessionStore:
    """Used by the server's thread and the node's; `tell` hears of each event once it is kept."""

    def __init__(self, protocol: Protocol, folder: Path, tell: Callable[[SessionProgress, Event], None]) -> None:
        self.protocol = protocol
        self.progress: SessionProgress | None = None
        self.version = 1
        self._folder = SessionFolder(folder)
        self.journal: SessionFile | None = None
        self._tell = tell
        self._lock = threading.RLock()

    @property
    def listens(self) -> bool:
        """Whether the participant may speak to the robot now."""
        progress = self.progress
        return (
            progress is not None and progress.phase == "running" and progress.allowed.speak and not progress.paused_at_s
        )

    def close(self) -> None:
        """Let the next run write."""
        with self._lock:
            if self.journal is not None:
                self.journal.close()
            self._folder.close()

    def go_on(self, now_s: float) -> str:
        """Take up the session that a run before this one left unfinished: its code, or "" where there is none."""
        with self._lock:
            found = self._folder.unfinished(self.protocol)
            if found is None:
                return ""
            self._begin(found[0].number, now_s, "a new run")
            return found[0].code

    def begin(self, number: int, now_s: float, by: str) -> None:
        """Begin or go on with the session of a participant. Raises Refused."""
        with self._lock:
            if self.progress is not None and not self.progress.is_over and self.progress.number != number:
                raise SessionRefused(
                    f"the session of {self.progress.code} is not over; finish it, or let {self.progress.code} stop"
                )
            try:
                self._begin(number, now_s, by)
            except (UserError, OSError) as problem:
                raise SessionRefused(str(problem)) from problem

    def _begin(self, number: int, now_s: float, by: str) -> None:
        if self.progress is not None and self.progress.number == number and not self.progress.is_over:
            return
        progress, journal = open_session(self._folder, self.protocol, number, now_s, by)
        if self.journal is not None:
            self.journal.close()
        self.journal, self.progress = journal, progress
        self.version += 1
        self._tell(progress, Event("begin", now_s, by=by, number=number))
        if progress.phase == "running":  # the run that it was in is gone
            self.do(lambda now: now.finish(now_s, by, "interrupted"))

    def do(self, wish: Callable[[SessionProgress], Event]) -> Event:
        """Turn a wish into an event, keep it, and tell. Raises Refused where it cannot be."""
        with self._lock:
            if self.progress is None or self.journal is None:
                raise SessionRefused("no session has begun")
            event = wish(self.progress)
            try:
                self.journal.write(event)
            except OSError as problem:
                raise SessionRefused(f"it could not be written ({problem.strerror}); nothing was changed") from problem
            self.progress.apply(event)
            self.version += 1
            if event.what in ("submit", "skip", "consent", "withdraw"):
                try:
                    write_table(self.progress, self.journal.path)
                except OSError as problem:  # the session's file has it all; the next table will have it, too
                    _log.warning("%s: its table could not be written (%s)", self.progress.code, problem.strerror)
            self._tell(self.progress, event)
            return event

    def sessions(self) -> list[str]:
        """The codes of all who took part or take part, for the experimenter."""
        return sorted(path.stem for path in self._folder.files())
