"""`polyrhythm bag diff`: whether two recordings hold the same messages in the same order.

What a machine's load decides (process ids, processor time, memory) and where files lie is left out. Pictures are
compared by their pixels: their files may be packed in more than one way.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.mcap.record import BagMessage
from nodes.mcap.schema import ENVELOPE_KEY, Document
from nodes.recording import images
from nodes.recording.bag.info import OWN
from nodes.recording.bag.recording import Recording, envelope_or_none, is_journal
from runtime.errors import RecordingError, UserError
from runtime.supervision.view import plain

WALL_CLOCK_FIELDS = {"Health": ("pid", "cpu_s", "rss_mb")}
"""By schema: what differs between two runs of the same seed on one machine."""

_LONGEST = 200


@dataclass(frozen=True)
class Difference:
    """The first place where two recordings part."""

    number: int  # of the message in the stream, from 1
    message: str  # "topic:source:seq" in the first recording
    at_s: float  # of run time
    where: str  # path of the field
    first: Any
    second: Any

    def sentence(self) -> str:
        return (
            f"message {self.number} ({self.message} at {self.at_s:.6f} s) differs in {self.where}:\n"
            f"  first:  {_short(self.first)}\n  second: {_short(self.second)}"
        )


def compare(first: Recording, second: Recording, nodes: Collection[str] = ()) -> tuple[int, Difference | None]:
    """How many messages are alike, and the first difference; None where there is none.

    With `nodes` only what these published counts, and not what they told of themselves.
    """
    number = 0
    for number, (one, two) in enumerate(zip_longest(_stream(first, nodes), _stream(second, nodes)), start=1):
        if one is None or two is None:
            known, of = (one, first) if one is not None else (two, second)
            assert known is not None
            name = _ident(known)
            there, gone = f"{name}", "the recording has ended"
            return number - 1, Difference(
                number, name, of.logged_s(known), "what comes next",
                there if one is not None else gone, there if two is not None else gone,
            )  # fmt: skip
        if one.data == two.data and one.topic == two.topic:
            continue
        found = _difference(one, two)
        if found is not None:
            where, left, right = found
            return number - 1, Difference(number, _ident(one), first.logged_s(one), where, left, right)
    return number, None


def first_difference(one: Any, two: Any, where: str = "") -> tuple[str, Any, Any] | None:
    """The first place, in order of the keys, where two JSON values differ, with both values."""
    if isinstance(one, dict) and isinstance(two, dict):
        for key in list(one) + [key for key in two if key not in one]:
            if key not in one or key not in two:
                return f"{where}.{key}".lstrip("."), one.get(key, "(absent)"), two.get(key, "(absent)")
            found = first_difference(one[key], two[key], f"{where}.{key}".lstrip("."))
            if found is not None:
                return found
        return None
    if isinstance(one, list) and isinstance(two, list):
        for index, (left, right) in enumerate(zip(one, two, strict=False)):
            found = first_difference(left, right, f"{where}[{index}]")
            if found is not None:
                return found
        return (f"{where} (length)", len(one), len(two)) if len(one) != len(two) else None
    same = one == two and type(one) is type(two)
    return None if same else (where or "the whole message", one, two)


def _stream(recording: Recording, nodes: Collection[str]) -> Iterator[BagMessage]:
    messages = recording.gone_through("comparing")
    return (message for message in messages if not nodes or _is_said_by(message, nodes))


def _is_said_by(message: BagMessage, nodes: Collection[str]) -> bool:
    envelope = envelope_or_none(message)
    is_own = message.topic.startswith(OWN) or is_journal(message)
    return envelope is not None and envelope.source in nodes and not is_own


def _difference(one: BagMessage, two: BagMessage) -> tuple[str, Any, Any] | None:
    if one.topic != two.topic:
        return "topic", _ident(one), _ident(two)
    if one.schema != two.schema:
        return "type", one.schema, two.schema
    left, right = _whole(one), _whole(two)
    look = _LOOKS.get(one.schema)
    if look is not None and left.get("data") != right.get("data") and _looks_alike(look, left, right):
        left["data"] = right["data"]
    return first_difference(left, right)


def _looks_alike(look: Callable[[Document], NDArray[Any]], one: Document, two: Document) -> bool:
    """Whether two pictures, packed otherwise, have the same pixels."""
    try:
        return bool(np.array_equal(look(one), look(two), equal_nan=True))
    except (RecordingError, TypeError):
        return False


_LOOKS: dict[str, Callable[[Document], NDArray[Any]]] = {
    images.SCHEMA_NAME: images.as_stored,
    images.DEPTH_SCHEMA_NAME: lambda document: images.depth_of(document)[0],
}
"""By schema, what a recorded picture shows."""


def _whole(message: BagMessage) -> Document:
    """The document with its envelope as it is compared."""
    try:
        document = dict(message.document)
        document[ENVELOPE_KEY] = {name: getattr(message.envelope, name) for name in message.envelope.__struct_fields__}
    except RecordingError:
        return {"bytes": message.data.hex()}
    for name in WALL_CLOCK_FIELDS.get(message.schema, ()):
        document.pop(name, None)
    return document


def _ident(message: BagMessage) -> str:
    try:
        return message.envelope.ident
    except RecordingError:
        return message.topic


def _short(value: Any) -> str:
    text = plain(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"


def main(argv: list[str]) -> int:
    """`polyrhythm bag diff`: 0 where the streams are identical, 1 where they differ."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm bag diff",
        description="Whether two recordings hold the same messages in the same order; else the first difference.",
        epilog="example: polyrhythm bag diff a.mcap b.mcap --nodes policy",
    )
    parser.add_argument("first", type=Path, metavar="A.mcap")
    parser.add_argument("second", type=Path, metavar="B.mcap")
    parser.add_argument(
        "--nodes", nargs="+", default=[], metavar="NAME", help="only what these nodes said, such as one replayed --live"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    asked = parser.parse_args(argv)
    first, second = Recording(asked.first), Recording(asked.second)
    alike, difference = compare(first, second, asked.nodes)
    if asked.nodes and not alike and difference is None:
        raise UserError(f"--nodes {' '.join(asked.nodes)}: neither recording holds a message of theirs")
    damage = first.damage + second.damage  # where they differ: what was met before that place
    if asked.json:
        print(json.dumps({
            "identical": difference is None, "alike": alike, "damage": damage,
            "difference": difference.__dict__ if difference is not None else None,
        }))  # fmt: skip
    elif difference is None:
        print(f"identical: {alike} messages")
    else:
        print(f"{alike} messages are alike, then {difference.sentence()}")
    for text in damage if not asked.json else ():
        print(f"! {text}")
    return 0 if difference is None else 1
