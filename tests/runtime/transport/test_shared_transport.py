"""Images cross processes in shared memory where both ends reach it, and inside their messages where not."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from nodes.msgs import Image
from runtime import Message
from runtime.clock import to_ns
from runtime.message import Envelope, Stamped
from runtime.serialization.codec import decode, encode
from runtime.transport.shared_memory import FOLDER, SHARED_FROM_BYTES, SlotAddress, Views, is_available
from runtime.transport.taps import Tap
from runtime.transport.zeromq import PublisherSockets, Reader
from tests.support.running import eventually

pytestmark = [pytest.mark.processes, pytest.mark.skipif(not is_available(), reason="needs /dev/shm")]


class Cloud(Message):
    """An event with an array."""

    points: np.ndarray[Any, np.dtype[np.float32]]


class Wire:
    """A publisher with a reader of two topics, and what became of the messages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.heard: list[Stamped[Any]] = []
        self.lost: Counter[str] = Counter()
        self.outlet = PublisherSockets(folder, "camera")
        types: dict[str, type[Message]] = {"image": Image, "cloud": Cloud}
        self.reader = Reader(types, self.heard.append, self._lose)
        self.reader.connect(folder, ["camera"])
        expected = {"image": 1, "cloud": 1}
        assert asyncio.run(self.outlet.await_subscribers(expected, 20.0, asyncio.Event())) == []

    def _lose(self, topic: str, reason: str, number: int, why: str) -> None:
        self.lost[reason] += number

    def send(self, seq: int, height: int = 240) -> None:
        rgb = np.full((height, 320, 3), seq % 256, np.uint8)
        self.outlet.publish(Envelope("image", "camera", seq, seq), Image(camera="head", captured_ns=seq, rgb=rgb))

    def hear(self, number: int) -> None:
        eventually(lambda: self.reader.poll(64) >= 0 and len(self.heard) >= number, f"{number} messages come")

    def segments(self) -> list[str]:
        return [file.name for file in FOLDER.glob(f"polyrhythm-{os.getuid()}-{os.getpid()}-*")]


@pytest.fixture
def wire() -> Iterator[Wire]:
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        wire = Wire(Path(name))
        try:
            yield wire
        finally:
            wire.reader.close()
            wire.outlet.close()
        assert wire.segments() == []


def test_an_image_arrives_whole_and_read_only_and_only_its_place_is_sent(wire: Wire) -> None:
    tap = Tap(wire.folder, ["camera"], {"image": "state"}, "tool-1")
    try:
        frames = None
        seq = 0
        while frames is None:  # until the tool is connected
            seq += 1
            wire.send(seq)
            frames = tap.receive(0.05)
        assert wire.segments()
        stamped = decode(frames, Image)
        assert stamped.message.rgb.shape == (240, 320, 3)
        assert set(stamped.message.rgb.flat) == {stamped.envelope.seq}
        wire.hear(seq)
        for one in wire.heard:
            assert not one.message.rgb.flags.writeable
            assert set(one.message.rgb.flat) == {one.envelope.seq}
        assert not wire.lost
    finally:
        tap.close()


def test_what_is_small_travels_inside_its_message(wire: Wire) -> None:
    rows = SHARED_FROM_BYTES // 960
    wire.send(1, rows)
    wire.hear(1)
    assert not wire.segments()
    wire.send(2, rows + 1)
    wire.hear(2)
    assert wire.segments()


def test_an_event_is_never_left_where_another_could_overwrite_it(wire: Wire) -> None:
    for seq in range(1, 200):
        points = np.full((20_000,), seq, np.float32)
        wire.outlet.publish(Envelope("cloud", "camera", seq, seq), Cloud(points=points))
    wire.hear(199)
    assert [one.message.points[-1] for one in wire.heard] == list(range(1, 200))
    assert not wire.segments()


def test_what_is_kept_for_late_joiners_travels_inside_its_message(wire: Wire) -> None:
    wire.outlet.kept["image"] = ()
    wire.send(1)
    wire.hear(1)
    assert not wire.segments()


def test_a_reader_that_cannot_reach_the_memory_soon_gets_whole_messages(wire: Wire) -> None:
    wire.reader.elsewhere.views = Views(Path("/dev/shm/none"))
    sent = 0

    def is_heard() -> bool:
        nonlocal sent
        sent += 1
        wire.send(sent)
        wire.outlet.send_late_join()  # as each second
        wire.reader.poll(64)
        return len(wire.heard) >= 5

    eventually(is_heard, "images come")
    first = wire.heard[0].envelope.seq
    assert [set(one.message.rgb.flat) for one in wire.heard] == [{one.envelope.seq % 256} for one in wire.heard]
    assert len(wire.heard) + sum(wire.lost.values()) == wire.heard[-1].envelope.seq
    assert 3 <= wire.lost["unreachable"] <= first - 1


def test_without_room_in_shared_memory_images_still_arrive(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int, offset: int, length: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    for seq in range(1, 11):
        wire.send(seq)
    wire.hear(10)
    assert [set(one.message.rgb.flat) for one in wire.heard] == [{seq} for seq in range(1, 11)]


def test_every_image_is_delivered_or_counted_however_slow_the_reader(wire: Wire) -> None:
    """The reader keeps some of what it gets, so that slots are held, rewritten and refused in turn."""
    kept: list[Any] = []
    sent = 0
    for _ in range(30):
        for _ in range(40):
            sent += 1
            wire.send(sent, 1080)
        wire.reader.poll(7)
        kept.extend(wire.heard[-3:])
        del kept[:-12]

    def is_over() -> bool:
        nonlocal sent
        if not wire.reader.poll(64):  # one more, for the last one may have found the queue full
            sent += 1
            wire.send(sent, 60)
        return wire.heard[-1].envelope.seq > 1200

    eventually(is_over, "the last ones come")
    assert len(wire.heard) + sum(wire.lost.values()) == wire.heard[-1].envelope.seq
    assert set(wire.lost) <= {"overwritten", "link"}
    for one in kept:
        assert set(np.unique(one.message.rgb)) == {one.envelope.seq % 256}


def test_a_message_that_comes_and_cannot_be_used_is_counted_once(wire: Wire) -> None:
    wire.send(1)
    image = Image(camera="head", captured_ns=0, rgb=np.zeros((1, 1, 3), np.uint8))
    topic, document, _ = encode(Envelope("image", "camera", 2, 2), image)
    forged: tuple[bytes, ...] = (
        b"",
        b"\xc1",
        msgspec.msgpack.encode(SlotAddress("polyrhythm-0-0-../../x", 0, 0, (3,))),
        msgspec.msgpack.encode(("a",)),
    )
    socket = wire.outlet.ways["state"].socket
    for place in forged:
        socket.send(b"".join((bytes(topic), b"\0\0\x80", len(place).to_bytes(2, "little"), place, bytes(document))))
    socket.send(bytes(topic) + b"\0\0\x80\xff\xff")
    wire.send(3)
    wire.hear(2)
    assert [one.envelope.seq for one in wire.heard] == [1, 3]
    assert wire.lost["garbled"] == len(forged) + 1
    assert "link" not in wire.lost


def test_a_recorder_that_is_halted_for_a_busy_second_loses_no_image() -> None:
    number, heard, lost = 200, list[int](), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        outlet = PublisherSockets(Path(name), "camera")
        outlet.pool.grace_ns = to_ns(60.0)  # all of this is within its second, however slow the machine is

        def lose(topic: str, reason: str, count: int, why: str) -> None:
            lost[reason] += count

        reader = Reader({"image": Image}, lambda one: heard.append(one.message.captured_ns), lose, is_deep=True)
        reader.connect(Path(name), ["camera"])
        try:
            assert asyncio.run(outlet.await_subscribers({"image": 1}, 20.0, asyncio.Event())) == []
            for seq in range(1, number + 1):
                image = Image(camera="head", captured_ns=seq, rgb=np.full((240, 320, 3), seq % 256, np.uint8))
                outlet.publish(Envelope("image", "camera", seq, seq), image)
            eventually(lambda: reader.poll(64) >= 0 and len(heard) + lost.total() >= number, "all are accounted for")
        finally:
            reader.close()
            outlet.close()
    assert heard == list(range(1, number + 1))
