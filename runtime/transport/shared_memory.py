"""Large arrays between the processes of one host: a pool of slots in shared memory, written once and read in place.

The writer copies arrays into a slot and announces its `SlotAddress` in the ordinary message. A reader maps the same
memory, read-only; its arrays lie there until it lets go of them. The kernel keeps the accounts. Who uses a slot holds a
file lock on one byte of the segment, shared to read and exclusive to write. A process that dies loses its locks. So
nobody ever sees a slot that is being rewritten, and nobody has to be asked whether he still lives.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import re
import secrets
import struct
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import msgspec

from runtime.clock import SystemClock, to_ns
from runtime.errors import TransportError
from runtime.machine import SHARED_MEMORY, has_shared_memory

FOLDER = SHARED_MEMORY
BUDGET_BYTES = 256 << 20
"""Of one process; beyond it arrays travel inside the message."""

SLOTS = 256  # of one segment, at most
GRACE_S = 1.0
"""For so long an announced slot waits for its readers, while there is room for another."""

_ALIGNMENT = 64
_HEADER_BYTES = 4096
_HEADER = struct.Struct("<16sQQ")  # what it is, number of slots, bytes of a slot; then a generation for each slot
_MAGIC = b"polyrhythm-slots"
_GENERATIONS = 64  # offset of the first
_NAME = re.compile(r"polyrhythm-[0-9]{1,10}-[0-9]{1,10}-[0-9a-f]{8}")
_ALIVE = 1 << 40  # the byte that the writer locks for as long as it lives
_FLOCK = struct.Struct("hhqqi")  # of Linux on 64 bits: type, whence, start, length, pid
_UNUSED_GRACES = 5  # a size that was not needed for so long gives way to another
_MAPPED = 64  # segments that a reader keeps mapped
_SIZES = 64  # of arrays, of which a pool knows the segment at once
_GENERATION = struct.Struct("<Q")
_now_ns = SystemClock.now_ns


class SlotAddress(msgspec.Struct, frozen=True, array_like=True):
    """Where the arrays of a message lie, and of which writing."""

    segment: str
    slot: int
    generation: int
    sizes: tuple[int, ...]  # bytes of each array


def _lock(fd: int, kind: int, byte: int) -> bool:
    """Take or give a lock of this open file; False where another one stands in the way."""
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, byte, 1, 0))
    except (BlockingIOError, PermissionError):
        return False
    return True


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
    """Whether this machine has what is needed."""
    return has_shared_memory(folder)


def sweep(folder: Path = FOLDER) -> list[str]:
    """Remove the segments of this user whose writer is gone; return their names. Views of them stay good."""
    if not is_available(folder):
        return []
    removed = []
    for file in sorted(folder.glob(f"polyrhythm-{os.getuid()}-*")):
        try:
            fd = os.open(file, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            continue  # gone, or none of ours
        try:
            if _NAME.fullmatch(file.name) and _lock(fd, fcntl.F_WRLCK, _ALIVE):
                file.unlink(missing_ok=True)
                removed.append(file.name)
        finally:
            os.close(fd)
    return removed


class _Slot:
    __slots__ = ("allocated", "announced_ns", "generation", "index", "locks", "unlocks")

    def __init__(self, index: int) -> None:
        self.index = index
        self.locks = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, index, 1, 0)
        self.unlocks = _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, index, 1, 0)
        self.generation = 0
        self.announced_ns = 0
        self.allocated = 0  # bytes that are really there


class _Segment:
    """Slots of one size in one file, which holds no more memory than its slots have needed."""

    def __init__(self, folder: Path, capacity: int, slots: int) -> None:
        """Raises OSError."""
        import numpy as np

        self.capacity = capacity
        self.key = b""  # its name, as bytes
        self.slots: deque[_Slot] = deque()  # oldest first, those being written apart
        self.made = 0
        self.most = slots
        self.used_ns = 0
        while True:
            self.name = f"polyrhythm-{os.getuid()}-{os.getpid()}-{secrets.token_hex(4)}"
            self._file = folder / self.name
            self.fd = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                if _lock(self.fd, fcntl.F_WRLCK, _ALIVE) and os.fstat(self.fd).st_nlink:
                    break  # else somebody swept here between the two lines above
            except OSError:
                self.close()
                raise
            self.close()
        try:
            size = _HEADER_BYTES + slots * capacity
            os.ftruncate(self.fd, size)
            os.posix_fallocate(self.fd, 0, _HEADER_BYTES)
            self._map = mmap.mmap(self.fd, size)
            self._as_bytes: Callable[[Any], Any] = partial(np.frombuffer, dtype=np.uint8)
            self._bytes = self._as_bytes(self._map)
        except OSError:
            self.close()
            raise
        _HEADER.pack_into(self._map, 0, _MAGIC, slots, capacity)
        self.key = self.name.encode()

    def take_slot(self, now_ns: int, oldest_ns: int) -> _Slot | None:
        """A slot to write into, locked: one announced before `oldest_ns`, else a new one, else the oldest free one."""
        self.used_ns = now_ns
        slot = self._free_one(oldest_ns)
        if slot is None and self.made < self.most:
            slot = _Slot(self.made)
            self.made += 1
            _lock(self.fd, fcntl.F_WRLCK, slot.index)
        return slot or self._free_one(now_ns)

    def _free_one(self, oldest_ns: int) -> _Slot | None:
        for _ in range(len(self.slots)):
            slot = self.slots[0]
            if slot.announced_ns > oldest_ns:
                return None  # those behind it are younger, or were in use when it was their turn
            self.slots.popleft()
            if _lock(self.fd, fcntl.F_WRLCK, slot.index):
                return slot
            self.slots.append(slot)  # somebody looks at it: leave it in peace for a round
        return None

    def write(self, slot: _Slot, arrays: Sequence[Any], offsets: Sequence[int], size: int) -> None:
        """Fill a slot. Raises OSError where there is no memory for it."""
        start = _HEADER_BYTES + slot.index * self.capacity
        if size > slot.allocated:
            os.posix_fallocate(self.fd, start, size)  # else a full folder would be a SIGBUS in the copy below
            slot.allocated = size
        slot.generation += 1
        struct.pack_into("<Q", self._map, _GENERATIONS + 8 * slot.index, slot.generation)
        for array, offset in zip(arrays, offsets, strict=True):
            if len(array):
                begin = start + offset
                self._bytes[begin : begin + len(array)] = self._as_bytes(array)  # other threads run meanwhile

    def overwrite(self, slot: _Slot, array: Any, size: int) -> None:
        """Fill a slot that has held as much before with one array."""
        slot.generation += 1
        _GENERATION.pack_into(self._map, _GENERATIONS + 8 * slot.index, slot.generation)
        start = _HEADER_BYTES + slot.index * self.capacity
        self._bytes[start : start + size] = self._as_bytes(array)  # other threads run meanwhile

    def release(self, slot: _Slot) -> None:
        """Let readers in."""
        _lock(self.fd, fcntl.F_UNLCK, slot.index)
        self.slots.append(slot)

    def close(self) -> None:
        """Remove the file; what readers hold of it stays good until they let go."""
        self._file.unlink(missing_ok=True)
        os.close(self.fd)


class Pool:
    """The writing side of a process; any thread may store. Memory is bounded, and nothing ever waits."""

    def __init__(self, folder: Path = FOLDER, *, budget_bytes: int = BUDGET_BYTES, grace_s: float = GRACE_S) -> None:
        self._folder = folder
        self._budget_bytes = budget_bytes
        self.grace_ns = to_ns(grace_s)
        self._clock = SystemClock()
        self._lock = threading.Lock()
        self._segments: dict[int, _Segment] = {}
        self._by_size: dict[int, _Segment] = {}  # those that were used of late
        self._is_open = is_available(folder)
        self.problem = ""
        """Why arrays travel inside their messages, in words, where they do."""

    def store(self, arrays: Sequence[Any]) -> SlotAddress | None:
        """Copy arrays into a slot; None where there is none, and then they have to travel inside the message."""
        sizes = tuple(len(array) for array in arrays)
        offsets, size = _offsets(sizes)
        with self._lock:
            if not self._is_open:
                return None
            now_ns = self._clock.now_ns()
            segment = self._segment(size, now_ns)
            slot = segment.take_slot(now_ns, now_ns - self.grace_ns) if segment is not None else None
            if segment is None or slot is None:
                return None
        try:
            segment.write(slot, arrays, offsets, size)
            place = SlotAddress(segment.name, slot.index, slot.generation, sizes)
        except OSError as problem:
            self.problem = f"{self._folder} has no room for {size >> 10} KiB: {problem.strerror}"
            place = None
        with self._lock:
            if segment in self._segments.values():  # else closed meanwhile
                slot.announced_ns = self._clock.now_ns() if place else 0
                segment.release(slot)
                if len(sizes) == 1:
                    if len(self._by_size) == _SIZES:
                        self._by_size.clear()
                    self._by_size[size] = segment
        return place

    def store_one(self, array: Any, size: int) -> tuple[_Segment, _Slot] | None:
        """The same for one array of that many bytes in the usual case, by as few steps as can be; None for any other.

        Not usual is a size that is new, and a slot whose readers may still come, or that somebody looks at.
        """
        now_ns = _now_ns()
        with self._lock:
            segment = self._by_size.get(size)
            if segment is None or not segment.slots:
                return None
            slot = segment.slots[0]
            if slot.announced_ns > now_ns - self.grace_ns or size > slot.allocated:
                return None
            try:
                fcntl.fcntl(segment.fd, fcntl.F_OFD_SETLK, slot.locks)
            except OSError:
                return None
            segment.slots.popleft()
            segment.used_ns = now_ns
        segment.overwrite(slot, array, size)
        with self._lock:
            if self._by_size.get(size) is not segment:
                return None  # closed meanwhile
            slot.announced_ns = now_ns
            fcntl.fcntl(segment.fd, fcntl.F_OFD_SETLK, slot.unlocks)
            segment.slots.append(slot)
        return segment, slot

    def _segment(self, size: int, now_ns: int) -> _Segment | None:
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
                    self._by_size.clear()
        slots = min(SLOTS, max(left // 2, min(left, 4 * capacity)) // capacity)  # the next size gets something too
        if not slots:
            self.problem = f"the arrays of this process need more than {self._budget_bytes >> 20} MiB of shared memory"
            return None
        try:
            segment = self._segments[capacity] = _Segment(self._folder, capacity, slots)
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
            self._by_size.clear()


class _Mapping:
    """A segment as a reader sees it; it stays for as long as an array of it is in use."""

    def __init__(self, file: Path) -> None:
        """Raises OSError where it cannot be opened, ValueError where it is none."""
        import numpy as np

        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
        self._fd = fd
        weakref.finalize(self, os.close, fd).atexit = False
        status = os.fstat(fd)
        if status.st_uid != os.getuid() or status.st_size <= _HEADER_BYTES:
            raise ValueError("not a segment of this user")
        self._map = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
        magic, self.slots, self.capacity = _HEADER.unpack_from(self._map, 0)
        if magic != _MAGIC or _HEADER_BYTES + self.slots * self.capacity != status.st_size or self.slots > SLOTS:
            raise ValueError("not a segment")
        self._as_bytes: Callable[[Any], Any] = partial(np.frombuffer, dtype=np.uint8)
        self._address = self._as_bytes(self._map).ctypes.data
        self._block = ctypes.c_ubyte * self.capacity
        self._live: dict[int, weakref.ref[Any]] = {}
        self._guard = threading.RLock()  # a view may die in the midst of the lines below

    def view(self, slot: int, generation: int) -> memoryview | None:
        """The bytes of a slot, read-only, locked for as long as anything refers to them; None: written anew since."""
        with self._guard:
            live = self._live.get(slot)
            block = None if live is None else live()
            if block is None:
                try:
                    fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, slot, 1, 0))
                except (BlockingIOError, PermissionError):
                    return None
                block = self._block.from_address(self._address + _HEADER_BYTES + slot * self.capacity)
                block.mapping = self  # keeps the memory there
                self._live[slot] = weakref.ref(block, partial(self._release, slot))
            if _GENERATION.unpack_from(self._map, _GENERATIONS + 8 * slot)[0] != generation:
                return None  # and the block, where it is a new one, lets go of its lock at once
            return self._as_bytes(block).data.toreadonly()  # type: ignore[no-any-return]  # ctypes' own view is of a rarer format

    def _release(self, slot: int, reference: weakref.ref[Any]) -> None:
        with self._guard:
            if self._live.get(slot) is reference:
                del self._live[slot]
                _lock(self._fd, fcntl.F_UNLCK, slot)


class Views:
    """The reading side of one reader; one thread may take, any may let go."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._mappings: dict[str, _Mapping] = {}

    def take(self, place: SlotAddress) -> list[memoryview] | None:
        """The arrays as bytes where they lie, or None where newer ones lie there by now.

        Raises TransportError where this process cannot reach that memory, ValueError where the place is none.
        """
        if not place.sizes:
            raise ValueError("no such place")
        offsets, size = _offsets(place.sizes)
        mapping = self._mappings.get(place.segment)
        if mapping is None:
            mapping = self._open(place.segment)
        if size > mapping.capacity or not 0 <= place.slot < mapping.slots:
            raise ValueError("no such place in the segment")
        block = mapping.view(place.slot, place.generation)
        if block is None:
            return None
        return [block[offset : offset + size] for offset, size in zip(offsets, place.sizes, strict=True)]

    def take_one(self, segment: str, slot: int, generation: int, size: int) -> memoryview | None:
        """The same for one array; raises as well."""
        mapping = self._mappings.get(segment)
        if mapping is None:
            mapping = self._open(segment)
        if size > mapping.capacity or slot >= mapping.slots:
            raise ValueError("no such place in the segment")
        block = mapping.view(slot, generation)
        return None if block is None else block[:size]

    def _open(self, name: str) -> _Mapping:
        if not _NAME.fullmatch(name):
            raise ValueError("no name of a segment")
        try:
            mapping = _Mapping(self._folder / name)
        except OSError as problem:
            raise TransportError(f"{self._folder / name} cannot be read: {problem.strerror}") from problem
        self._mappings[name] = mapping
        while len(self._mappings) > _MAPPED:
            del self._mappings[next(iter(self._mappings))]
        return mapping

    def close(self) -> None:
        """Forget the segments; arrays in use stay good."""
        self._mappings.clear()
