"""The inner steps of passing a message between two processes of one host; in C where that was built, otherwise in
Python.

`Ring` is the writing side of a segment of shared memory, `Map` its reading side. `receive` takes one packet in, `send`
sends one to all. `offer` sends an event, a `Pipe` takes in all that wait. What `opener` makes opens a document.
`_lane.c` implements the same seven; `chosen` is the variant in use.
`POLYRHYTHM_NATIVE=0` in the environment selects the Python one. After a rest of milliseconds each further Python
function costs about ten microseconds, so each common case is one function.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import struct
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import msgspec

from runtime.message import Envelope, Stamped
from runtime.operating_system.machine import can, is_without_native

HEADER_BYTES = 4096
HEADER = struct.Struct("<16sQQ")  # what it is, number of slots, bytes of a slot; then a generation for each slot
MAGIC = b"polyrhythm-slots"
SLOTS = 256  # of one segment, at most
KEY_BYTES = 48
PLAIN, SLOT = 0, 3
"""Marks of packets: a document; a document with one array in a slot of shared memory."""
LARGEST_PACKET = 60 << 10
RECEIVE_BYTES = 64 << 10
PIPE_BYTES = 16 << 10  # taken from a pipe at once
LARGEST_FRAME = 4096
"""A packet of a pipe with its length before it, bytes: what Linux writes whole or not at all (PIPE_BUF)."""
LENGTH = struct.Struct("<H")

PLACE = struct.Struct(f"<{KEY_BYTES}sHQBQ")
"""What follows the mark SLOT: segment, slot, generation, number of arrays, and bytes of the only array."""

_GENERATIONS = 64  # offset of the first
_GENERATION = struct.Struct("<Q")
_encode = msgspec.msgpack.Encoder().encode
_FLOCK = struct.Struct("hhqqi")  # of Linux on 64 bits: type, whence, start, length, pid


class RingLike(Protocol):
    """The writing side of a segment; any thread may call."""

    def store(
        self, arrays: tuple[Any, ...], offsets: tuple[int, ...], size: int, now_ns: int, grace_ns: int
    ) -> tuple[int, int] | None:
        """Fill a slot and return its number and generation; None where all are in use. Raises OSError."""
        ...

    def send(
        self, array: Any, now_ns: int, grace_ns: int, head: bytes, key: bytes, document: bytes, fds: list[int]
    ) -> int | None:
        """Fill a slot with one array and tell the receivers; how many are broken, or None where nothing was sent."""
        ...


class PipeLike(Protocol):
    """The reading side of a pipe of events; one thread takes."""

    def take(self, channels: Mapping[bytes, Any], opened: list[Any]) -> int | None:
        """Read once, each packet's message into `opened`; from the first unusual one on the packets, as they came.

        Returns how many were not opened, None where nothing waits, -1 at the end. No whole packet stays behind here, so
        the pipe is readable as long as there is more.
        """
        ...


class MapLike(Protocol):
    """The reading side of a segment; one thread views slots, any thread may release them."""

    def view(self, slot: int, generation: int, size: int) -> Any:
        """The bytes of a slot, read-only, locked while they live; None where it was written anew. Raises ValueError."""
        ...


Open = Callable[[bytes, Callable[[Envelope], bool]], "Stamped[Any] | None"]
"""Opens the document of a message: what `opener` makes."""


class Variant(msgspec.Struct, frozen=True):
    """One implementation of these steps."""

    Ring: Callable[[int, mmap.mmap, int, int], RingLike]
    Map: Callable[[str], MapLike]
    receive: Callable[[int, Mapping[bytes, Any], Mapping[bytes, Any]], Any]
    Pipe: Callable[[int], PipeLike]
    send: Callable[[bytes, bytes, list[int]], int]
    offer: Callable[[int, bytearray], bool]
    opener: Callable[[bytes, str, str, dict[str, Envelope], Callable[[bytes], Any], Callable[[bytes], Any]], Open]


def lock(fd: int, kind: int, byte: int) -> bool:
    """Take or release a lock of an open file; False where somebody else holds a conflicting one."""
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, byte, 1, 0))
    except (BlockingIOError, PermissionError):
        return False
    return True


class _Slot:
    __slots__ = ("allocated", "announced_ns", "generation", "index", "locks", "unlocks")

    def __init__(self, index: int) -> None:
        self.index = index
        self.locks = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, index, 1, 0)
        self.unlocks = _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, index, 1, 0)
        self.generation = 0
        self.announced_ns = 0
        self.allocated = 0  # bytes that are really there


class Ring:
    """The writing side in Python."""

    def __init__(self, fd: int, memory: mmap.mmap, slots: int, capacity: int) -> None:
        import numpy as np

        self._fd, self._map, self._most, self._capacity = fd, memory, slots, capacity
        self._slots: deque[_Slot] = deque()  # oldest first, those being written apart
        self._made = 0
        self._lock = threading.Lock()
        self._as_bytes: Callable[[Any], Any] = partial(np.frombuffer, dtype=np.uint8)
        self._bytes = self._as_bytes(memory)

    def _take_slot(self, now_ns: int, grace_ns: int) -> _Slot | None:
        """One announced longer ago than the grace, else a new one, else the oldest free one, locked."""
        slot = self._free_one(now_ns - grace_ns)
        if slot is None and self._made < self._most:
            slot = _Slot(self._made)
            self._made += 1
            lock(self._fd, fcntl.F_WRLCK, slot.index)
        return slot or self._free_one(now_ns)

    def _free_one(self, oldest_ns: int) -> _Slot | None:
        for _ in range(len(self._slots)):
            slot = self._slots[0]
            if slot.announced_ns > oldest_ns:
                return None  # those behind it are younger, or were in use when it was their turn
            self._slots.popleft()
            if lock(self._fd, fcntl.F_WRLCK, slot.index):
                return slot
            self._slots.append(slot)  # somebody looks at it: leave it in peace for a round
        return None

    def store(
        self, arrays: tuple[Any, ...], offsets: tuple[int, ...], size: int, now_ns: int, grace_ns: int
    ) -> tuple[int, int] | None:
        """Fill a slot and return its number and generation; None where all are in use. Raises OSError."""
        with self._lock:
            slot = self._take_slot(now_ns, grace_ns)
        if slot is None:
            return None
        announced_ns = 0
        try:
            start = HEADER_BYTES + slot.index * self._capacity
            if size > slot.allocated:
                os.posix_fallocate(self._fd, start, size)  # else a full folder would be a SIGBUS in the copy below
                slot.allocated = size
            slot.generation += 1
            _GENERATION.pack_into(self._map, _GENERATIONS + 8 * slot.index, slot.generation)
            for array, offset in zip(arrays, offsets, strict=True):
                if len(array):
                    begin = start + offset
                    self._bytes[begin : begin + len(array)] = self._as_bytes(array)  # other threads run meanwhile
            announced_ns = now_ns
            return slot.index, slot.generation
        finally:
            with self._lock:
                slot.announced_ns = announced_ns
                lock(self._fd, fcntl.F_UNLCK, slot.index)
                self._slots.append(slot)

    def send(
        self, array: Any, now_ns: int, grace_ns: int, head: bytes, key: bytes, document: bytes, fds: list[int]
    ) -> int | None:
        """Fill a slot with one array and tell the receivers; how many are broken, or None where nothing was sent."""
        size, fd = array.nbytes, self._fd
        with self._lock:
            slots = self._slots
            if not slots:
                return None
            slot = slots[0]
            if slot.announced_ns > now_ns - grace_ns or size > slot.allocated or not array.flags.c_contiguous:
                return None
            try:
                fcntl.fcntl(fd, fcntl.F_OFD_SETLK, slot.locks)
            except OSError:
                return None  # somebody looks at it
            slots.popleft()
        generation = slot.generation = slot.generation + 1
        memory, index = self._map, slot.index
        _GENERATION.pack_into(memory, _GENERATIONS + 8 * index, generation)
        start = HEADER_BYTES + index * self._capacity
        self._bytes[start : start + size] = self._as_bytes(array)  # other threads run meanwhile
        slot.announced_ns = now_ns
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, slot.unlocks)
        slots.append(slot)
        packet = head + b"\3" + PLACE.pack(key, index, generation, 1, size) + document
        if len(packet) > LARGEST_PACKET:
            return None
        broken = 0
        for receiver in fds:
            try:
                os.write(receiver, packet)
            except BlockingIOError:
                pass  # its queue is full: a gap, which it counts
            except OSError:
                broken += 1
        return broken


class Map:
    """The reading side in Python; it lives as long as an array of it is in use."""

    def __init__(self, path: str) -> None:
        """Raises OSError where the segment cannot be opened, ValueError where the file is none."""
        import numpy as np

        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        self._fd = fd
        weakref.finalize(self, os.close, fd).atexit = False
        status = os.fstat(fd)
        if status.st_uid != os.getuid() or status.st_size <= HEADER_BYTES:
            raise ValueError("not a segment of this user")
        self._map = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
        magic, self.slots, self.capacity = HEADER.unpack_from(self._map, 0)
        if magic != MAGIC or HEADER_BYTES + self.slots * self.capacity != status.st_size or self.slots > SLOTS:
            raise ValueError("not a segment")
        self._address = np.frombuffer(self._map, np.uint8).ctypes.data
        self._block = ctypes.c_ubyte * self.capacity
        self._live: dict[int, weakref.ref[Any]] = {}
        self._guard = threading.RLock()  # a view may die in the midst of the lines below

    def view(self, slot: int, generation: int, size: int) -> memoryview | None:
        """The bytes of a slot, read-only, locked while they live; None where it was written anew. Raises ValueError."""
        if size > self.capacity or not 0 <= slot < self.slots:
            raise ValueError("no such place in the segment")
        with self._guard:
            live = self._live.get(slot)
            block = None if live is None else live()
            if block is None:
                try:
                    fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, slot, 1, 0))
                except (BlockingIOError, PermissionError):
                    return None
                block = self._block.from_address(self._address + HEADER_BYTES + slot * self.capacity)
                block.mapping = self  # keeps the memory there
                self._live[slot] = weakref.ref(block, partial(self._release, slot))
            if _GENERATION.unpack_from(self._map, _GENERATIONS + 8 * slot)[0] != generation:
                return None  # and the block, where it is a new one, lets go of its lock at once
        return memoryview(block).toreadonly()[:size]

    def _release(self, slot: int, reference: weakref.ref[Any]) -> None:
        with self._guard:
            if self._live.get(slot) is reference:
                del self._live[slot]
                lock(self._fd, fcntl.F_UNLCK, slot)


def receive(fd: int, channels: Mapping[bytes, Any], maps: Mapping[bytes, Map]) -> Any:
    """Receive one packet; None where none waits, b"" at the end of the connection. Raises OSError.

    The common case returns (channel, document, array): () as the array where there is none, None where it was
    overwritten. Its array lies in a segment of `maps`, by padded name. Any other packet is returned as it came.
    """
    try:
        packet = os.read(fd, RECEIVE_BYTES)
    except BlockingIOError:
        return None
    at = packet.find(b"\0") + 1
    channel = channels.get(packet[: at - 1]) if 0 < at < len(packet) else None
    if channel is None:
        return packet
    mark = packet[at]
    if mark == PLAIN:
        return channel, packet[at + 1 :], ()
    begin = at + 1 + PLACE.size
    if mark != SLOT or len(packet) < begin:
        return packet
    key, slot, generation, arrays, size = PLACE.unpack_from(packet, at + 1)
    mapping = maps.get(key)
    if arrays != 1 or mapping is None or slot >= mapping.slots or size > mapping.capacity:
        return packet
    return channel, packet[begin:], mapping.view(slot, generation, size)


class Pipe:
    """The reading side of a pipe in Python."""

    def __init__(self, fd: int) -> None:
        self._fd, self._kept = fd, b""  # of a packet whose rest is still in the pipe

    def take(self, channels: Mapping[bytes, Any], opened: list[Any]) -> int | None:
        """As PipeLike says."""
        try:
            read = os.read(self._fd, PIPE_BYTES)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            return -1
        if not read:
            return -1
        whole, at, rare = self._kept + read, 0, 0
        while len(whole) - at >= LENGTH.size:
            begin = at + LENGTH.size
            end = begin + LENGTH.unpack_from(whole, at)[0]
            if end > len(whole):
                break
            packet, at = whole[begin:end], end
            head, _, rest = packet.partition(b"\0")
            channel = channels.get(head) if rest.startswith(b"\0") and not rare else None  # PLAIN
            stamped = None if channel is None else channel.open(rest[1:], channel.is_new)
            rare += stamped is None
            opened.append(packet if stamped is None else stamped)
        self._kept = whole[at:]
        return rare if len(self._kept) < LARGEST_FRAME else -1  # none of ours is that long


def offer(fd: int, packet: bytearray) -> bool:
    """Send one event without waiting; returns False where there is no room, or nobody.

    Its first two bytes become its length. The pipe takes up to LARGEST_FRAME bytes whole or not at all.
    """
    if not LENGTH.size <= len(packet) <= LARGEST_FRAME:
        return False
    LENGTH.pack_into(packet, 0, len(packet) - LENGTH.size)
    try:
        os.write(fd, packet)
    except OSError:
        return False
    return True


def send(head: bytes, document: bytes, fds: list[int]) -> int:
    """Send one packet of two parts to each of these sockets without waiting; returns how many of them are broken."""
    packet, broken = head + document, 0
    for receiver in fds:
        try:
            os.write(receiver, packet)
        except BlockingIOError:
            pass  # its queue is full: a gap, which it counts
        except OSError:
            broken += 1
    return broken


def opener(
    head: bytes,
    topic: str,
    fingerprint: str,
    last: dict[str, Envelope],
    read_whole: Callable[[bytes], Any],
    read_payload: Callable[[bytes], Any],
) -> Open:
    """What opens a document that comes after `head`. `last` holds the newest envelope of each source, and is kept.

    It returns None for all that is not usual, and for what has come before; then nothing was noted. Its second argument
    decides whether a message is new whose number does not follow upon the last one.
    """
    size = len(head)

    def open_document(document: bytes, is_new: Callable[[Envelope], bool]) -> Stamped[Any] | None:
        if not document.startswith(head):
            return None
        try:
            whole = read_whole(document[size:] if size else document)
        except Exception:  # noqa: BLE001  # the common way says what is wrong
            return None
        envelope: Envelope = whole.envelope
        if whole.fingerprint != fingerprint or envelope.topic != topic:
            return None
        before = last.get(envelope.source)
        if before is not None and envelope.seq == before.seq + 1:  # nearly always: asked here, it costs no call
            last[envelope.source] = envelope
        elif not is_new(envelope):
            return None
        return Stamped(whole.payload, envelope)

    return open_document


def _native() -> Variant | None:
    try:
        from runtime.transport import _lane as built
    except ImportError:  # not built, or for another machine
        return None
    if not hasattr(built, "Pipe"):
        return None  # built from an older source

    def native_opener(
        head: bytes,
        topic: str,
        fingerprint: str,
        last: dict[str, Envelope],
        read_whole: Callable[[bytes], Any],
        read_payload: Callable[[bytes], Any],
    ) -> Open:
        start = b"".join((head, b"\x93", _encode(fingerprint), b"\x99", _encode(topic)))
        return built.Opener(start, topic, last, Envelope, Stamped, read_payload).open

    return Variant(built.Ring, built.Map, built.receive, built.Pipe, built.send, built.offer, native_opener)


PYTHON = Variant(Ring, Map, receive, Pipe, send, offer, opener)
NATIVE = _native()
variants: dict[str, Variant] = {"0": PYTHON} if NATIVE is None else {"0": PYTHON, "1": NATIVE}
"""The implementations by the value of POLYRHYTHM_NATIVE."""
chosen: Variant = PYTHON if NATIVE is None or is_without_native() or not can("packets") else NATIVE
"""The implementation used by whatever is opened from now on."""
