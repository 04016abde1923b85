"""Events that go straight wait at their sender while there is no room: none is lost, and their order stays."""

from __future__ import annotations

import asyncio
import signal
import tempfile
import threading
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime import Message
from runtime.message import Envelope, Stamped
from runtime.operating_system.machine import NATIVE
from runtime.transport import fast_lane
from runtime.transport.direct import MOST_WAITING, DirectReader, is_available
from runtime.transport.zeromq import PublisherSockets, Reader
from tests.support.running import eventually

pytestmark = [pytest.mark.processes, pytest.mark.skipif(not is_available(), reason="Linux only")]


class Word(Message):
    count: int
    text: str = ""


TYPES: dict[str, type[Message]] = {"word": Word}


@pytest.fixture(params=fast_lane.variants, autouse=True)
def variant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of this in Python, and in C where that is built."""
    monkeypatch.setattr(fast_lane, "chosen", fast_lane.variants[request.param])
    monkeypatch.setenv(NATIVE, request.param)


class Wire:
    """A publisher of events and the reader of a loop, as two processes have them."""

    def __init__(self, folder: Path) -> None:
        self.heard: list[int] = []
        self.lost: Counter[str] = Counter()
        self.outlet = PublisherSockets(folder, "source", direct={"word": ("sink",)}, direct_events=("word",))
        self.events = DirectReader("sink", TYPES, {"word": ("source",)}, self._hear, self._lose)
        self.reader = Reader({}, self._hear, self._lose, direct_events=self.events)
        self.reader.connect(folder, ())
        assert asyncio.run(self.outlet.await_subscribers({}, 20.0, asyncio.Event(), self.events.retry)) == []
        self.write = self.outlet.writer("word", Word)

    def _hear(self, stamped: Stamped[Any]) -> None:
        self.heard.append(stamped.message.count)

    def _lose(self, topic: str, reason: str, number: int, why: str) -> None:
        self.lost[reason] += number

    def publish(self, count: int, text: str = "") -> None:
        self.write(Envelope("word", "talker", count, count), Word(count=count, text=text))

    def take(self) -> bool:
        """What the process's loop does now and then; returns whether anything came."""
        assert self.outlet.sender is not None
        self.outlet.sender.look()
        return self.reader.poll(1 << 20)

    def close(self) -> None:
        self.outlet.close()
        self.reader.close()


@pytest.fixture
def wire() -> Iterator[Wire]:
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        wire = Wire(Path(name))
        yield wire
        wire.close()


def test_a_reader_that_stands_still_gets_all_in_order_once_it_goes_on(wire: Wire) -> None:
    number = 3000  # more than its socket takes
    for count in range(1, number + 1):
        wire.publish(count, "x" * (200_000 if count % 500 == 0 else 100))  # some too large for a packet
    eventually(lambda: not wire.take() and len(wire.heard) == number, "all has come")
    assert wire.heard == [*range(1, number + 1)]
    assert wire.lost == {}


def test_what_finds_no_room_any_more_is_counted(wire: Wire) -> None:
    number = 2 * MOST_WAITING
    for count in range(1, number + 1):
        wire.publish(count)
    eventually(lambda: not wire.take(), "all has come")
    wire.publish(number + 1)
    eventually(lambda: wire.take() or wire.heard[-1] == number + 1, "all has come")
    assert MOST_WAITING <= len(wire.heard) <= number
    assert wire.heard == sorted(wire.heard)
    assert wire.lost["link"] == number + 1 - len(wire.heard)


def test_messages_of_one_publish_all_come_one_by_one_as_there_is_room(wire: Wire) -> None:
    words = [Word(count=count) for count in range(1, 101)]
    wire.outlet.publish_all(Envelope("word", "talker", 1, 1), words)
    wire.publish(101)
    assert wire.reader.poll(3)
    assert wire.heard == [1, 2, 3]
    eventually(lambda: not wire.take() and len(wire.heard) == 101, "all has come")
    assert wire.heard == [*range(1, 102)]


@pytest.mark.parametrize("most", [7, 1000])
def test_what_was_received_at_once_is_handled_in_order_whatever_stands_between(wire: Wire, most: int) -> None:
    kept, served = deque[Stamped[Any]](), 0

    def handle(stamped: Stamped[Any]) -> int | None:  # now and then something else is due, and the lane gets it
        nonlocal served
        served += 1
        if kept or served % most == 0:
            kept.append(stamped)
            return None
        wire.heard.append(stamped.message.count)
        return 0

    wire.reader.use({"word": handle})
    for count in range(1, 201):
        if count % 40 == 0:  # together with the next one, which makes it a bundle
            words = [Word(count=count), Word(count=count + 1)]
            wire.outlet.publish_all(Envelope("word", "talker", count, count), words)
        elif count % 40 != 1 or count == 1:
            epochs = {f"seat{number}": 1 for number in range(20 * (count % 9 == 0))}  # not the usual kind
            wire.write(Envelope("word", "talker", count, count, epochs=epochs), Word(count=count))

    def is_done() -> bool:
        while kept:
            wire.heard.append(kept.popleft().message.count)
        return not wire.reader.poll(1 << 20) and not kept and len(wire.heard) == 201

    eventually(is_done, "all has come")
    assert wire.heard == [*range(1, 202)]
    assert wire.lost == {}


def test_a_publisher_that_closes_sends_what_waits_first(wire: Wire) -> None:
    number = 2000
    for count in range(1, number + 1):
        wire.publish(count)
    closing = threading.Thread(target=wire.outlet.close)
    closing.start()
    eventually(lambda: not wire.reader.poll(64) and not closing.is_alive(), "all has come")
    while wire.reader.poll(64):
        pass
    closing.join()
    assert wire.heard == [*range(1, number + 1)]


def test_a_reader_that_has_gone_raises_no_signal_in_the_publisher(wire: Wire) -> None:
    """Command-line programs often restore the default for SIGPIPE: it would end them without a word."""
    raised: list[int] = []
    before = signal.signal(signal.SIGPIPE, lambda number, _: raised.append(number))
    try:
        wire.publish(1)
        wire.events.close()
        for count in range(2, 5):
            wire.publish(count)
    finally:
        signal.signal(signal.SIGPIPE, before)
    assert raised == []
    assert wire.outlet.sender is not None
    assert wire.outlet.sender.lacking() == ["word"]


def test_who_comes_over_zeromq_gets_each_event_too(wire: Wire) -> None:
    heard: list[int] = []
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        outlet = PublisherSockets(Path(name), "source", direct={"word": ("sink",)}, direct_events=("word",))
        other = Reader(TYPES, lambda stamped: heard.append(stamped.message.count), lambda *_: None)
        other.connect(Path(name), ["source"])
        assert asyncio.run(outlet.await_subscribers({"word": 1}, 1.0, asyncio.Event(), lambda: None)) == [
            "word"
        ]  # which it says of the one that is to come straight and does not
        write = outlet.writer("word", Word)
        for count in range(1, 11):
            write(Envelope("word", "talker", count, count), Word(count=count))
        eventually(lambda: not other.poll(64) and len(heard) == 10, "all has come")
        other.close()
        outlet.close()
    assert heard == [*range(1, 11)]
