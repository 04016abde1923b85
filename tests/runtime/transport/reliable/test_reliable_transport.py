"""Reliable events over real sockets: a wire that loses, doubles and swaps a third of what passes loses none of them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodes.msgs import Utterance
from runtime.message import Envelope, Stamped
from runtime.qos import HOLD_S, LIFESPAN_S
from runtime.transport.reliable.tag import Terms
from runtime.transport.taps import Tap
from runtime.transport.zeromq import PublisherSockets, SubscriberThread
from tests.runtime.transport.reliable.lossy_wire import LossyWire
from tests.runtime.transport.reliable.reliable_process import Note
from tests.support.running import eventually

pytestmark = pytest.mark.processes

FRAME_LOSS = 0.3


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        yield Path(name)


class Listener:
    """Another process, and what it has said so far."""

    def __init__(self, folder: Path, name: str) -> None:
        self.lines: list[list[str]] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.runtime.transport.reliable.reliable_process", str(folder), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(part or os.getcwd() for part in sys.path)),
        )
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.split())

    @property
    def heard(self) -> list[tuple[int, int]]:
        return [(int(line[1]), int(line[2])) for line in list(self.lines) if line[0] == "heard"]

    @property
    def lost(self) -> int:
        return sum(int(line[2]) for line in list(self.lines) if line[0] == "lost")

    def close(self) -> None:
        self._process.communicate()
        self._thread.join()


@contextmanager
def listening(folder: Path, *names: str) -> Iterator[list[Listener]]:
    listeners = [Listener(folder, name) for name in names]
    try:
        yield listeners
    finally:
        for listener in listeners:
            listener.close()


def subscribed(outlet: PublisherSockets, topic: str, number: int) -> None:
    assert asyncio.run(outlet.await_subscribers({topic: number}, 60.0, asyncio.Event())) == []


def acknowledged(outlet: PublisherSockets) -> None:
    eventually(lambda: outlet.is_acknowledged, "all of it is acknowledged or given up")


PATIENT = 60.0  # a busy machine may take long for what a quiet one does within the second that is usual


@pytest.mark.parametrize(
    "terms",
    [Terms(("a", "b"), PATIENT, PATIENT), Terms(("a", "b"), PATIENT, 0.0), Terms(("a", "b"), PATIENT, 0.02)],
    ids=["in order", "at once", "impatient"],
)
def test_on_a_wire_that_loses_a_third_each_event_comes_once_and_in_order_or_is_counted(
    folder: Path, terms: Terms
) -> None:
    number = 400
    played = folder / "w"
    played.mkdir()
    outlet = PublisherSockets(folder, "mouth", reliable={"note": terms})
    try:
        with (
            LossyWire(folder, played, "mouth", loss=FRAME_LOSS, double=FRAME_LOSS, swap=FRAME_LOSS, seed=4) as wire,
            listening(played, "a", "b") as listeners,
        ):
            subscribed(outlet, "note", 2)
            pause = threading.Event()
            for seq in range(1, number + 1):
                points = np.full(1000, seq % 7, np.float32) if seq % 10 == 0 else None
                outlet.publish(Envelope("note", "mouth", seq, seq), Note(number=seq, points=points))
                pause.wait(0.002)
            eventually(
                lambda: all(len(one.heard) + one.lost >= number for one in listeners),
                "all of them are heard or counted",
            )
            wire.loss = 0.0
            eventually(lambda: outlet.is_acknowledged, "all of them are acknowledged")
            expected = [(seq, seq % 7 * 1000 if seq % 10 == 0 else 0) for seq in range(1, number + 1)]
            for listener in listeners:
                heard = listener.heard if terms.hold_s else sorted(listener.heard)
                if terms.hold_s in (0.0, PATIENT):
                    assert heard == expected
                    assert listener.lost == 0
                else:  # what comes later than it waits for is lost, and counted
                    assert heard == [one for one in expected if one in set(heard)]
                    assert len(heard) + listener.lost == number
            assert wire.lost > 0.2 * number
            assert outlet.unacknowledged() == {}
    finally:
        outlet.close()


def said(number: int) -> tuple[Envelope, Utterance]:
    return Envelope("said", "mouth", number, number), Utterance(speaker="mouth", text=str(number))


class Ear:
    """A reliable reader in this process."""

    def __init__(self, folder: Path, name: str) -> None:
        self.heard: list[str] = []
        self.lost: Counter[str] = Counter()
        self._inlet = SubscriberThread({"said": Utterance}, self._hear, self._lose, receiver=name, reliable=["said"])
        self._inlet.connect(folder, ["mouth"])
        self._inlet.start()
        self.close = self._inlet.close

    def _hear(self, stamped: Stamped[Any]) -> None:
        self.heard.append(stamped.message.text)

    def _lose(self, topic: str, reason: str, number: int, why: str) -> None:
        self.lost[reason] += number


def test_what_a_listener_has_not_acknowledged_when_its_time_is_over_is_counted_with_the_reason(folder: Path) -> None:
    outlet = PublisherSockets(folder, "mouth", reliable={"said": Terms(("a", "gone"), 0.3, HOLD_S)})
    ear = Ear(folder, "a")
    try:
        subscribed(outlet, "said", 1)
        for number in range(3):
            outlet.publish(*said(number + 1))
        eventually(lambda: outlet.unacknowledged() == {"said": {"gone: lifespan": 3}}, "the absent one is counted")
        assert ear.heard == ["1", "2", "3"]
        assert outlet.is_acknowledged
    finally:
        ear.close()
        outlet.close()


def test_a_listener_that_comes_back_hears_nothing_from_before_its_start(folder: Path) -> None:
    outlet = PublisherSockets(folder, "mouth", reliable={"said": Terms(("a",), 60.0, HOLD_S)})
    try:
        outlet.publish(*said(1))  # while it is away
        outlet.publish(*said(2))
        ear = Ear(folder, "a")
        try:
            subscribed(outlet, "said", 1)
            outlet.publish(*said(3))
            eventually(lambda: outlet.is_acknowledged, "it acknowledges or refuses all of them")
            assert ear.heard == ["3"]
            assert not ear.lost
            assert outlet.unacknowledged() == {"said": {"a: restarted": 2}}
        finally:
            ear.close()
    finally:
        outlet.close()


def test_a_sender_that_comes_back_is_heard_from_its_first_word(folder: Path) -> None:
    ear = Ear(folder, "a")
    try:
        for life in range(3):
            outlet = PublisherSockets(folder, "mouth", reliable={"said": Terms(("a",), LIFESPAN_S, HOLD_S)})
            subscribed(outlet, "said", 1)
            for number in range(3):
                outlet.publish(*said(10 * life + number))
            acknowledged(outlet)
            outlet.close()
        assert ear.heard == [str(10 * life + number) for life in range(3) for number in range(3)]
        assert not ear.lost
    finally:
        ear.close()


def test_tools_hear_a_reliable_event_once_however_often_it_is_sent_again(folder: Path) -> None:
    outlet = PublisherSockets(folder, "mouth", reliable={"said": Terms(("gone",), 0.5, HOLD_S)})
    tap = Tap(folder, ["mouth"], {"said": "event"}, "tool-1")
    try:
        frames = None
        number = 0
        while frames is None:  # until the tool is connected
            number += 1
            outlet.publish(*said(number))
            frames = tap.receive(0.05)
        eventually(lambda: outlet.is_acknowledged, "the sender has given up")
        assert tap.receive(0.1) is None
    finally:
        tap.close()
        outlet.close()


def test_an_outlet_that_closes_waits_a_moment_for_the_last_receipts_and_counts_the_rest(folder: Path) -> None:
    outlet = PublisherSockets(folder, "mouth", reliable={"said": Terms(("gone",), LIFESPAN_S, HOLD_S)})
    outlet.publish(*said(1))
    outlet.close()
    assert outlet.unacknowledged() == {"said": {"gone: closed": 1}}
