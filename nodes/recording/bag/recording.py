"""`Recording`: all parts of a recorded run as one row of messages, with what is known of the run."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

from nodes.mcap.file import BagReader, BagWriter
from nodes.mcap.parts import BEGIN, ZERO, begin_ns_of, noted, parts_of, what_differs, zero_ns_of
from nodes.mcap.record import BagMessage
from nodes.msgs import JOINTS
from nodes.recording.bag.progress import with_progress
from runtime.clock import to_s
from runtime.command_line.arguments import check_new
from runtime.errors import RecordingError, UserError
from runtime.message import Envelope

T = TypeVar("T")

JOURNAL_S = 2.0
"""A handler call is in the recording at most this long after it ended."""
LONGEST_NAME = 200
"""Characters of a file's name."""
PICTURES = (".png", ".svg", ".pdf")


class Recording:
    """One run, however many files it has; with `takes_any`, any MCAP file.

    Raises RecordingError where a file is none of ours, or of another run.
    """

    def __init__(self, path: Path, parts: list[Path] | None = None, *, takes_any: bool = False) -> None:
        self.path = path
        self._left_out: list[str] = []
        self._has_lost_part = False
        self.readers = [BagReader(path, takes_any=takes_any)] if parts is None else [BagReader(part) for part in parts]
        for part in parts_of(path)[1:] if parts is None else ():
            try:
                self.readers.append(BagReader(part))
            except RecordingError as problem:
                self._has_lost_part = True
                self._left_out.append(f"{problem}; left out, though it is named as a part of this recording")
        read = {reader.path.name for reader in self.readers}
        for reader in self.readers:
            following = Path(reader.metadata.get("end", {}).get("continues", "")).name
            if following and following not in read:
                is_there = reader.path.with_name(following).is_file()
                self._has_lost_part = self._has_lost_part or not is_there
                why = "which is not read with it" if is_there else "which is not there"
                self._left_out.append(f"{reader.path}: goes on in {following}, {why}")
        self.about = self.readers[0].metadata.get("run", {})
        for reader in self.readers[1:]:
            check_same_run(self.readers[0], reader)

    def __iter__(self) -> Iterator[BagMessage]:
        for reader in self.readers:
            yield from reader

    def gone_through(self, doing: str) -> Iterator[BagMessage]:
        """All messages; a person at a terminal is told how far it is."""
        counts = [reader.promised for reader in self.readers]
        known = [count for count in counts if count is not None]
        return with_progress(self, doing, sum(known) if len(known) == len(counts) else None)

    @property
    def end(self) -> dict[str, str]:
        """What was noted at the end; empty where the recording was cut off."""
        ends = [reader.metadata.get("end", {}) for reader in self.readers]
        return next((end for end in reversed(ends) if end and "continues" not in end), ends[-1])  # in whatever order

    @property
    def is_complete(self) -> bool:
        """Whether every part was closed and is whole; known once the messages were read."""
        return not self._left_out and all(reader.is_complete for reader in self.readers)

    @property
    def damage(self) -> list[str]:
        """What could not be read, in sentences; known once the messages were read."""
        return [text for reader in self.readers for text in reader.damage] + self._left_out

    @property
    def has_left_out(self) -> bool:
        """Whether a chunk or a part of it was left out, also one that the file breaks off in.

        Known once the messages were read. Where the file breaks off between two chunks, all of it was read.
        """
        return self._has_lost_part or any(reader.has_left_out for reader in self.readers)

    @property
    def is_virtual(self) -> bool:
        return self.about.get("clock") == "virtual"

    @property
    def start_ns(self) -> int:
        """Run time zero as a monotonic stamp; that of the earliest message where the recording does not say."""
        noted_ns = zero_ns_of(self.readers[0].metadata)
        stamps_ns = [one.first_log_ns - one.wall_offset_ns for one in self.readers if one.first_log_ns is not None]
        return min(stamps_ns, default=0) if noted_ns is None else noted_ns

    @property
    def begin_ns(self) -> int:
        """Where it begins: at run time zero, or where it was cut out of its run."""
        noted_ns = [begin_ns_of(reader.metadata) for reader in self.readers]
        pieces_ns = [one for one in noted_ns if one is not None]
        return min(pieces_ns) if len(pieces_ns) == len(noted_ns) else self.start_ns

    def logged_s(self, message: BagMessage) -> float:
        """Run time of a message by its log time, which can be read where the message cannot."""
        return to_s(message.log_time_ns - self.readers[0].wall_offset_ns - self.start_ns)

    @property
    def joints(self) -> tuple[str, ...]:
        """The robot's joints, in the order of joint vectors; a Stretch's where no other robot was named."""
        names = self.noted("joints")
        is_told = isinstance(names, list) and all(isinstance(name, str) for name in names)
        return tuple(names) if is_told else JOINTS

    @property
    def is_ours(self) -> bool:
        """Whether a recorder of ours wrote it."""
        return self.readers[0].is_ours

    @property
    def played(self) -> tuple[str, ...]:
        """The nodes that another recording stood in for in this run."""
        names = self.noted("replayed")
        return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()

    def noted(self, key: str) -> Any:
        """A value noted at the end or at the start, decoded; None where there is none."""
        return noted(key, self.end, self.about)


class Thinned(Generic[T]):
    """A row of values, thinned out evenly where there are more than `most`."""

    def __init__(self, most: int) -> None:
        self.kept: list[T] = []
        self.seen = 0
        self._most, self._stride = most, 1

    def add(self, value: T) -> None:
        """Take in the next one."""
        if self.seen % self._stride == 0:
            self.kept.append(value)
            if len(self.kept) > self._most:
                self.kept = self.kept[::2]
                self._stride *= 2
        self.seen += 1


def is_journal(message: BagMessage) -> bool:
    """Whether it tells of calls before it, and of log lines; nothing happened when it was recorded."""
    return message.schema == "Calls" or message.topic == "log"


def is_view(message: BagMessage, envelope: Envelope) -> bool:
    """Whether the recorder made it of another topic's message: it has that one's envelope and no type of its own."""
    return envelope.topic != message.topic and not message.type_name


def check_same_run(first: BagReader, other: BagReader) -> None:
    """Raise RecordingError where the two files are of different runs."""
    what = what_differs(*(reader.metadata.get("run", {}) for reader in (first, other)))
    if what:
        raise RecordingError(
            f"{other.path}: is of another run than {first.path} ({what}); two runs are not one recording"
        )


def envelope_or_none(message: BagMessage) -> Envelope | None:
    """The envelope, or None where it cannot be read."""
    try:
        return message.envelope
    except RecordingError:
        return None


def file_names(topics: Iterable[str]) -> dict[str, str]:
    """A name for each topic that a file may have, and no other topic has: "head/image" is head_image."""
    names: dict[str, str] = {}
    for topic in sorted(topics):
        name = wanted = re.sub(r"[^\w.-]", "_", topic)[:LONGEST_NAME] or "_"
        number = 2
        while name in names.values():
            name, number = f"{wanted}-{number}", number + 1
        names[topic] = name
    return names


def tell_damage(*recordings: Recording) -> int:
    """Say on standard error what could not be read; standard output may be for a script. The exit code: 1 where
    something was left out."""
    for text in dict.fromkeys(text for recording in recordings for text in recording.damage):
        print(f"! {text}", file=sys.stderr)
    return int(any(recording.has_left_out for recording in recordings))


def check_out(path: Path, *sources: Recording) -> None:
    """Raise UserError where the file to be written is one of those that are read, or is there already."""
    if any(path.resolve() == reader.path.resolve() for source in sources for reader in source.readers):
        raise UserError(f"{path}: is the recording itself; choose another file to write")
    check_new(path)


def check_picture(path: Path | None, option: str = "--out") -> None:
    """Raise UserError where the name is none of a picture, or a file of that name is there already."""
    if path is None:
        return
    if path.suffix.lower() not in PICTURES:
        raise UserError(f"{path}: expected a name that ends in {', '.join(PICTURES)}")
    check_new(path, option)


def copy_head(source: Recording, path: Path, note: dict[str, str]) -> BagWriter:
    """A new recording that says the same of its run, and how it came about."""
    check_out(path, source)
    about = {key: value for key, value in source.about.items() if key not in (ZERO, BEGIN)}
    if not source.is_virtual:
        about[ZERO] = str(source.start_ns)
    if source.begin_ns > source.start_ns:
        about[BEGIN] = str(source.begin_ns)
    first = source.readers[0]
    profile = None if source.is_ours else first.profile
    writer = BagWriter(path, {**about, **note}, wall_offset_ns=first.wall_offset_ns, profile=profile)
    for name, values in () if source.is_ours else first.metadata.items():
        writer.note(name, values)
    for reader in source.readers[:1]:
        for name, data in reader.attachments.items():
            writer.attach(name, "application/toml" if name.endswith(".toml") else "application/octet-stream", data)
    return writer


def add_recording(parser: argparse.ArgumentParser) -> None:
    """The argument that every subcommand has."""
    parser.add_argument("recording", type=Path, metavar="RUN.mcap", help="a recording of polyrhythm run")
