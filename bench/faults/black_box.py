"""Records of fixed size in a file that outlives whoever writes it, and flags that a running graph looks at.

One writer, many readers, no locks: a record counts once the number at the head says so.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path

_HEAD = struct.Struct("<q")
FOLDER_VARIABLE = "POLYRHYTHM_FAULTS"
"""Names the folder of the black boxes to the nodes of a run."""


class BlackBox:
    """A file of records, each some numbers; the newest `capacity` are kept."""

    def __init__(self, path: Path, layout: str, *, capacity: int = 1 << 15) -> None:
        """Opens it, or makes it. `layout` is that of `struct`, like "<qqd"."""
        self._record = struct.Struct(layout)
        self._capacity = capacity
        size = _HEAD.size + self._record.size * capacity
        fd = os.open(path, os.O_RDWR | os.O_CREAT)
        try:
            if os.fstat(fd).st_size < size:
                os.ftruncate(fd, size)
            self._map = mmap.mmap(fd, size)
        finally:
            os.close(fd)

    @property
    def count(self) -> int:
        """How many records were written so far."""
        count: int = _HEAD.unpack_from(self._map, 0)[0]
        return count

    def write(self, *values: float) -> None:
        """Add a record."""
        count = self.count
        self._record.pack_into(self._map, _HEAD.size + (count % self._capacity) * self._record.size, *values)
        _HEAD.pack_into(self._map, 0, count + 1)

    def since(self, start_ns: int) -> list[tuple[float, ...]]:
        """The records whose first number is not before that, in order."""
        count, found = self.count, list[tuple[float, ...]]()
        for number in range(count - 1, max(-1, count - self._capacity), -1):
            record = self._record.unpack_from(
                self._map, _HEAD.size + (number % self._capacity) * self._record.size
            )  # fmt: skip
            if record[0] < start_ns:
                break
            found.append(record)
        return found[::-1]

    def last(self) -> tuple[float, ...] | None:
        """The newest record."""
        count = self.count
        if not count:
            return None
        place = _HEAD.size + ((count - 1) % self._capacity) * self._record.size
        return self._record.unpack_from(self._map, place)


FLAGS = (
    "mode", "image", "leak", "block", "block_robot", "wall_s", "spin", "numb", "touch", "model", "runstop", "heard",
    "hostile", "button", "creep", "blind",
)  # fmt: skip


class Switchboard:
    """What the nodes of the test graph are told to do wrong now; numbers, 0 for nothing."""

    def __init__(self, path: Path) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT)
        try:
            os.ftruncate(fd, 8 * len(FLAGS))
            self._map = mmap.mmap(fd, 8 * len(FLAGS))
        finally:
            os.close(fd)

    def __getitem__(self, name: str) -> int:
        value: int = _HEAD.unpack_from(self._map, 8 * FLAGS.index(name))[0]
        return value

    def __setitem__(self, name: str, value: int) -> None:
        _HEAD.pack_into(self._map, 8 * FLAGS.index(name), value)

    def clear(self) -> None:
        """Everything is to go right again."""
        for name in FLAGS:
            self[name] = 0


def folder() -> Path:
    """Where the black boxes of this run are."""
    return Path(os.environ[FOLDER_VARIABLE])


GUARD_LAYOUT = "<qqqqqqqddqqqq"
"""Per guard tick: now, mode, stamp of the newest command accepted, oldest age at acceptance since the tick before, how
many were accepted so far, heard and held stamps of the stop, forward and turning speed let through, refused so far,
how many commands of others than the policy were accepted, how many could not be read or were nobody's, so far,
and whether anything was let through at all: a guard that has let go of the robot asks for nothing."""
MOTOR_LAYOUT = "<qdddq"
"""Per motor step: now, target speed, speed, place, whether the watchdog has taken over."""
ORDER_LAYOUT = "<qd"
"""Per driver command: now, forward speed."""
BARE_LAYOUT = "<qd"
"""Per turn of the bare timer loop: now, lateness in ms."""


def guard_box(path: Path) -> BlackBox:
    return BlackBox(path / "guard", GUARD_LAYOUT)


def motor_box(path: Path) -> BlackBox:
    return BlackBox(path / "motors", MOTOR_LAYOUT)


def order_box(path: Path) -> BlackBox:
    return BlackBox(path / "orders", ORDER_LAYOUT, capacity=1 << 10)


def bare_box(path: Path) -> BlackBox:
    return BlackBox(path / "bare", BARE_LAYOUT)
