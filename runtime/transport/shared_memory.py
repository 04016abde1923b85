"""Large arrays between the processes of one host: a pool of slots in shared memory, written once and read in place.

The writer copies arrays into a slot and announces its `SlotAddress` in the ordinary message. A reader maps the same
memory read-only; its arrays lie there until it releases them.

The kernel keeps the accounts. Whoever uses a slot holds a file lock on one byte of the segment: shared to read,
exclusive to write. A process that dies loses its locks. So nobody ever sees a slot while it is rewritten, and no peer
has to be asked whether it is still alive.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import re
import secrets
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from runtime.clock import SystemClock, to_ns
from runtime.errors import TransportError
from runtime.operating_system.machine import SHARED_MEMORY, has_shared_memory
from runtime.transport import fast_lane
from runtime.transport.channel import Loss
from runtime.transport.fast_lane import HEADER, HEADER_BYTES, KEY_BYTES, MAGIC, SLOTS, MapLike

FOLDER = SHARED_MEMORY
SHARED_FROM_BYTES = 128 << 10
"""Arrays of at least this many bytes go through it; see docs/decisions/shared-memory.md."""
BUDGET_BYTES = 256 << 20
"""Most shared memory of one process, bytes; beyond it, arrays travel inside the message."""

GRACE_S = 1.0
"""How long an announced slot waits for its readers, s, while another slot is free."""

_ALIGNMENT = 64
_NAME = re.compile(r"polyrhythm-[0-9]{1,10}-[0-9]{1,10}-[0-9a-f]{8}")
_ALIVE = 1 << 40  # the byte that the writer locks for as long as it lives
_UNUSED_GRACES = 5  # a size that was not needed for so long gives way to another
_SIZES = 64  # of arrays, of which a pool knows the segment at once
_FAILURES = 3  # of one segment, before a reader asks for whole messages
_MAPPED = 64  # segments that a reader keeps mapped
_now_ns = SystemClock.now_ns


class SlotAddress(msgspec.Struct, frozen=True, array_like=True):
    """Where the arrays of a message lie, and in which generation of the slot."""

    segment: str
    slot: int
    generation: int
    sizes: tuple[int, ...]  # bytes of each array


@lru_cache(maxsize=256)
def _offsets(sizes: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """Where in a slot each array begins, and how long they are together. Raises ValueError for sizes that are none."""
    if any(size < 0 for size in sizes):
        raise ValueError("no such sizes")
    offsets, end = [], 0
    for size in sizes:
        offsets.append(end)
        end += -(-size // _ALIGNMENT) * _ALIGNMENT
    return tuple(offsets), end


def _capacity(size: int) -> int:
    """The slots that a payload goes into: sizes up to a quarter apart share theirs."""
    step = max(4096, 1 << max(0, size.bit_length() - 3))
    return -(-size // step) * step


def is_available(folder: Path = FOLDER) -> bool:
    """Whether this machine supports it."""
    return has_shared_memory(folder)


def sweep(folder: Path = FOLDER) -> list[str]:
    """Remove this user's segments whose writer is gone, and return their names; views of them stay valid."""
    if not is_available(folder):
        return []
    removed = []
    for file in sorted(folder.glob(f"polyrhythm-{os.getuid()}-*")):
        try:
            fd = os.open(file, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            continue  # gone, or none of ours
        try:
            if _NAME.fullmatch(file.name) and fast_lane.lock(fd, fcntl.F_WRLCK, _ALIVE):
                file.unlink(missing_ok=True)
                removed.append(file.name)
        finally:
            os.close(fd)
    return removed


class Segment:
    """Slots of one size in one file, which uses no more memory than its slots have needed."""

    def __init__(self, folder: Path, capacity: int, slots: int) -> None:
        """Raises OSError where the file cannot be made."""
        self.capacity = capacity
        self.most = slots
        self.used_ns = 0
        while True:
            self.name = f"polyrhythm-{os.getuid()}-{os.getpid()}-{secrets.token_hex(4)}"
            self._file = folder / self.name
            fd = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            weakref.finalize(self, os.close, fd).atexit = False  # somebody may write still when it is closed
            try:
                if fast_lane.lock(fd, fcntl.F_WRLCK, _ALIVE) and os.fstat(fd).st_nlink:
                    break  # else somebody swept here between the two lines above
            except OSError:
                self.close()
                raise
            self.close()
        try:
            size = HEADER_BYTES + slots * capacity
            os.ftruncate(fd, size)
            os.posix_fallocate(fd, 0, HEADER_BYTES)
            memory = mmap.mmap(fd, size)
        except OSError:
            self.close()
            raise
        HEADER.pack_into(memory, 0, MAGIC, slots, capacity)
        self.key = self.name.encode()
        self.ring = fast_lane.chosen.Ring(fd, memory, slots, capacity)

    def close(self) -> None:
        """Remove the file; what readers hold of it stays valid until they release it."""
        self._file.unlink(missing_ok=True)


class Pool:
    """The writing side of a process; any thread may store. Its memory is bounded, and it never waits."""

    def __init__(self, folder: Path = FOLDER, *, budget_bytes: int = BUDGET_BYTES, grace_s: float = GRACE_S) -> None:
        self._folder = folder
        self._budget_bytes = budget_bytes
        self.grace_ns = to_ns(grace_s)
        self._lock = threading.Lock()
        self._segments: dict[int, Segment] = {}
        self.by_size: dict[int, Segment] = {}
        """The segments by size of array, of sizes that have been stored."""
        self._is_open = is_available(folder)
        self.problem = ""
        """Why arrays travel inside their messages, in words, where they do."""

    def store(self, arrays: Sequence[Any]) -> SlotAddress | None:
        """Copy arrays into a slot; None where no slot is free, and the arrays must travel inside the message."""
        sizes = tuple(len(array) for array in arrays)
        offsets, size = _offsets(sizes)
        now_ns = _now_ns()
        with self._lock:
            segment = self._segment(size, now_ns) if self._is_open else None
            if segment is None:
                return None
            segment.used_ns = now_ns
            if len(sizes) == 1:
                if len(self.by_size) == _SIZES:
                    self.by_size.clear()
                self.by_size[size] = segment
        try:
            found = segment.ring.store(tuple(arrays), offsets, size, now_ns, self.grace_ns)
        except OSError as problem:
            self.problem = f"{self._folder} has no room for {size >> 10} KiB: {problem.strerror}"
            return None
        return None if found is None else SlotAddress(segment.name, *found, sizes)

    def _segment(self, size: int, now_ns: int) -> Segment | None:
        capacity = _capacity(size)
        segment = self._segments.get(capacity)
        if segment is not None:
            return segment
        left = self._budget_bytes - sum(one.most * one.capacity for one in self._segments.values())
        if left < 4 * capacity:
            for key, old in list(self._segments.items()):
                if now_ns - old.used_ns > _UNUSED_GRACES * self.grace_ns:
                    left += old.most * old.capacity
                    self._segments.pop(key).close()
                    self.by_size.clear()
        slots = min(SLOTS, max(left // 2, min(left, 4 * capacity)) // capacity)  # the next size gets something too
        if not slots:
            self.problem = f"the arrays of this process need more than {self._budget_bytes >> 20} MiB of shared memory"
            return None
        try:
            segment = self._segments[capacity] = Segment(self._folder, capacity, slots)
        except OSError as problem:
            self.problem = f"{self._folder} cannot be used: {problem.strerror}"
        return segment

    def close(self) -> None:
        """Remove all segments."""
        with self._lock:
            self._is_open = False
            for segment in self._segments.values():
                segment.close()
            self._segments.clear()
            self.by_size.clear()


class Views:
    """The reading side of one reader; one thread may take, any may release."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._failures: Counter[str] = Counter()  # by segment
        self.maps: dict[bytes, MapLike] = {}
        """The segments that are mapped, by name, padded with zeros."""

    def fetch(self, place: SlotAddress, ask_for_whole: Callable[[], None]) -> list[memoryview] | Loss:
        """As `take`, or why the arrays are lost. Where a segment stays out of reach `ask_for_whole` is called, once."""
        try:
            return self.take(place) or Loss("overwritten")
        except TransportError as problem:
            self._failures[place.segment] += 1
            if self._failures[place.segment] == _FAILURES:  # not one that has just gone with its writer
                ask_for_whole()
            return Loss("unreachable", str(problem))

    def take(self, place: SlotAddress) -> list[memoryview] | None:
        """The arrays as bytes in place; None where newer ones have overwritten them.

        Raises TransportError where this process cannot reach that memory, ValueError where the address is invalid.
        """
        import numpy as np

        if not place.sizes:
            raise ValueError("no such place")
        offsets, size = _offsets(place.sizes)
        if not 0 <= place.slot < SLOTS:
            raise ValueError("no such place in the segment")
        mapping = self.maps.get(place.segment.encode().ljust(KEY_BYTES, b"\0")) or self._open(place.segment)
        found = mapping.view(place.slot, place.generation, size)
        if found is None:
            return None
        block = np.frombuffer(found, np.uint8).data
        return [block[offset : offset + size] for offset, size in zip(offsets, place.sizes, strict=True)]

    def _open(self, name: str) -> MapLike:
        if not _NAME.fullmatch(name):
            raise ValueError("no name of a segment")
        try:
            mapping = fast_lane.chosen.Map(str(self._folder / name))
        except OSError as problem:
            raise TransportError(f"{self._folder / name} cannot be read: {problem.strerror}") from problem
        self.maps[name.encode().ljust(KEY_BYTES, b"\0")] = mapping
        while len(self.maps) > _MAPPED:
            del self.maps[next(iter(self.maps))]
        return mapping

    def close(self) -> None:
        """Unmap the segments; arrays in use stay valid."""
        self.maps.clear()
