"""A session's file: one JSON line an event, on the disk before anybody is told; and the answers as a table (CSV)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from bridges.web.http.jsonl import LineFile, read_lines
from bridges.web.http.private_files import open_private, private_folder
from bridges.web.study.protocol import Protocol, keep, read_kept
from bridges.web.study.session import Event, SessionProgress, told
from runtime.errors import UserError, writing
from runtime.operating_system.whole_file import PRIVATE, is_only_writer, write_whole

LOCK = ".study.lock"


class SessionFolder:
    """Where sessions are kept: one process at a time may write here."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with writing(f"study: the folder {path}"):
            private_folder(path)
            self._lock = open_private(path / LOCK)
            is_ours = is_only_writer(self._lock)
        if not is_ours:
            self._lock.close()
            raise UserError(
                f"study: another run writes sessions in {path}; end it, or choose a folder: --set study.folder=..."
            )

    def close(self) -> None:
        """Let others write."""
        self._lock.close()

    def file(self, code: str) -> Path:
        """Of one participant."""
        return self.path / f"{code}.jsonl"

    def files(self) -> list[Path]:
        """Of all participants. The ratings of a trial stand beside them, as CODE-trial-N-ATTEMPT.ratings.jsonl."""
        return [path for path in self.path.glob("*.jsonl") if "." not in path.stem]

    def unfinished(self, protocol: Protocol) -> tuple[SessionProgress, Path] | None:
        """The session that was written to last, where it is not over; of this protocol only."""
        files = sorted(self.files(), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in files[:1]:
            events = read_events(path)
            if events and events[0].protocol == protocol.sha:
                progress = told(SessionProgress.of(protocol, events[0]), events[1:])
                return (progress, path) if not progress.is_over else None
        return None

    def left_behind(self, protocol: Protocol) -> str:
        """A sentence where the session that was written to last is not over, and its protocol was edited since."""
        newest = max(self.files(), key=lambda path: path.stat().st_mtime, default=None)
        events = read_events(newest) if newest is not None else []
        kept = kept_protocol(self.path, events[0].protocol) if events else None
        if newest is None or kept is None or events[0].protocol == protocol.sha or not kept.exists():
            return ""
        is_over = told(SessionProgress.of(read_kept(kept), events[0]), events[1:]).is_over
        return "" if is_over else f"the session of {newest.stem} is not over: {_edited(newest, kept)}"


def _edited(path: Path, kept: Path) -> str:
    goes_on = f"go on with it by --set study.protocol={kept}" if kept.exists() else "choose another folder"
    begun = f"{path.name} was begun with another protocol file, or before it was edited"
    return f"{begun}; {goes_on}, or choose another number"


def kept_protocol(folder: Path, sha: str) -> Path:
    """Where the sessions of that folder keep the protocol that they were begun with."""
    return folder / f"protocol-{sha[:12]}.toml"


class SessionFile(LineFile):
    """Appends to one session's file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path
        self.mend(path)


def read_events(path: Path) -> list[Event]:
    """The events of a file. Raises UserError with the line that is no event; a torn last one is left out."""
    found = read_lines(path, Event, "event of a session")
    if found and found[0].what != "begin":
        raise UserError(f"{path}:1: a session begins with 'begin', not with {found[0].what!r}")
    return found


def open_session(
    folder: SessionFolder, protocol: Protocol, number: int, now_s: float, by: str
) -> tuple[SessionProgress, SessionFile]:
    """Begin a session, or go on with it. Raises UserError where it is over, or of another protocol."""
    path = folder.file(protocol.code_of(number))
    events = read_events(path) if path.exists() else []
    if events:
        if events[0].protocol != protocol.sha:
            kept = kept_protocol(folder.path, events[0].protocol)
            raise UserError(_edited(path, kept))
        progress = told(SessionProgress.of(protocol, events[0]), events[1:])
        if progress.is_over:
            raise UserError(f"the session of {progress.code} is over already; choose another number")
        return progress, SessionFile(path)
    begin = Event("begin", now_s, by=by, number=number, protocol=protocol.sha)
    kept = kept_protocol(folder.path, protocol.sha)
    if not kept.exists():
        keep(protocol, kept)
    journal = SessionFile(path)
    journal.write(begin)
    return SessionProgress.of(protocol, begin), journal


COLUMNS = ("participant", "step", "trial", "task", "condition", "agent", "questionnaire", "item", "value")


def answers_table(progress: SessionProgress) -> str:
    """The answers as CSV, a row each, in the order of the session."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(COLUMNS)
    rows.writerows(_rows(progress))
    return out.getvalue()


def _rows(progress: SessionProgress) -> Iterable[tuple[object, ...]]:
    trials = {step.trial: step for step in progress.steps if step.kind == "trial"}
    for step in progress.steps:
        asked = step.questionnaire
        if asked is None:
            continue
        trial = trials.get(step.trial)
        task = trial.task.id if trial is not None and trial.task is not None else ""
        condition = trial.condition.id if trial is not None and trial.condition is not None else ""
        given = asked.asked(progress.answers.get(step.ident, {}))
        for item in asked.item:
            value = given.get(item.id, "")
            if value != "":
                yield progress.code, step.ident, step.trial or "", task, condition, step.agent, asked.id, item.id, value


def write_table(progress: SessionProgress, path: Path) -> None:
    """Replace the table beside the session's file, whole or not at all."""
    write_whole(path.with_suffix(".csv"), answers_table(progress).encode(), mode=PRIVATE)
