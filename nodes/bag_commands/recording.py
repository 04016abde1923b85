"""`Recording`: all parts of a recorded run as one row of messages, with what is known of the run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from runtime.bag import BagMessage, BagReader, BagWriter, parts_of
from runtime.errors import RecordingError, UserError
from runtime.message import Envelope

PROGRESS_EVERY = 20_000


class Recording:
    """One run, however many files it has. Raises RecordingError where a file is none of ours, or of another run."""

    def __init__(self, path: Path, parts: list[Path] | None = None) -> None:
        self.path = path
        self.readers = [BagReader(part) for part in (parts or parts_of(path))]
        self.about = self.readers[0].metadata.get("run", {})
        for reader in self.readers[1:]:
            check_same_run(self.readers[0], reader)

    def __iter__(self) -> Iterator[BagMessage]:
        for reader in self.readers:
            yield from reader

    @property
    def end(self) -> dict[str, str]:
        """What was noted at the end; empty where the recording was cut off."""
        return self.readers[-1].metadata.get("end", {})

    @property
    def is_complete(self) -> bool:
        """Whether every part was closed and is whole; known once the messages were read."""
        return all(reader.is_complete for reader in self.readers)

    @property
    def damage(self) -> list[str]:
        """What could not be read, in sentences; known once the messages were read."""
        return [text for reader in self.readers for text in reader.damage]

    @property
    def is_virtual(self) -> bool:
        return self.about.get("clock") == "virtual"

    @property
    def start_ns(self) -> int:
        """Run time zero as a monotonic stamp; that of the first message where the recording does not say."""
        if self.is_virtual:
            return 0
        for message in self:
            envelope = envelope_or_none(message)
            if envelope is not None:
                return envelope.published_ns
        return 0

    def noted(self, key: str) -> Any:
        """A value noted at the end or at the start, decoded; None where there is none."""
        text = self.end.get(key, self.about.get(key))
        if text is None:
            return None
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text


def check_same_run(first: BagReader, other: BagReader) -> None:
    """Raise RecordingError where the two files are of different runs."""
    for key in ("folder", "seed", "launch_file", "git", "clock"):
        one, two = (reader.metadata.get("run", {}).get(key, "") for reader in (first, other))
        if one != two:
            raise RecordingError(
                f"{other.path}: is of another run than {first.path} ({key} is {two!r}, not {one!r}); "
                "two runs are not one recording"
            )


def envelope_or_none(message: BagMessage) -> Envelope | None:
    """The envelope, or None where it cannot be read."""
    try:
        return message.envelope
    except RecordingError:
        return None


def with_progress(messages: Iterator[BagMessage], doing: str) -> Iterator[BagMessage]:
    """The same messages; a person at a terminal is told how far it is."""
    is_told = sys.stderr.isatty()
    number = 0
    for number, message in enumerate(messages, start=1):
        if is_told and number % PROGRESS_EVERY == 0:
            print(f"\r{doing}: {number} messages", end="", file=sys.stderr, flush=True)
        yield message
    if is_told and number >= PROGRESS_EVERY:
        print(f"\r{doing}: {number} messages", file=sys.stderr)


def copy_head(source: Recording, path: Path, note: dict[str, str]) -> BagWriter:
    """A new recording that says the same of its run, and how it came about."""
    if any(path.resolve() == reader.path.resolve() for reader in source.readers):
        raise UserError(f"{path}: is the recording itself; choose another file to write")
    writer = BagWriter(path, {**source.about, **note}, wall_offset_ns=source.readers[0].wall_offset_ns)
    for reader in source.readers[:1]:
        for name, data in reader.attachments.items():
            writer.attach(name, "application/toml" if name.endswith(".toml") else "application/octet-stream", data)
    return writer


def add_recording(parser: argparse.ArgumentParser) -> None:
    """The argument that every subcommand has."""
    parser.add_argument("recording", type=Path, metavar="RUN.mcap", help="a recording of polyrhythm run")
