"""`RecordingsFolder`: the recordings of a folder that are finished, and those of them that are open."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bridges.web.http.open_page import Session
from bridges.web.questionnaire.questionnaire import Item
from bridges.web.recordings.rating_page import RatingHandler
from bridges.web.recordings.ratings import Rating, Ratings, ratings_file, read_ratings
from bridges.web.recordings.reader_process import ReaderProcess
from bridges.web.recordings.recording import Recorded
from nodes.mcap.parts import parts_of
from runtime.errors import UserError

RATED = ".ratings.jsonl"
QUIET_S = 3.0
"""A file that was written to within that time is still being recorded."""
MOST_OPEN = 3
"""Recordings in memory at a time; one holds 4800 pictures at most."""


@dataclass(slots=True)
class OpenedRecording:
    """A recording that is open, and its ratings."""

    handler: RatingHandler
    recorded: Recorded
    ratings: Ratings


class RecordingsFolder:
    """Called in the server's thread only. `now_s` is Unix time."""

    def __init__(
        self,
        folder: Path,
        scales: tuple[Item, ...],
        now_s: Callable[[], float],
        rater: Callable[[Session], str],
    ) -> None:
        self.folder = folder
        self.scales = scales
        self.now_s = now_s
        self.rater = rater
        self.opened: dict[str, OpenedRecording] = {}  # the one that was opened last at the end
        self.problems: dict[str, str] = {}
        self.reading: dict[str, ReaderProcess] = {}

    def finished(self) -> list[tuple[float, str]]:
        """When each finished recording was written, s, and its path in the folder; newest first."""
        found = []
        for path in (*self.folder.glob("*.mcap"), *self.folder.glob("*/*.mcap")):
            try:
                if _is_part(path) or not path.stat().st_size:
                    continue  # a part is shown with the first one
                written_s = max(part.stat().st_mtime for part in parts_of(path))
            except OSError:
                continue  # it is gone again
            if self.now_s() - written_s >= QUIET_S:
                found.append((written_s, str(path.relative_to(self.folder))))
        return sorted(found, reverse=True)

    def listed(self, most: int) -> list[dict[str, Any]]:
        """The newest of them for a page, each with how many have rated it."""
        return [
            {"name": name, "at_s": round(at_s), "raters": len(_raters(self.folder / name))}
            for at_s, name in self.finished()[:most]
        ]

    def ask(self, name: str) -> str:
        """Open a recording, once it is read; returns why not, or ""."""
        if name in self.opened:
            self.opened[name] = self.opened.pop(name)
            return ""
        if name not in {one for _, one in self.finished()}:  # a path that leads elsewhere is none of these
            return "there is no such recording, or it is not finished yet"
        if name not in self.reading:
            self.reading[name] = ReaderProcess(self.folder / name)
        self.problems.pop(name, None)
        return ""

    def look(self, wanted: Iterable[str]) -> bool:
        """Take in what has been read, and read on only what somebody wants; True where there is something new."""
        is_news, wanted = False, set(wanted)
        for name, reading in list(self.reading.items()):
            if name not in wanted:  # who leafs through the list does not start a process for each
                reading.stop()
                del self.reading[name]
                continue
            result = reading.result()
            if result is None:
                continue
            del self.reading[name]
            is_news = True
            if isinstance(result, str):
                self.problems[name] = result
                continue
            try:
                ratings = Ratings(ratings_file(self.folder / name))
            except UserError as problem:
                self.problems[name] = str(problem)
                continue
            handler = RatingHandler(result, ratings, self.scales, self.now_s, self.rater)
            self.opened[name] = OpenedRecording(handler, result, ratings)
        self._put_back(wanted)
        return is_news

    def _put_back(self, wanted: set[str]) -> None:
        for name in [name for name in self.opened if name not in wanted][: max(0, len(self.opened) - MOST_OPEN)]:
            self.opened.pop(name).ratings.close()

    def is_full(self, wanted: Iterable[str], name: str) -> bool:
        """Whether others have so many recordings open that there is no room for this one."""
        return len({*wanted, name}) > MOST_OPEN

    def all_ratings(self) -> list[Rating]:
        """Of every recording here, each under its recording: two may tell of the same episode, or have one name."""
        return [
            msgspec.structs.replace(rating, episode=str(path).removesuffix(RATED))
            for pattern in ("*.ratings.jsonl", "*/*.ratings.jsonl")
            for path in self.folder.glob(pattern)
            for rating in _read(path).values()
        ]

    def scores(self) -> dict[tuple[str, str, str], float]:
        """The judge's, of the recordings that are open."""
        return {
            (str(ratings_file(self.folder / name)).removesuffix(RATED), *key): score
            for name, one in self.opened.items()
            for key, score in one.recorded.scores.items()
        }

    def close(self) -> None:
        """Everything goes back."""
        for reading in self.reading.values():
            reading.stop()
        self.reading.clear()
        for one in self.opened.values():
            one.ratings.close()
        self.opened.clear()


def _read(path: Path) -> dict[tuple[str, str, str, str], Rating]:
    try:
        return read_ratings(path)
    except UserError:
        return {}  # what is no file of ratings has none


def _is_part(path: Path) -> bool:
    """Whether it only goes on with a recording that is there, too."""
    first = path.with_name(f"{path.stem.rpartition('-')[0]}{path.suffix}")
    return path.stem.rpartition("-")[2].isdecimal() and first.is_file() and path in parts_of(first)


def _raters(recording: Path) -> set[str]:
    return {one.rater for one in _read(ratings_file(recording)).values() if one.score is not None}
