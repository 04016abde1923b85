"""A recording as JSON lines (a message a line), or as CSV (a file a topic, nested fields as columns)."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from nodes.mcap.record import BagMessage
from nodes.mcap.schema import envelope_document
from nodes.recording.bag.export.damage import Damaged
from nodes.recording.bag.foreign import document_of
from nodes.recording.bag.recording import Recording, envelope_or_none, file_names
from nodes.recording.images import SCHEMA_NAME as IMAGE_SCHEMA
from runtime.clock import to_s
from runtime.errors import RecordingError

WIDEST = 64
"""Elements of a list that become columns; longer ones are left to JSON lines."""
LONGEST = 8192
"""Characters of a text in a column; longer ones, such as pictures, are left to JSON lines."""
_LARGE = ("data",)
"""Of our own messages."""
_HEAD = ("at_s", "source", "seq", "image_age_s", "cause")
"""The columns that every table has; a message's own field of such a name is `message.cause`."""


def export_jsonl(
    recording: Recording, out: Path, *, with_images: bool = False, tell: Callable[[str], None] = lambda _: None
) -> int:
    """One line for each message: topic, run time, type, envelope, message; how many there are.

    `tell` hears of messages that cannot be read.
    """
    start_ns = recording.start_ns
    damaged = Damaged(recording, is_skipped=True, what_then="their lines hold what can be")
    lines = 0
    with out.open("wb") as file:
        for message in recording.gone_through("writing"):
            envelope = envelope_or_none(message)
            document = dict(_document(message, damaged))
            if not with_images and message.schema == IMAGE_SCHEMA:
                document.pop("data", None)
            line = {
                "topic": message.topic,
                "at_s": to_s(envelope.published_ns - start_ns) if envelope is not None else None,
                "type": message.schema,
                "envelope": envelope_document(envelope) if envelope is not None else None,
                "message": document,
            }
            file.write(msgspec.json.encode(line) + b"\n")
            lines += 1
    damaged.tell(tell)
    return lines


def export_csv(
    recording: Recording, out: Path, *, tell: Callable[[str], None] = lambda _: None
) -> list[tuple[Path, int]]:
    """One file for each topic, with the columns that any of its messages has; the files and their rows.

    `tell` hears of messages that cannot be read.
    """
    damaged = Damaged(recording, is_skipped=True, what_then="their rows hold what can be")
    columns: dict[str, dict[str, None]] = {}
    for message in recording.gone_through("looking"):
        columns.setdefault(message.topic, {}).update(dict.fromkeys(key for key, _ in _flat(message)))
    if not columns:
        raise RecordingError(f"{recording.path}: holds no messages, so there are no tables")
    paths = {topic: out / f"{name}.csv" for topic, name in file_names(columns).items()}
    out.mkdir(parents=True, exist_ok=True)
    start_ns = recording.start_ns
    writers: dict[str, csv.DictWriter[str]] = {}
    rows: dict[str, int] = {}
    with ExitStack() as files:
        for topic, names in columns.items():
            file = files.enter_context(paths[topic].open("w", newline=""))
            writers[topic] = csv.DictWriter(file, [*_HEAD, *names])
            writers[topic].writeheader()
        for message in recording.gone_through("writing"):
            envelope = envelope_or_none(message)
            row: dict[str, Any] = dict(_flat(message, damaged))
            if envelope is not None:
                image_ns = envelope.born_ns("image")
                age_s = "" if image_ns is None else to_s(envelope.published_ns - image_ns)
                at_s = to_s(envelope.published_ns - start_ns)
                row |= dict(zip(_HEAD, (at_s, envelope.source, envelope.seq, age_s, envelope.cause), strict=True))
            writers[message.topic].writerow(row)
            rows[message.topic] = rows.get(message.topic, 0) + 1
    damaged.tell(tell)
    return [(paths[topic], rows.get(topic, 0)) for topic in sorted(paths)]


def _document(message: BagMessage, damaged: Damaged | None = None) -> dict[str, Any]:
    try:
        return document_of(message)
    except RecordingError as problem:
        if damaged is not None:
            damaged.met(message, problem)
        return {}


def _flat(message: BagMessage, damaged: Damaged | None = None) -> Iterator[tuple[str, Any]]:
    for key, value in _document(message, damaged).items():
        if key not in _LARGE or not message.is_ours:
            yield from _columns(f"message.{key}" if key in _HEAD else key, value)


def _columns(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _columns(f"{name}.{key}", part)
    elif isinstance(value, list):
        if len(value) <= WIDEST:
            for index, part in enumerate(value):
                yield from _columns(f"{name}.{index}", part)
    elif not isinstance(value, str) or len(value) <= LONGEST:
        yield name, value
