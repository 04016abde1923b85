"""The transport between processes: what a publisher sent before it closed is read to the end."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from pathlib import Path

import pytest

from nodes.msgs import Utterance
from runtime.message import Envelope, Stamped
from runtime.transport.zeromq import PublisherSockets, SubscriberThread

pytestmark = pytest.mark.processes


def test_finish_delivers_the_last_words_of_every_publisher_that_has_closed() -> None:
    heard: list[str] = []
    may_go_on = threading.Event()

    def slow(stamped: Stamped[Utterance]) -> None:
        may_go_on.wait(30)
        heard.append(stamped.message.text)

    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        folder = Path(name)
        inlet = SubscriberThread({"said": Utterance}, slow, lambda *_: None, watches_ends=True)
        outlets = [PublisherSockets(folder, "a"), PublisherSockets(folder, "b")]
        inlet.connect(folder, ["a", "b"])
        inlet.start()
        for outlet in outlets:
            assert asyncio.run(outlet.await_subscribers({"said": 1}, 20.0, asyncio.Event())) == []
        for number in range(300):
            for source, outlet in zip("ab", outlets, strict=True):
                outlet.publish(
                    Envelope("said", source, number + 1, number), Utterance(speaker=source, text=str(number))
                )
        for outlet in outlets:
            outlet.close()
        assert heard == []
        may_go_on.set()
        assert inlet.finish(30.0)
        inlet.close()
    assert sorted(heard, key=int) == [str(number) for number in range(300) for _ in "ab"]


def test_an_inlet_that_is_closed_in_the_midst_of_a_look_ends() -> None:
    class ClosedInTheMidst(SubscriberThread):
        def poll(self, limit: int, end_ns: int = 0) -> bool:
            self._is_stopped = True
            self.wake()
            return super().poll(limit, end_ns)

    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        inlet = ClosedInTheMidst({"said": Utterance}, lambda _: None, lambda *_: None)
        inlet.connect(Path(name), [])
        inlet.start()
        closing = threading.Thread(target=inlet.close, daemon=True)
        closing.start()
        closing.join(30.0)
        has_ended = not closing.is_alive()
    assert has_ended


def test_finish_does_not_wait_for_ever_for_a_publisher_that_stays() -> None:
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        folder = Path(name)
        inlet = SubscriberThread({"said": Utterance}, lambda _: None, lambda *_: None, watches_ends=True)
        outlet = PublisherSockets(folder, "a")
        inlet.connect(folder, ["a"])
        inlet.start()
        assert asyncio.run(outlet.await_subscribers({"said": 1}, 20.0, asyncio.Event())) == []
        assert not inlet.finish(0.05)
        inlet.close()
        outlet.close()
