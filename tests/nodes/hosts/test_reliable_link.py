"""Reliable events from host to host: whatever the link does, each comes once and in order, or is counted."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

import pytest

from nodes.hosts import wire
from nodes.hosts.admission import AdmissionRefused
from nodes.hosts.reliable_link import ReliableLink
from runtime.errors import CodecError
from runtime.qos import HOLD_S, LIFESPAN_S
from runtime.serialization.codec import Frame
from runtime.transport.reliable.tag import Terms

MS = 1_000_000
TERMS = {"heard": Terms((), LIFESPAN_S, HOLD_S), "guard/order": Terms((), 1.0, HOLD_S), "estop": Terms((), 1.0, 0.0)}
NEITHER: frozenset[str] = frozenset()


@dataclass
class Side:
    """One gateway's mail, and what came of it."""

    name: str
    other: str
    sent: list[list[bytes]] = field(default_factory=list)
    came: list[str] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.mail = ReliableLink(self.name, self.other, TERMS, send=self._send, deliver=self._take, drop=self._drop)

    def _send(self, frames: list[Frame]) -> None:
        self.sent.append([bytes(frame) for frame in frames])

    def _take(self, frames: list[bytes], is_late: bool) -> None:
        self.came.append(f"late: {frames[1].decode()}" if is_late else frames[1].decode())

    def _drop(self, reason: str, number: int) -> None:
        self.dropped[reason] += number


class Link:
    """Two sides that have met, and a way between them that loses."""

    def __init__(self, loss: float = 0.0, seed: int = 0) -> None:
        self.desktop, self.robot = Side("desktop", "robot"), Side("robot", "desktop")
        self.loss, self.luck = loss, random.Random(seed)
        self.is_up, self.now_ns = True, 0
        self.meet("d1", "r1")

    def meet(self, desktop_session: str, robot_session: str) -> None:
        self.desktop.mail.begin(desktop_session, robot_session)
        self.robot.mail.begin(robot_session, desktop_session)

    def say(self, word: str, topic: str = "heard") -> None:
        self.desktop.mail.post(topic, [topic.encode(), word.encode()], self.now_ns, is_up=self.is_up)

    def carry(self) -> None:
        for here, there in ((self.desktop, self.robot), (self.robot, self.desktop)):
            frames_of, here.sent = here.sent, []
            for frames in frames_of:
                if self.luck.random() < self.loss:
                    continue
                take = {wire.EVENT: there.mail.take_event, wire.RECEIPT: there.mail.take_receipt}[frames[0]]
                take(frames[1:], self.now_ns)

    def pass_ms(self, span_ms: int) -> None:
        for _ in range(span_ms // 20):
            self.now_ns += 20 * MS
            for side in (self.desktop, self.robot):
                side.mail.keep_up(self.now_ns, is_up=self.is_up)
            self.carry()

    def come_up(self) -> None:
        self.is_up = True
        for side in (self.desktop, self.robot):
            side.mail.hurry(self.now_ns)


@pytest.mark.parametrize("seed", range(5))
def test_over_a_link_that_loses_a_third_each_event_comes_once_and_in_order(seed: int) -> None:
    link = Link(0.33, seed)
    for number in range(50):
        link.say(str(number))
        link.carry()
        link.pass_ms(40)
    link.pass_ms(5000)
    assert link.robot.came == [str(number) for number in range(50)]
    assert not link.desktop.dropped + link.robot.dropped


def test_what_was_said_while_the_link_was_down_comes_when_it_is_up_and_an_order_of_a_second_ago_does_not() -> None:
    link = Link()
    link.is_up = False
    link.say("go", "guard/order")
    link.say("no cream")
    link.pass_ms(1500)
    link.say("stop", "guard/order")
    assert link.desktop.sent == []
    link.come_up()
    link.pass_ms(40)
    assert sorted(link.robot.came) == ["no cream", "stop"]
    assert link.desktop.dropped == {"lifespan": 1}


def test_what_lay_on_its_way_for_longer_than_its_lifespan_is_dropped_unless_it_stops_a_robot() -> None:
    link = Link()
    for topic, word in (("guard/order", "go"), ("estop", "stop"), ("heard", "no cream")):
        link.say(word, topic)
    late_ns = 1200 * MS
    for frames in link.desktop.sent * 2:  # each comes again, too
        link.robot.mail.take_event(frames[1:], late_ns, late_ns)
    assert link.robot.came == ["late: stop", "no cream"]
    assert link.robot.dropped == {"expired": 1}


def test_an_event_is_no_younger_for_a_gateway_that_was_frozen_before_it_sent_it() -> None:
    link = Link()
    link.now_ns = 10_000 * MS
    for topic, age_ms in (("guard/order", 1200), ("guard/order", 900), ("heard", 4900), ("estop", 1200)):
        frames: list[Frame] = [topic.encode(), f"{topic} of {age_ms} ms".encode()]
        link.desktop.mail.post(topic, frames, link.now_ns, is_up=False, born_ns=link.now_ns - age_ms * MS)
    assert link.desktop.dropped == {"lifespan": 1}
    link.pass_ms(100)
    link.come_up()
    link.loss = 1.0
    link.pass_ms(80)
    link.loss = 0.0
    link.pass_ms(1000)
    assert sorted(link.robot.came) == ["estop of 1200 ms"]
    assert link.desktop.dropped == {"lifespan": 3}  # the others reached the end of their lives on the way


def test_a_stop_that_waited_in_a_frozen_gateway_is_marked_as_late() -> None:
    link = Link()
    now_ns = 10_000 * MS
    link.desktop.mail.post("estop", [b"estop", b"stop"], now_ns, is_up=True, born_ns=now_ns - 1200 * MS)
    [frames] = link.desktop.sent
    link.robot.mail.take_event(frames[1:], now_ns, now_ns)
    assert link.robot.came == ["late: stop"]


def test_an_event_that_may_not_come_in_is_counted_once_however_often_it_comes() -> None:
    link = Link()
    counted: list[str] = []

    def check(topic: str) -> None:
        raise AdmissionRefused("not allowed", f"not {topic}")

    for word in ("one", "two"):
        link.say(word)
    for frames in link.desktop.sent * 3:
        try:
            link.robot.mail.take_event(frames[1:], 0, 0, check)
        except AdmissionRefused as refused:
            counted.append(refused.reason)
    link.desktop.sent.clear()
    link.pass_ms(6000)
    assert counted == ["not allowed"] * 2
    assert link.robot.came == []
    assert not link.desktop.dropped + link.robot.dropped  # it is acknowledged: the sender need not count it, too


def test_what_was_meant_for_an_earlier_life_of_the_other_host_never_comes() -> None:
    link = Link()
    link.say("to the first life")
    link.meet("d1", "r2")
    link.carry()  # the frames of before arrive after all
    link.say("to the second")
    link.carry()
    link.pass_ms(200)
    assert link.robot.came == ["to the second"]
    assert link.desktop.dropped == {"restarted": 1}


def test_before_the_hosts_have_met_an_event_is_counted_as_lost_to_the_link() -> None:
    side = Side("desktop", "robot")
    side.mail.post("heard", [b"heard", b"hello"], 0, is_up=False)
    assert side.dropped == {"link down": 1}


def test_what_is_not_acknowledged_at_the_end_is_counted() -> None:
    link = Link()
    link.say("the last word")
    link.desktop.mail.end()
    assert link.desktop.dropped == {"closed": 1}


@pytest.mark.parametrize("frames", [[], [b"x"], [b"no tag at all", b"heard"]])
def test_an_event_without_a_tag_is_an_error_in_words(frames: list[bytes]) -> None:
    with pytest.raises(CodecError, match="tag"):
        Link().robot.mail.take_event(frames, 0)


@pytest.mark.parametrize("take", [partial(ReliableLink.take_receipt), partial(ReliableLink.take_event)])
def test_random_bytes_raise_nothing_else(take: partial[None]) -> None:
    luck = random.Random(1)
    mail = Link().robot.mail
    for _ in range(2000):
        frames = [luck.randbytes(luck.randrange(40)) for _ in range(luck.randrange(4))]
        with pytest.raises(CodecError):
            take(mail, frames, 0)
