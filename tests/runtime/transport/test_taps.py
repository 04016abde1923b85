"""On the wire: a tool is never taken for a process, and a message goes in and out beside the processes."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodes.hello import Beat
from runtime.message import Envelope, Stamped
from runtime.serialization.codec import decode
from runtime.transport.taps import Injector, Tap
from runtime.transport.zeromq import PublisherSockets, SubscriberThread
from tests.support.running import eventually


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        yield Path(name)


def lacking(outlet: PublisherSockets, timeout_s: float) -> list[str]:
    return asyncio.run(outlet.await_subscribers({"beat": 1}, timeout_s, asyncio.Event()))


def heard_by(tap: Tap, outlet: PublisherSockets) -> None:
    """Publish until the tool hears something: then its subscription is known to the publisher."""

    def is_heard() -> bool:
        outlet.publish(Envelope("beat", "talker", 1, 0), Beat(count=1))
        return tap.receive(0.02) is not None

    eventually(is_heard, "the tool hears the publisher")


@pytest.mark.processes
def test_a_tool_that_listens_is_not_counted_as_a_subscriber_but_a_process_is(folder: Path) -> None:
    outlet = PublisherSockets(folder, "talker")
    tap = Tap(folder, ["talker"], {"beat": "event"}, "tool-1")
    watcher = SubscriberThread({"beat": Beat}, lambda stamped: None, lambda *_: None, is_counted=False)
    watcher.connect(folder, ["talker"])
    inlet = SubscriberThread({"beat": Beat}, lambda stamped: None, lambda *_: None)
    try:
        heard_by(tap, outlet)
        assert lacking(outlet, 0.2) == ["beat"]
        inlet.connect(folder, ["talker"])
        assert lacking(outlet, 10.0) == []
    finally:
        tap.close()
        watcher.close()
        inlet.close()
        outlet.close()


@pytest.mark.processes
def test_what_a_tool_publishes_arrives_once_and_whole(folder: Path) -> None:
    arrived: list[Stamped[Any]] = []
    inlet = SubscriberThread({"beat": Beat}, arrived.append, lambda *_: None)
    inlet.connect(folder, [])
    inlet.accept(folder, "listener")
    inlet.start()
    injector = Injector(folder, "event", ["listener"])
    try:
        assert injector.await_ready(10.0) == []
        for seq in (1, 2, 3):
            injector.publish(Envelope("beat", "pub-1", seq, 0, provenance="person"), Beat(count=seq))
        injector.publish(Envelope("other", "pub-1", 1, 0), Beat(count=9))
        eventually(lambda: len(arrived) >= 3, "three messages")
        assert [stamped.message.count for stamped in arrived] == [1, 2, 3]
    finally:
        injector.close()
        inlet.close()


@pytest.mark.processes
def test_a_process_that_does_not_answer_is_named(folder: Path) -> None:
    injector = Injector(folder, "event", ["planner"])
    assert injector.await_ready(0.1) == ["planner"]
    injector.close()


@pytest.mark.processes
def test_a_topic_is_not_heard_under_the_name_of_another_that_begins_alike(folder: Path) -> None:
    outlet = PublisherSockets(folder, "talker")
    tap = Tap(folder, ["talker"], {"beat": "event"}, "tool-1")
    try:
        heard_by(tap, outlet)
        outlet.publish(Envelope("beats", "talker", 1, 0), Beat(count=7))
        outlet.publish(Envelope("beat", "talker", 2, 0), Beat(count=8))
        counts = []
        while (frames := tap.receive(1.0)) is not None:
            counts.append(decode(frames, Beat).message.count)
            if counts[-1] == 8:
                break
        assert 7 not in counts
    finally:
        tap.close()
        outlet.close()
    assert not list(folder.glob("tool-*"))
