"""States that go straight to the thread that handles them are the messages that ZeroMQ would bring, one for one."""

from __future__ import annotations

import asyncio
import random
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from runtime import Message
from runtime.message import Envelope, Stamped
from runtime.operating_system.machine import NATIVE
from runtime.transport import fast_lane
from runtime.transport.direct import DirectReader, is_available, place
from runtime.transport.zeromq import QUEUE_LENGTH, PublisherSockets, Reader
from tests.support.running import eventually

pytestmark = [pytest.mark.processes, pytest.mark.skipif(not is_available(), reason="Linux only")]

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(params=fast_lane.variants, autouse=True)
def variant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of this in Python, and in C where that is built."""
    monkeypatch.setattr(fast_lane, "chosen", fast_lane.variants[request.param])
    monkeypatch.setenv(NATIVE, request.param)  # for the processes that are started


class Inner(Message, kind="state"):
    grid: np.ndarray[Any, np.dtype[np.int16]]


class View(Message, kind="state"):
    """Everything that a state may hold."""

    text: str = ""
    pixels: np.ndarray[Any, np.dtype[np.uint8]] | None = None
    depth: np.ndarray[Any, np.dtype[np.float32]] | None = None
    inner: Inner | None = None


class Level(Message, kind="state"):
    count: int
    text: str = ""


TYPES: dict[str, type[Message]] = {"view": View, "level": Level}


class Wire:
    """A publisher, a reader that it reaches straight, and what became of the messages."""

    def __init__(self, folder: Path, *, also_by_zeromq: bool = False) -> None:
        self.folder = folder
        self.heard: list[Stamped[Any]] = []
        self.lost: Counter[str] = Counter()
        self.outlet = self.new_outlet()
        self.reader = self.new_reader("sink")
        self.by_zeromq: list[Stamped[Any]] = []
        self.other: Reader | None = None
        if also_by_zeromq:
            self.other = Reader(TYPES, self.by_zeromq.append, lambda *_: None)
            self.other.connect(folder, ["source"])
        expected = dict.fromkeys(TYPES, 1) if also_by_zeromq else {}
        assert asyncio.run(self.outlet.await_subscribers(expected, 20.0, asyncio.Event(), self.reader.retry)) == []
        self.write = {topic: self.outlet.writer(topic, message) for topic, message in TYPES.items()}

    def new_outlet(self) -> PublisherSockets:
        return PublisherSockets(self.folder, "source", direct=dict.fromkeys(TYPES, ("sink",)))

    def new_reader(self, name: str) -> DirectReader:
        reader = DirectReader(name, TYPES, dict.fromkeys(TYPES, ("source",)), self.heard.append, self.lose)
        reader.connect(self.folder)
        return reader

    def lose(self, topic: str, reason: str, number: int, why: str) -> None:
        self.lost[reason] += number

    def take(self) -> None:
        while self.reader.drain(64):
            pass

    def has_caught_up(self) -> bool:
        assert self.other is not None
        self.other.poll(64)
        return len(self.by_zeromq) >= len(self.heard)

    def close(self) -> None:
        self.reader.close()
        self.outlet.close()
        if self.other is not None:
            self.other.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        yield Path(name)


@pytest.fixture
def wire(folder: Path) -> Iterator[Wire]:
    wire = Wire(folder)
    yield wire
    wire.close()


def some_view(chance: random.Random) -> View:
    """A message of any shape that the codec takes."""
    size = chance.choice((0, 3, 40, 200, 400))
    shape = (size, 320, 3)
    pixels = np.full(shape, chance.randrange(256), np.uint8)
    return View(
        text="x" * chance.choice((0, 10, 3000, 100_000)),
        pixels=chance.choice((None, pixels, pixels, pixels[:, ::-1], pixels[::2])),
        depth=chance.choice((None, None, np.full((size, 8), 0.5, np.float32))),
        inner=chance.choice((None, None, Inner(grid=np.arange(size, dtype=np.int16)))),
    )


def as_data(stamped: Stamped[Any]) -> tuple[object, ...]:
    message = stamped.message
    if isinstance(message, Level):
        return stamped.envelope, message
    arrays = (message.pixels, message.depth, message.inner and message.inner.grid)
    found = tuple(
        None if one is None else (one.shape, one.dtype.str, one.tobytes(), one.flags.writeable) for one in arrays
    )
    return stamped.envelope, message.text, found


@pytest.mark.parametrize("seed", range(4))
def test_random_traffic_comes_straight_as_it_comes_over_zeromq(
    folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(QUEUE_LENGTH, "state", 4096)  # ZeroMQ learns late of what was taken out of its queue
    wire, chance = Wire(folder, also_by_zeromq=True), random.Random(seed)
    assert wire.other is not None
    try:
        seqs: Counter[str] = Counter()
        for number in range(120):
            topic = chance.choice(("view", "level"))
            seqs[topic] += chance.choice((1, 1, 1, 1, 3))  # some are missing
            origins = {"image": number} if chance.random() < 0.5 else {}
            envelope = Envelope(topic, "camera", seqs[topic], number + 1, origins, {"policy": 2}, "said:person:1", "a")
            if topic == "level" and chance.random() < 0.3:
                levels = [Level(count=index, text="y" * chance.randrange(400)) for index in range(5)]
                wire.outlet.publish_all(envelope, levels)
                seqs[topic] += 4
            elif topic == "level":
                wire.write[topic](envelope, Level(count=number))
            else:
                wire.write[topic](envelope, some_view(chance))
            wire.take()
            eventually(wire.has_caught_up, "ZeroMQ brings as many")
        for topic in TYPES:
            straight, around = (
                [as_data(one) for one in heard if one.envelope.topic == topic] for heard in (wire.heard, wire.by_zeromq)
            )
            assert straight == around
        assert wire.lost.keys() <= {"link"}
        assert wire.lost["link"] > 0
    finally:
        wire.close()


def test_the_short_way_and_the_common_way_of_sending_bring_the_same(wire: Wire) -> None:
    chance = random.Random(7)
    for seq in range(1, 61):
        view = some_view(chance)
        for source, write in (("short", wire.write["view"]), ("common", wire.outlet.publish)):
            write(Envelope("view", source, seq, seq), view)
        wire.take()
    told = {
        source: [as_data(one)[1:] for one in wire.heard if one.envelope.source == source]
        for source in ("short", "common")
    }
    assert len(told["short"]) == 60
    assert told["short"] == told["common"]


def test_what_the_receiver_does_not_take_in_is_dropped_and_counted(wire: Wire) -> None:
    for seq in range(1, 3001):
        wire.outlet.publish(Envelope("level", "a", seq, seq), Level(count=seq))
    wire.take()
    wire.outlet.publish(Envelope("level", "a", 3001, 3001), Level(count=3001))
    wire.take()
    assert len(wire.heard) + wire.lost["link"] == 3001
    assert [one.envelope.seq for one in wire.heard] == sorted(one.envelope.seq for one in wire.heard)
    assert 30 < len(wire.heard) < 3001


def test_a_publisher_that_comes_again_is_heard_again(wire: Wire) -> None:
    wire.outlet.publish(Envelope("level", "a", 1, 1), Level(count=1))
    wire.outlet.close()
    wire.take()
    assert not wire.reader.by_fd
    wire.outlet = wire.new_outlet()
    eventually(lambda: wire.reader.retry() is None and not wire.outlet.sender.lacking(), "it is connected")  # type: ignore[union-attr]
    wire.outlet.publish(Envelope("level", "a", 1, 2), Level(count=2))
    wire.take()
    assert [one.message.count for one in wire.heard] == [1, 2]
    assert not wire.lost


def test_a_receiver_that_has_gone_is_forgotten_and_one_that_comes_is_heard(wire: Wire) -> None:
    wire.reader.close()
    wire.outlet.publish(Envelope("level", "a", 1, 1), Level(count=1))  # finds the end closed
    assert wire.outlet.sender is not None
    assert wire.outlet.sender.lacking() == ["level", "view"] or wire.outlet.sender.lacking() == ["view", "level"]
    wire.reader = wire.new_reader("sink")
    eventually(lambda: not wire.outlet.sender or not wire.outlet.sender.lacking(), "it is connected")
    wire.outlet.publish(Envelope("level", "a", 2, 2), Level(count=2))
    wire.take()
    assert [one.message.count for one in wire.heard] == [2]


def test_without_shared_memory_images_come_whole_as_well(wire: Wire) -> None:
    wire.outlet.pool.close()
    for seq in range(1, 4):
        pixels = np.full((480, 640, 3), seq, np.uint8)
        wire.write["view"](Envelope("view", "a", seq, seq), View(pixels=pixels))
        wire.take()
    assert [int(one.message.pixels.min()) for one in wire.heard] == [1, 2, 3]
    assert not any(one.message.pixels.flags.writeable for one in wire.heard)
    assert not wire.lost


def test_a_receiver_that_cannot_map_the_memory_asks_for_whole_messages(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str) -> fast_lane.MapLike:
        raise PermissionError(13, "no", path)

    monkeypatch.setattr(fast_lane, "chosen", replace(fast_lane.chosen, Map=fail))
    for seq in range(1, 7):
        wire.write["view"](Envelope("view", "a", seq, seq), View(pixels=np.full((480, 640, 3), seq, np.uint8)))
        wire.take()
        assert wire.outlet.sender is not None
        wire.outlet.sender.look()
    assert wire.lost == {"unreachable": 3}
    assert [one.envelope.seq for one in wire.heard] == [4, 5, 6]


def test_a_reader_that_keeps_forty_views_loses_none_and_sees_none_change(wire: Wire) -> None:
    for seq in range(1, 201):
        wire.write["view"](Envelope("view", "a", seq, seq), View(pixels=np.full((480, 640, 3), seq, np.uint8)))
        wire.take()
        kept = wire.heard[-40:]
        if seq % 20 == 0:
            assert all((one.message.pixels == one.envelope.seq).all() for one in kept)
        wire.heard[:-40] = [Stamped(Level(count=0), one.envelope) for one in wire.heard[:-40]]  # let go of the pixels
    assert [one.envelope.seq for one in wire.heard] == list(range(1, 201))
    assert not wire.lost


@pytest.mark.parametrize("mark", range(7))
def test_garbage_is_counted_and_breaks_nothing(wire: Wire, mark: int) -> None:
    assert wire.outlet.sender is not None
    (receiver,) = wire.outlet.sender.to["view"]
    chance = random.Random(mark)
    for _ in range(50):
        body = chance.randbytes(chance.randrange(120))
        receiver.send(b"view\0" + bytes((mark,)) + body, socket.MSG_DONTWAIT)
    wire.take()
    receiver.send(b"\xff\xfe", socket.MSG_DONTWAIT)
    receiver.send(b"view\0", socket.MSG_DONTWAIT)
    wire.take()
    assert wire.lost["garbled"] >= 50
    wire.outlet.publish(Envelope("level", "a", 1, 1), Level(count=1))
    wire.take()
    assert [one.envelope.topic for one in wire.heard] == ["level"]


def test_who_wants_fewer_gets_fewer_and_is_told_how_many_the_others_get_all(folder: Path, wire: Wire) -> None:
    fewer: list[Stamped[Any]] = []
    left_out: Counter[str] = Counter()
    slow = DirectReader(
        "slow", TYPES, dict.fromkeys(TYPES, ("source",)), fewer.append,
        lambda topic, reason, number, why: left_out.update({reason: number}), most_hz={"level": 10.0, "view": 10.0},
    )  # fmt: skip
    slow.connect(folder)
    sender = wire.outlet.sender
    assert sender is not None
    eventually(lambda: sender.look() or len(sender.to["level"]) == 2, "both are connected")  # type: ignore[func-returns-value]
    for seq in range(1, 91):
        now_ns = seq * 33_333_333
        wire.write["view"](Envelope("view", "a", seq, now_ns), View(pixels=np.full((300, 640, 3), seq, np.uint8)))
        wire.write["level"](Envelope("level", "a", seq, now_ns), Level(count=seq))
        wire.take()
        slow.drain(64)
    for topic in TYPES:
        assert [one.envelope.seq for one in wire.heard if one.envelope.topic == topic] == list(range(1, 91))
        assert [one.envelope.seq for one in fewer if one.envelope.topic == topic] == list(range(1, 91, 3))
    assert left_out == {"max_hz": 2 * 58}  # the last two are not known to be missing yet
    slow.close()


def test_who_asks_for_what_is_not_his_is_not_answered(folder: Path, wire: Wire) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
        stranger.connect(place(folder, "source"))
        stranger.send(b"\xc1 no hello")
        assert wire.outlet.sender is not None
        wire.outlet.sender.look()
        assert stranger.recv(10) == b""
    assert len(wire.outlet.sender.to["view"]) == 1


def _trials(number: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.direct_trials", str(number)],
        cwd=ROOT, capture_output=True, text=True, timeout=60 + number,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_is_torn_reordered_or_left_over_when_either_side_is_killed() -> None:
    _trials(30)


@pytest.mark.long
def test_nothing_is_torn_reordered_or_left_over_in_a_thousand_kills() -> None:
    _trials(1000)
