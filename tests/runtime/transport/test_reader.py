"""A reader hands over no more than it is asked for, in order; what is left waits, and a wake-up is never lost."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodes.hello import Beat
from runtime.message import Envelope, Message, Stamped
from runtime.transport.zeromq import PublisherSockets, Reader
from tests.support.running import eventually

pytestmark = pytest.mark.processes


class Level(Message, kind="state"):
    count: int
    text: str


@pytest.fixture
def wire() -> Iterator[tuple[PublisherSockets, Reader, list[int], list[tuple[str, int]]]]:
    """A publisher and a reader that know each other, what arrived, and what was lost."""
    heard: list[int] = []
    lost: list[tuple[str, int]] = []

    def deliver(stamped: Stamped[Any]) -> None:
        heard.append(stamped.message.count)

    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        outlet = PublisherSockets(Path(name), "talker")
        reader = Reader({"beat": Beat}, deliver, lambda topic, reason, number, why: lost.append((reason, number)))
        reader.connect(Path(name), ["talker"])
        try:
            assert asyncio.run(outlet.await_subscribers({"beat": 1}, 10.0, asyncio.Event())) == []
            yield outlet, reader, heard, lost
        finally:
            reader.close()
            outlet.close()


def test_no_more_than_the_limit_is_delivered_and_nothing_is_lost(wire: Any) -> None:
    outlet, reader, heard, lost = wire
    for count in range(1, 501):
        outlet.publish(Envelope("beat", "talker", count, count), Beat(count=count))
    taken: list[int] = []

    def is_all_here() -> bool:
        before = len(heard)
        reader.poll(37)
        taken.append(len(heard) - before)
        return len(heard) >= 500

    eventually(is_all_here, "all 500 arrive")
    assert max(taken) == 37
    assert heard == list(range(1, 501))
    assert not lost


def test_a_gap_is_counted_and_a_repetition_is_not_heard_twice(wire: Any) -> None:
    outlet, reader, heard, lost = wire
    for seq in (1, 2, 2, 7):
        outlet.publish(Envelope("beat", "talker", seq, seq), Beat(count=seq))
    eventually(lambda: reader.poll(64) >= 0 and 7 in heard, "the last one arrives")
    assert heard == [1, 2, 7]
    assert lost == [("link", 4)]


def test_a_damaged_number_does_not_spoil_the_count(wire: Any) -> None:
    outlet, reader, heard, lost = wire
    for count in (1, 1 << 61, 2, 1 << 62):
        outlet.publish(Envelope("beat", "talker", count, 1), Beat(count=1))
    eventually(lambda: reader.poll(8) >= 0 and len(heard) >= 4, "all arrive")
    assert lost == [("link", 1_000_000)] * 2


def test_a_wake_up_from_another_thread_ends_the_wait(wire: Any) -> None:
    _, reader, _, _ = wire
    reader.poll(64)
    waiting = threading.Thread(target=reader.wait, args=(None,))
    waiting.start()
    reader.wake()
    waiting.join(10.0)
    assert not waiting.is_alive()


def test_a_wake_up_that_comes_between_a_look_and_the_wait_is_not_slept_over(wire: Any) -> None:
    _, reader, _, _ = wire
    while reader.poll(64):
        pass
    reader.wake()
    assert reader.poll(64)  # not False, after which its thread would wait
    assert not reader.poll(64)
    reader.wake()
    assert reader.wait(10.0)
    assert reader.poll(64)
    assert not reader.poll(64)


def test_a_message_ends_the_wait(wire: Any) -> None:
    outlet, reader, heard, _ = wire
    assert not reader.poll(64)
    waiting = threading.Thread(target=reader.wait, args=(10.0,))
    waiting.start()
    outlet.publish(Envelope("beat", "talker", 1, 1), Beat(count=1))
    waiting.join(9.0)
    assert not waiting.is_alive()
    assert reader.poll(64)
    assert heard == [1]


def test_a_reader_that_queues_states_loses_none_while_it_is_busy_and_others_lose_most() -> None:
    number, heard, lost = 2000, {True: 0, False: 0}, {True: 0, False: 0}
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        outlet = PublisherSockets(Path(name), "talker")
        readers = {}
        for is_deep in (True, False):

            def deliver(_: Stamped[Any], is_deep: bool = is_deep) -> None:
                heard[is_deep] += 1

            def lose(topic: str, reason: str, count: int, why: str, is_deep: bool = is_deep) -> None:
                lost[is_deep] += count

            readers[is_deep] = Reader({"level": Level}, deliver, lose, is_deep=is_deep)
            readers[is_deep].connect(Path(name), ["talker"])
        try:
            assert asyncio.run(outlet.await_subscribers({"level": 2}, 10.0, asyncio.Event())) == []
            text = "x" * 4000  # all together more than a socket of the operating system holds
            for count in range(1, number + 1):
                outlet.publish(Envelope("level", "talker", count, count), Level(count=count, text=text))
            eventually(lambda: readers[True].poll(64) >= 0 and heard[True] == number, "all arrive")
            readers[False].poll(number)
        finally:
            for reader in readers.values():
                reader.close()
            outlet.close()
    assert lost[True] == 0
    assert heard[False] < number / 2
