"""`MessageTrace`: one hash over all messages of a run, and where two runs first differ."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from runtime.clock import NS_PER_S
from runtime.message import Stamped
from runtime.serialization.codec import encode

DIGITS = 16


def _hash() -> hashlib._Hash:
    """Images are most of what is hashed: of the hashes of the standard library the quickest one, and no secret."""
    return hashlib.sha1(usedforsecurity=False)


class MessageTrace:
    """Hashes every message in the order of publication: its time, envelope and content, images included.

    With `keep` it also keeps one line per message, for `first_difference`.
    """

    def __init__(self, *, keep: bool = False) -> None:
        self._whole = _hash()
        self.lines: list[str] | None = [] if keep else None
        self.messages = 0

    def add(self, stamped: Stamped[Any]) -> None:
        """Add the next message."""
        if not stamped.message.message_is_traced:
            return
        self.messages += 1
        frames = encode(stamped.envelope, stamped.message)
        if self.lines is None:
            for frame in frames:
                self._whole.update(frame)
            return
        own = _hash()
        for frame in frames:
            self._whole.update(frame)
            own.update(frame)
        envelope = stamped.envelope
        text = ""
        if len(frames) == 2:  # no arrays: short enough to be read by people
            text = f" {stamped.message!r}"[:400].replace("\n", " ")
        self.lines.append(f"{envelope.published_ns / NS_PER_S:.9f} {envelope.ident} {own.hexdigest()[:DIGITS]}{text}")

    @property
    def hash(self) -> str:
        """The hash, sixteen characters; equal for equal runs."""
        return self._whole.hexdigest()[:DIGITS]


def first_difference(one: Sequence[str], other: Sequence[str]) -> tuple[int, str, str] | None:
    """The number of the first message that differs, with both lines ("" past an end); None where none differs."""
    for number in range(max(len(one), len(other))):
        left = one[number] if number < len(one) else ""
        right = other[number] if number < len(other) else ""
        if left != right:
            return number, left, right
    return None


def timeline(lines: Sequence[str], width: int = 80) -> str:
    """A page of text: for each topic when its messages came, then every message on one line."""
    stamps: dict[str, list[float]] = {}
    for line in lines:
        time_text, ident = line.split(" ", 2)[:2]
        stamps.setdefault(ident.split(":", 1)[0], []).append(float(time_text))
    if not stamps:
        return "no message was published\n"
    end_s = max(max(times) for times in stamps.values()) or 1.0
    name_width = max(len(topic) for topic in stamps)
    rows = [f"{'':{name_width}} 0 s{f'{end_s:.3f} s':>{width - 3}}"]
    for topic, times in sorted(stamps.items()):
        counts = [0] * width
        for time_s in times:
            counts[min(width - 1, int(time_s / end_s * width))] += 1
        strip = "".join("." if not count else str(count) if count < 10 else "+" for count in counts)
        rows.append(f"{topic:{name_width}} {strip}")
    return "\n".join([*rows, "", *lines]) + "\n"
