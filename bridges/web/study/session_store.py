"""`SessionStore`: the session that is under way and its file; every event is on the disk before anybody is told of
it."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

from bridges.web.study.journal import SessionFile, SessionFolder, open_session, write_table
from bridges.web.study.protocol import Protocol
from bridges.web.study.session import Event, SessionProgress, SessionRefused
from runtime.errors import UserError

_log = logging.getLogger("study")
MOST_LATE = 1000
"""So many events wait for a full disk, and no more."""


class SessionStore:
    """Used by the server's thread and the node's; `tell` hears of each event once it is kept."""

    def __init__(self, protocol: Protocol, folder: Path, tell: Callable[[SessionProgress, Event], None]) -> None:
        self.protocol = protocol
        self.progress: SessionProgress | None = None
        self.version = 1
        self._folder = SessionFolder(folder)
        self.journal: SessionFile | None = None
        self._tell = tell
        self._late: deque[Event] = deque()  # what happened while the disk was full
        self._lock = threading.RLock()

    @property
    def listens(self) -> bool:
        """Whether the participant may speak to the robot now."""
        progress = self.progress
        return (
            progress is not None and progress.phase == "running" and progress.allowed.speak and not progress.is_paused
        )

    def close(self) -> None:
        """Let the next run write."""
        with self._lock:
            self.catch_up()
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

    def left_behind(self) -> str:
        """A session that an edited protocol does not go on with, as a sentence; "" where there is none."""
        return self._folder.left_behind(self.protocol)

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
            self.catch_up()
            self.journal.close()
        self._late.clear()
        self.journal, self.progress = journal, progress
        self.version += 1
        self._tell(progress, Event("begin", now_s, by=by, number=number))
        if progress.phase == "running":  # the run that it was in is gone
            self.do(lambda now: now.finish(now_s, by, "interrupted"))

    def do(self, wish: Callable[[SessionProgress], Event]) -> Event:
        """Turn a wish into an event, keep it, and tell. Raises Refused where it cannot be."""
        with self._lock:
            if self.progress is None or self.journal is None:
                raise SessionRefused("no session has begun", "not_begun")
            event = wish(self.progress)
            try:
                self._write_late(self.journal, self.progress)
                self.journal.write(event)
            except OSError as problem:
                raise SessionRefused(
                    f"it could not be written ({problem.strerror}); nothing was changed", "not_kept"
                ) from problem
            self._written(self.progress, event)
            if event.what in ("submit", "skip", "consent", "withdraw"):
                try:
                    write_table(self.progress, self.journal.path)
                except OSError as problem:  # the session's file has it all; the next table will have it, too
                    _log.warning("%s: its table could not be written (%s)", self.progress.code, problem.strerror)
            self._tell(self.progress, event)
            return event

    def note(self, event: Event) -> None:
        """Keep what has happened and cannot happen again. Raises Refused where the disk is full: it is kept later."""
        with self._lock:
            if self.progress is None or self.journal is None or len(self._late) >= MOST_LATE:
                raise SessionRefused("it is not kept: the disk has been full for too long")
            self._late.append(event)
            try:
                self._write_late(self.journal, self.progress)
            except OSError as problem:
                raise SessionRefused(
                    f"it could not be written ({problem.strerror}); it is, as soon as there is room"
                ) from problem

    def catch_up(self) -> None:
        """Write what waits for room on the disk, where there is some."""
        with self._lock:
            if self.progress is not None and self.journal is not None:
                with contextlib.suppress(OSError):
                    self._write_late(self.journal, self.progress)

    def _write_late(self, journal: SessionFile, progress: SessionProgress) -> None:
        while self._late:
            journal.write(self._late[0])
            event = self._late.popleft()
            self._written(progress, event)
            self._tell(progress, event)

    def _written(self, progress: SessionProgress, event: Event) -> None:
        progress.apply(event)
        self.version += 1

    def sessions(self) -> list[str]:
        """The codes of all who took part or take part, for the experimenter."""
        return sorted(path.stem for path in self._folder.files())
