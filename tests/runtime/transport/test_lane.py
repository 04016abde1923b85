"""The lane in C and the lane in Python do the same with the same bytes, and understand each other."""

from __future__ import annotations

import itertools
import mmap
import os
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from runtime.errors import CodecError
from runtime.message import UNKNOWN_NS, Envelope, Message
from runtime.operating_system.machine import can
from runtime.serialization.arrays import write_array
from runtime.serialization.codec import document_encoder, fingerprint
from runtime.transport import fast_lane
from runtime.transport.channel import Channel
from runtime.transport.fast_lane import (
    HEADER,
    HEADER_BYTES,
    KEY_BYTES,
    LARGEST_FRAME,
    LARGEST_PACKET,
    LENGTH,
    MAGIC,
    PLACE,
    Variant,
)

pytestmark = pytest.mark.skipif(not can("packets"), reason="Linux only")

SLOTS, CAPACITY = 4, 8192
PAIRS = [pytest.param(one, other, id=one + other) for one, other in itertools.product(fast_lane.variants, repeat=2)]


class Memory:
    """A segment, as a pool makes it."""

    def __init__(self, path: Path, variant: Variant, slots: int = SLOTS) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(self.fd, HEADER_BYTES + slots * CAPACITY)
        memory = mmap.mmap(self.fd, HEADER_BYTES + slots * CAPACITY)
        HEADER.pack_into(memory, 0, MAGIC, slots, CAPACITY)
        self.ring = variant.Ring(self.fd, memory, slots, CAPACITY)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection of packets."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (one, other):
        end.setblocking(False)
    with one, other:
        yield one, other


@pytest.mark.parametrize(("writes", "reads"), PAIRS)
def test_what_one_writes_the_other_reads_and_nothing_is_rewritten_under_a_view(
    tmp_path: Path, ends: tuple[socket.socket, socket.socket], writes: str, reads: str
) -> None:
    writer, reader = fast_lane.variants[writes], fast_lane.variants[reads]
    memory, chance = Memory(tmp_path / "segment", writer), random.Random(writes + reads)
    channel, key = object(), b"name".ljust(KEY_BYTES, b"\0")
    maps = {key: reader.Map(str(memory.path))}
    kept: list[tuple[int, Any]] = []
    lost = unsent = taken = 0
    for number in range(400):
        array = np.full(chance.choice((64, 3000, CAPACITY)), number % 251, np.uint8)
        grace_ns = chance.choice((0, 0, 2))
        if memory.ring.send(array, number, grace_ns, b"t\0", b"name", b"d%d" % number, [ends[0].fileno()]) is None:
            unsent += 1  # as the common way does then
            if memory.ring.store((array.data,), (0,), array.nbytes, number, grace_ns) is None:
                assert len(kept) >= SLOTS - 1
        while (found := reader.receive(ends[1].fileno(), {b"t": channel}, maps)) is not None:
            assert found[0] is channel
            lost += found[2] is None
            if found[2] is not None:
                taken += 1
                kept.append((int(found[1][1:]), np.frombuffer(found[2], np.uint8)))
        if chance.random() < 0.6:
            del kept[: max(0, len(kept) - chance.randrange(4))]
        assert all((view == number % 251).all() for number, view in kept)
        assert not any(view.flags.writeable for _, view in kept)
    assert taken > 100
    assert taken + lost + unsent == 400


@pytest.mark.parametrize("seed", range(3))
def test_both_take_the_same_slots_in_the_same_order(tmp_path: Path, seed: int) -> None:
    found: list[list[object]] = []
    for name, variant in fast_lane.variants.items():
        memory, chance = Memory(tmp_path / name, variant), random.Random(seed)
        reader = fast_lane.PYTHON.Map(str(memory.path))
        kept: list[Any] = []
        steps: list[object] = []
        for now_ns in range(1, 200):
            parts = tuple(memoryview(bytes(chance.randrange(1, 1000))) for _ in range(chance.randrange(1, 4)))
            offsets = tuple(1024 * index for index in range(len(parts)))
            place = memory.ring.store(parts, offsets, 4096, now_ns, chance.choice((0, 1, 3)))
            steps.append(place)
            if place is not None and chance.random() < 0.8:
                kept.append(reader.view(*place, 4096))
            del kept[: max(0, len(kept) - chance.randrange(2 * SLOTS))]
        found.append(steps)
    assert None in found[0]
    assert all(steps == found[0] for steps in found)


def test_packets_of_any_kind_are_understood_alike(tmp_path: Path, ends: tuple[socket.socket, socket.socket]) -> None:
    memory = Memory(tmp_path / "segment", fast_lane.PYTHON)
    assert memory.ring.store((memoryview(b"x" * 100),), (0,), 100, 1, 0) == (0, 1)
    chance, channel, key = random.Random(5), object(), b"name".ljust(KEY_BYTES, b"\0")
    kinds = set()
    for _ in range(600):
        place = PLACE.pack(
            chance.choice((b"name", b"name", b"other")), chance.choice((0, 0, 1, 9)), chance.choice((1, 1, 2)),
            chance.choice((1, 1, 1, 2)), chance.choice((100, 100, CAPACITY + 1)),
        )  # fmt: skip
        body = chance.choice((b"", place, place[:-1], place + b"doc", chance.randbytes(9)))
        packet = chance.choice((b"t\0", b"t\0", b"u\0", b"", b"t")) + chance.choice((b"\0", b"\3", b"\3", b"\1")) + body
        told = []
        for variant in fast_lane.variants.values():
            ends[0].send(packet)
            found = variant.receive(ends[1].fileno(), {b"t": channel}, {key: variant.Map(str(memory.path))})
            if isinstance(found, tuple):
                assert found[0] is channel
                found = found[1], found[2] if not found[2] else bytes(found[2])
            told.append(found)
        assert all(one == told[0] for one in told)
        kinds.add(type(told[0]))
        assert isinstance(told[0], tuple) or told[0] == packet
    assert kinds == {tuple, bytes}


@pytest.mark.parametrize("name", fast_lane.variants)
def test_a_full_queue_drops_a_gone_receiver_is_told_and_an_end_is_no_bytes(
    ends: tuple[socket.socket, socket.socket], name: str
) -> None:
    variant = fast_lane.variants[name]
    out, inward = (end.fileno() for end in ends)
    assert variant.receive(inward, {}, {}) is None
    assert [variant.send(b"t\0\0", bytes(1000), [out]) for _ in range(3000)] == [0] * 3000
    channel, number = object(), 0
    while (found := variant.receive(inward, {b"t": channel}, {})) is not None:
        assert found == (channel, bytes(1000), ())
        number += 1
    assert 30 < number < 3000
    ends[1].close()
    assert variant.send(b"t\0\0", b"", [out, out]) == 2
    assert variant.receive(out, {}, {}) == b""
    with pytest.raises(OSError):  # noqa: PT011  # any
        variant.receive(inward, {}, {})


@pytest.mark.parametrize("name", fast_lane.variants)
def test_what_does_not_fit_is_refused(tmp_path: Path, name: str) -> None:
    variant = fast_lane.variants[name]
    memory = Memory(tmp_path / "segment", variant)
    array = np.zeros(CAPACITY, np.uint8)
    assert memory.ring.send(array, 1, 0, b"t\0", b"name", bytes(LARGEST_PACKET), []) is None
    assert memory.ring.store((array.data,), (0,), CAPACITY, 2, 0) is not None
    reader = variant.Map(str(memory.path))
    for slot, size in ((SLOTS, 1), (1 << 40, 1), (0, CAPACITY + 1)):
        with pytest.raises(ValueError, match="no such place"):
            reader.view(slot, 1, size)
    assert reader.view(0, 7, 1) is None
    for content in (b"", bytes(10_000), MAGIC + b"\xff" * 10_000, MAGIC + struct.pack("<QQ", 1 << 60, 1 << 10)):
        (tmp_path / "none").write_bytes(content)
        with pytest.raises(ValueError, match="segment"):
            variant.Map(str(tmp_path / "none"))
    with pytest.raises(OSError, match="No such file"):
        variant.Map(str(tmp_path / "nowhere"))


class Word(Message):
    text: str
    number: float


HEAD = b"word\0\0\0"
_encode = document_encoder(write_array)


def _documents(chance: random.Random) -> Iterator[bytes]:
    """Documents as they come: some that repeat the one before, lack some before them, are damaged, or are rare."""
    stamps = (0, 1, 127, 128, -1, -32, -33, -200, 40_000, -40_000, 1 << 31, 1 << 40, -(1 << 40), 1 << 62, UNKNOWN_NS)
    texts = ("", "a", "\u00fc\u4e2d", "y" * 31, "y" * 32, "z" * 200, "z" * 300)
    seq = dict.fromkeys(("planner", "vlm", "x" * 60), 0)
    text, origins, epochs = "", dict[str, int](), dict[str, int]()
    for _ in range(4000):
        source = chance.choice(list(seq))
        seq[source] += chance.choice((1, 1, 1, 1, 1, 1, 0, 2, -1)) if seq[source] else 1
        if chance.random() < 0.3:
            text = chance.choice(texts)
        if chance.random() < 0.3:
            origins = {f"origin{number}": chance.choice(stamps) for number in range(chance.choice((0, 0, 1, 2, 20)))}
        if chance.random() < 0.1:
            epochs = {f"seat{number}": chance.choice(stamps) for number in range(chance.choice((0, 1, 3)))}
        published_ns = chance.choice((5, 1 << 33, 1 << 45, -1, 1 << 63)) if chance.random() < 0.1 else 1 << 45
        envelope = Envelope(chance.choice((*["word"] * 20, "wort")), source, seq[source], published_ns, origins, epochs)
        envelope = msgspec.structs.replace(envelope, cause=chance.choice(("", text)), seat=chance.choice(("", text)))
        mark = chance.choice((*[fingerprint(Word)] * 20, "other"))
        document = _encode((mark, envelope, Word(text=text, number=chance.random())))
        if chance.random() < 0.15:
            at = chance.randrange(len(document))
            document = (
                document[:at] + chance.choice((b"", chance.randbytes(1), chance.randbytes(4))) + document[at + 1 :]
            )
        yield HEAD + document


def test_documents_are_opened_alike_whatever_is_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    told, opened = [], []
    for variant in fast_lane.variants.values():
        monkeypatch.setattr(fast_lane, "chosen", variant)
        lost: list[tuple[object, ...]] = []
        channel = Channel("word", Word, HEAD, lambda *one, lost=lost: lost.append(one))
        steps: list[object] = []
        number = 0
        for frame in _documents(random.Random(7)):
            stamped = channel.open(frame, channel.is_new)
            number += stamped is not None
            if stamped is None:  # as the reader does then
                try:
                    stamped = channel.decode("word", frame[len(HEAD) :])
                    stamped = stamped if channel.is_new(stamped.envelope) else None
                except CodecError as problem:
                    steps.append(str(problem))
                    continue
            steps.append(stamped)
        told.append((steps, lost, channel.last))
        opened.append(number)
    assert all(one == told[0] for one in told)
    assert min(opened) > 1000
    assert len({type(step) for step in told[0][0]}) == 3
    assert told[0][1]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The reading and the writing end of a pipe of events."""
    inner, outer = os.pipe2(os.O_NONBLOCK)
    yield inner, outer
    for fd in (inner, outer):
        with suppress(OSError):
            os.close(fd)


def test_events_are_opened_alike_and_in_their_order_however_the_pipe_cuts_them(
    monkeypatch: pytest.MonkeyPatch, pipe: tuple[int, int]
) -> None:
    told = []
    inner, outer = pipe
    long = "w" * 130  # longer than the topics that the part in C remembers
    for variant in fast_lane.variants.values():
        monkeypatch.setattr(fast_lane, "chosen", variant)
        channels = {topic.encode(): Channel(topic, Word, b"", lambda *_: None) for topic in ("word", "other", long)}
        chance, steps, seqs, reading = random.Random(3), [], dict.fromkeys(channels, 0), variant.Pipe(inner)
        sent: list[bytes] = []
        for _ in range(200):
            stream = b""
            for _ in range(chance.randrange(9)):
                topic = chance.choice((b"word", b"word", b"word", b"other", long.encode()))
                seqs[topic] += chance.choice((1, 1, 1, 1, 1, 1, 0))  # not all are new
                envelope = Envelope(topic.decode(), "talker", seqs[topic], seqs[topic])
                document = _encode((fingerprint(Word), envelope, Word(text="x", number=1.0)))
                usual = topic + b"\0\0" + document
                bundle, unknown = topic + b"\0\1" + document, b"nobody\0\0" + document
                packet = chance.choice((*[usual] * 40, bundle, unknown, usual[:-1], topic, b"\0", b""))
                sent.append(packet)
                stream += LENGTH.pack(len(packet)) + packet
            cut = chance.randrange(len(stream) + 1)
            for part in (stream[:cut], stream[cut:]):
                os.write(outer, part)
                opened: list[Any] = []
                steps.append((reading.take(channels, opened), opened))
            assert reading.take(channels, []) is None
        told.append(steps)
        raw = [one for _, opened in steps for one in opened]
        assert len(raw) == len(sent)
        assert all(one == packet for one, packet in zip(raw, sent, strict=True) if isinstance(one, bytes))
        for number, opened in steps:  # from the first that is not usual on
            assert [isinstance(one, bytes) for one in opened] == sorted(isinstance(one, bytes) for one in opened)
            assert sum(isinstance(one, bytes) for one in opened) == (number or 0)
    assert all(one == told[0] for one in told)
    assert sum(len(opened) for number, opened in told[0] if not number) > 200
    assert sum(number or 0 for number, _ in told[0]) > 50


@pytest.mark.parametrize("name", fast_lane.variants)
def test_an_event_is_offered_whole_until_there_is_no_room_and_nobody_takes_it_after_the_end(
    pipe: tuple[int, int], name: str
) -> None:
    variant = fast_lane.variants[name]
    inner, outer = pipe
    packet, number, taken = bytearray(b"..t\0\1" + bytes(1000)), 0, list[Any]()
    while variant.offer(outer, packet):
        number += 1
    assert 30 < number < 3000
    reading = variant.Pipe(inner)
    while reading.take({}, taken) is not None:
        pass
    assert taken == [bytes(packet[2:])] * number
    largest = bytearray(LARGEST_FRAME)
    assert variant.offer(outer, largest)
    assert not variant.offer(outer, largest + b"x")
    assert not variant.offer(outer, bytearray(1))
    os.close(outer)
    assert reading.take({}, taken) == 1
    assert reading.take({}, taken) == -1
    assert not variant.offer(outer, packet)
    inner, outer = os.pipe()
    os.close(inner)
    assert not variant.offer(outer, packet)
    assert variant.Pipe(inner).take({}, taken) == -1
    os.close(outer)


@pytest.mark.parametrize("name", fast_lane.variants)
def test_a_length_that_none_of_ours_has_ends_the_connection(pipe: tuple[int, int], name: str) -> None:
    inner, outer = pipe
    os.write(outer, LENGTH.pack(60_000) + bytes(5000))
    assert fast_lane.variants[name].Pipe(inner).take({}, []) == -1


def test_in_c_wrong_arguments_are_errors_and_no_crashes(tmp_path: Path) -> None:
    if fast_lane.NATIVE is None:
        pytest.skip("not built")
    native: Any = fast_lane.NATIVE
    memory, opener = Memory(tmp_path / "segment", native), native.opener
    for call in (
        lambda: native.receive(0, {}),
        lambda: native.receive("a", {}, {}),
        lambda: native.receive(0, [], {}),
        lambda: native.Pipe("a"),
        lambda: native.Pipe(0).take({}),
        lambda: native.Pipe(0).take([], []),
        lambda: native.Pipe(0).take({}, ()),
        lambda: native.offer(0),
        lambda: native.offer("a", bytearray(3)),
        lambda: native.offer(0, b"abc"),
        lambda: native.offer(0, "a"),
        lambda: native.send("a", b"", []),
        lambda: native.send(b"", b"", (1,)),
        lambda: opener(b"", "", "", (), None, None)(b"", None),
        lambda: opener(b"", "", "", {}, None, None)("", None),
        lambda: opener(b"", "", "", {}, None, None)(b""),
        lambda: native.send(b"", b"", ["a"]),
        lambda: memory.ring.send(b"", 1, 1, b"", b"", b"", ()),  # type: ignore[arg-type]
        lambda: memory.ring.store((b"abc",), (0, 1), 3, 1, 1),
        lambda: memory.ring.store((b"abc",), (1,), 3, 1, 1),
        lambda: memory.ring.store((b"abc",), (0,), CAPACITY + 1, 1, 1),
        lambda: memory.ring.store((1,), (0,), 3, 1, 1),
        lambda: native.Ring(memory.fd, b"read-only", SLOTS, CAPACITY),
        lambda: native.Ring(memory.fd, bytearray(10), SLOTS, CAPACITY),
        lambda: native.Ring(memory.fd, bytearray(10), 1 << 63, CAPACITY),
    ):
        with pytest.raises((TypeError, ValueError, BufferError)):
            call()
