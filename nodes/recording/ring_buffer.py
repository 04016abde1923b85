"""What a recorder needs beside writing: the ring of the last seconds, free space, part names, hashes of model files."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from runtime.clock import Clock, to_ns, to_s
from runtime.errors import RecordingError
from runtime.execution.recorder_queue import size_of
from runtime.message import Envelope, Stamped

RING_BYTES = 512 * 1024 * 1024
"""A ring that holds more forgets its oldest messages early."""
LONGEST_LOOK_S = 2.0
"""A recorder that was started again reads so long in what it recorded before; messages wait for it meanwhile."""
MODEL_SUFFIXES = (".onnx", ".gguf", ".pt", ".safetensors", ".tflite")


class RingBuffer:
    """The messages of the last seconds, bounded in time and in bytes."""

    def __init__(self, seconds: float) -> None:
        self._span_ns = to_ns(seconds)
        self._messages: deque[tuple[int, int, Stamped[Any]]] = deque()  # when it came, and its bytes
        self._bytes = 0
        self.is_cut = False
        """Whether messages had to go before their time, for want of room."""

    @property
    def seconds(self) -> float:
        """How far back it reaches, from its newest message."""
        return to_s(self._messages[-1][0] - self._messages[0][0]) if self._messages else 0.0

    @property
    def begin_ns(self) -> int:
        """When its oldest message came; 0 where it has none."""
        return self._messages[0][0] if self._messages else 0

    @property
    def messages(self) -> Iterator[Stamped[Any]]:
        """All that is held, oldest first."""
        return (stamped for _, _, stamped in self._messages)

    def add(self, stamped: Stamped[Any], now_ns: int) -> None:
        """Take in a message and forget those that are too old."""
        size = size_of(stamped.message)
        self._messages.append((now_ns, size, stamped))
        self._bytes += size
        while self._messages and (self._messages[0][0] < now_ns - self._span_ns or self._bytes > RING_BYTES):
            came_ns, gone, _ = self._messages.popleft()
            self._bytes -= gone
            self.is_cut = self.is_cut or came_ns >= now_ns - self._span_ns

    def clear(self) -> None:
        """Forget all of it."""
        self._messages.clear()
        self._bytes = 0
        self.is_cut = False


def free_space(path: Path) -> tuple[float, float]:
    """What is free on the disk of that file, in MB and as a share of the disk."""
    disk = os.statvfs(path.parent)
    return disk.f_bavail * disk.f_frsize / 1e6, disk.f_bavail / max(1, disk.f_blocks)


def next_part(path: Path) -> Path:
    """The first file of that recording that does not exist yet."""
    from nodes.mcap.parts import part_of

    number = 1
    while part_of(path, number).exists():
        number += 1
    return part_of(path, number)


def is_unfinished(path: Path, run: Mapping[str, str]) -> bool:
    """Whether a recording of this very run is there that its recorder could not end."""
    from nodes.mcap.file import BagReader
    from nodes.mcap.parts import what_differs

    try:
        before = BagReader(path)
    except RecordingError:
        return False
    is_open = not before.is_complete or "continues" in before.metadata.get("end", {})
    return is_open and not what_differs(before.metadata.get("run", {}), run)


def last_written(parts: Sequence[Path], clock: Clock) -> dict[tuple[str, str], tuple[int, int]]:
    """Of each topic and source the number and stamp of the last message, as far as it is found in a short time."""
    from nodes.mcap.file import BagReader

    until_ns = clock.now_ns() + to_ns(LONGEST_LOOK_S)
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for part in reversed(parts):
        if clock.now_ns() >= until_ns:
            break
        with suppress(RecordingError):
            for message in BagReader(part).newest_first(lambda: clock.now_ns() < until_ns):
                with suppress(RecordingError):
                    about = message.envelope
                    found.setdefault((about.topic, about.source), (about.seq, about.published_ns))
    return found


def model_files(parameters: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Path and SHA-256 of each model file that a node's parameters name, by "node.parameter"."""
    found = {}
    for node, values in parameters.items():
        for name, value in values.items() if isinstance(values, Mapping) else ():
            path = Path(value) if isinstance(value, str) and value.endswith(MODEL_SUFFIXES) else None
            if path is not None and path.is_file():
                with path.open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                found[f"{node}.{name}"] = {"path": str(path), "sha256": digest}
    return found


Key = tuple[str, str]
"""A topic and who publishes it."""


class MissedMessages:
    """Counts by topic. `away`: how many of `number` were published while the recorder was dead or not yet connected."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}
        self.away: dict[str, int] = {}
        self._next: dict[Key, int] = {}
        self._before: dict[Key, tuple[int, int]] = {}  # number and stamp of the last one that the dead recorder wrote

    def goes_on(self, last: Mapping[Key, tuple[int, int]]) -> None:
        """A recorder that died had written up to these numbers and stamps; this one is in its place."""
        self._before = dict(last)

    def heard(self, envelope: Envelope) -> None:
        """A message came; those between it and the one before did not."""
        key = envelope.topic, envelope.source
        if key in self._before:
            self._first_again(key, envelope)
            return
        expected = self._next.get(key)
        if expected is not None and envelope.seq > expected:
            _add(self.number, envelope.topic, envelope.seq - expected)
        self._next[key] = envelope.seq + 1  # a smaller number is a node that started again

    def lost(self, topic: str) -> None:
        """One that came was not written."""
        _add(self.number, topic, 1)

    def told(self) -> dict[str, dict[str, int]]:
        """As it is noted at the end of a recording."""
        missed = {"missed": dict(sorted(self.number.items()))}
        return missed | ({"missed_away": dict(sorted(self.away.items()))} if self.away else {})

    def _first_again(self, key: Key, envelope: Envelope) -> None:
        seq, published_ns = self._before[key]
        if envelope.published_ns <= published_ns:
            return  # sent again, and in the file already
        del self._before[key]
        between = envelope.seq - (seq if envelope.seq > seq else 0) - 1  # or its node, too, has started again
        if between > 0:
            _add(self.number, envelope.topic, between)
            _add(self.away, envelope.topic, between)
        self._next[key] = envelope.seq + 1


def _add(counts: dict[str, int], topic: str, number: int) -> None:
    counts[topic] = counts.get(topic, 0) + number
