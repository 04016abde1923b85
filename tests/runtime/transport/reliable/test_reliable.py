"""Outbox and inbox: whatever a link does to events, each is handed over once and in order, or counted."""

from __future__ import annotations

import heapq
import itertools
import random
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from runtime.clock import to_ns
from runtime.errors import CodecError
from runtime.qos import HOLD_S, LIFESPAN_S
from runtime.transport.reliable.inbox import Inbox
from runtime.transport.reliable.outbox import MOST_BYTES, Outbox
from runtime.transport.reliable.tag import (
    MOST_KEPT,
    Receipt,
    Settled,
    Tag,
    Terms,
    read_receipt,
    read_tag,
    write_receipt,
    write_tag,
)

MS = 1_000_000
ORDERED, AT_ONCE = Terms(("a",), LIFESPAN_S, HOLD_S), Terms(("a",), LIFESPAN_S, 0)
HOLD_NS, LIFESPAN_NS = to_ns(ORDERED.hold_s), to_ns(ORDERED.lifespan_s)


@dataclass
class Ear:
    """A receiver of one life, and what it made of what came."""

    name: str
    since_ns: int = 0
    heard: list[int] = field(default_factory=list)
    lost: int = 0

    def __post_init__(self) -> None:
        self.inbox: Inbox[int] = Inbox(self.name, self.since_ns, self.heard.append, self._lose)

    def _lose(self, topic: str, number: int) -> None:
        self.lost += number


class Link:
    """An outbox, some ears, and a way between them that loses, doubles and delays in both directions."""

    def __init__(self, ears: list[Ear], terms: Terms, luck: random.Random, loss: float, double: float, delay_ms: int):
        self.ears = {ear.name: ear for ear in ears}
        self.outbox = Outbox("mouth", 7, {"said": structs.replace(terms, receivers=tuple(self.ears))})
        self.luck, self.loss, self.double, self.delay_ms = luck, loss, double, delay_ms
        self.now_ns = 0
        self._flying: list[tuple[int, int, str, Tag | Receipt, int]] = []
        self._order = itertools.count()

    def _throw(self, to: str, thing: Tag | Receipt, number: int = 0) -> None:
        for _ in range(1 + (self.luck.random() < self.double)):
            if self.luck.random() >= self.loss:
                at_ns = self.now_ns + self.luck.randint(0, self.delay_ms) * MS
                heapq.heappush(self._flying, (at_ns, next(self._order), to, thing, number))

    def say(self, number: int) -> None:
        tag = self.outbox.add("said", [number.to_bytes(4, "little")], self.now_ns)
        for name in self.ears:
            self._throw(name, tag, number)

    def step(self, step_ms: int = 5) -> None:
        """Let some time pass."""
        self.now_ns += step_ms * MS
        while self._flying and self._flying[0][0] <= self.now_ns:
            _, _, to, thing, number = heapq.heappop(self._flying)
            if isinstance(thing, Receipt):
                self._again(self.outbox.take(thing, self.now_ns))
            else:
                self.ears[to].inbox.offer("said", thing, number, self.now_ns)
        for ear in self.ears.values():
            ear.inbox.expire(self.now_ns)
            for sender, receipt in ear.inbox.receipts(self.now_ns):
                self._throw(sender, receipt)
        self._again(self.outbox.due(self.now_ns))

    def _again(self, again: list) -> None:  # type: ignore[type-arg]
        for one in again:
            self._throw(one.receiver, one.tag, int.from_bytes(one.frames[0], "little"))

    def settle(self) -> None:
        """Go on until nobody waits for anything."""
        for _ in range(20_000):
            if self.outbox.is_empty and not self._flying and not any(ear.inbox.owes for ear in self.ears.values()):
                return
            self.step()
        raise AssertionError("it never ends")


@given(
    seed=st.integers(0, 2**32),
    loss=st.floats(0.0, 0.5),
    double=st.floats(0.0, 0.9),
    delay_ms=st.integers(0, 120),
    messages=st.integers(1, 80),
    pause_ms=st.sampled_from([0, 1, 20, 150]),
    is_ordered=st.booleans(),
)
@example(seed=1, loss=0.3, double=0.3, delay_ms=40, messages=80, pause_ms=1, is_ordered=True)
def test_every_event_comes_once_and_in_order_or_is_counted(
    seed: int, loss: float, double: float, delay_ms: int, messages: int, pause_ms: int, is_ordered: bool
) -> None:
    ears = [Ear("a"), Ear("b")]
    link = Link(ears, ORDERED if is_ordered else AT_ONCE, random.Random(seed), loss, double, delay_ms)
    for number in range(1, messages + 1):
        link.say(number)
        link.step(pause_ms) if pause_ms else None
    link.settle()
    for ear in ears:
        assert len(set(ear.heard)) == len(ear.heard), "one came twice"
        if is_ordered:
            assert ear.heard == sorted(ear.heard)
        unknown = sum(number for (_, who, _), number in link.outbox.unacknowledged.items() if who == ear.name)
        accounted = len(ear.heard) + ear.lost
        # What was lost behind the last one that came, only the sender can know of.
        assert accounted <= messages <= accounted + unknown


def test_at_thirty_percent_loss_both_ways_nothing_is_lost() -> None:
    for seed in range(20):
        ear = Ear("a")
        link = Link([ear], ORDERED, random.Random(seed), loss=0.3, double=0.3, delay_ms=30)
        for number in range(1, 301):
            link.say(number)
            link.step(10)
        link.settle()
        assert ear.heard == list(range(1, 301)), seed
        assert ear.lost == 0
        assert not link.outbox.unacknowledged


def tag(number: int, first: int = 1, *, session: int = 7, sent_ns: int = 10, hold_ns: int = HOLD_NS) -> Tag:
    return Tag("mouth", session, number, first, sent_ns, hold_ns, LIFESPAN_NS)


def test_later_events_wait_a_second_for_a_missing_one_and_then_it_counts_as_lost() -> None:
    ear = Ear("a")
    ear.inbox.offer("said", tag(1), 1, 0)
    ear.inbox.offer("said", tag(3), 3, 0)
    assert not ear.inbox.expire(999 * MS)
    assert (ear.heard, ear.lost) == ([1], 0)
    assert ear.inbox.expire(1000 * MS)
    assert (ear.heard, ear.lost) == ([1, 3], 1)
    assert not ear.inbox.offer("said", tag(2), 2, 1001 * MS), "counted as lost, so it must not come as well"
    assert (ear.heard, ear.lost) == ([1, 3], 1)


def test_a_recovered_event_is_not_lost_and_lets_the_others_pass_in_order() -> None:
    ear = Ear("a")
    for number in (1, 4, 3):
        ear.inbox.offer("said", tag(number), number, 0)
    assert ear.heard == [1]
    ear.inbox.offer("said", tag(2), 2, 500 * MS)
    assert (ear.heard, ear.lost) == ([1, 2, 3, 4], 0)


def test_an_urgent_topic_waits_for_nothing_and_a_late_one_still_comes() -> None:
    ear = Ear("a")
    for number in (1, 3, 2, 2):
        ear.inbox.offer("said", tag(number, hold_ns=0), number, 0)
    assert (ear.heard, ear.lost) == ([1, 3, 2], 0)


def test_what_the_sender_has_given_up_is_not_waited_for() -> None:
    ear = Ear("a")
    ear.inbox.offer("said", tag(1), 1, 0)
    ear.inbox.offer("said", tag(4, first=2), 4, 0)
    assert ear.heard == [1]
    ear.inbox.offer("said", tag(6, first=5), 6, 0)
    assert (ear.heard, ear.lost) == ([1, 4], 2)
    ear.inbox.offer("said", tag(9, first=9), 9, 0)
    assert (ear.heard, ear.lost) == ([1, 4, 6, 9], 2 + 1 + 2)


def test_a_message_that_cannot_be_read_is_not_asked_for_again() -> None:
    ear = Ear("a")
    ear.inbox.offer("said", tag(1), None, 0)
    ear.inbox.offer("said", tag(2), 2, 0)
    ((_, receipt),) = ear.inbox.receipts(to_ns(1.0))
    assert (ear.heard, ear.lost, receipt.topics[0]) == ([2], 0, Settled("said", 3))


def test_a_receiver_that_restarted_takes_nothing_from_before_its_start() -> None:
    outbox = Outbox("mouth", 7, {"said": ORDERED})
    outbox.add("said", [b"1"], 10)
    outbox.add("said", [b"2"], 30)
    ear = Ear("a", since_ns=20)
    for one in outbox.due(200 * MS):
        ear.inbox.offer("said", one.tag, int(bytes(one.frames[0])), 200 * MS)
    assert (ear.heard, ear.lost) == ([2], 0)
    for _, receipt in ear.inbox.receipts(200 * MS):
        outbox.take(receipt, 200 * MS)
    assert outbox.is_empty
    assert outbox.unacknowledged == {("said", "a", "restarted"): 1}


def test_a_sender_that_restarted_counts_from_one_again_and_is_heard() -> None:
    ear = Ear("a")
    for number in (1, 2):
        ear.inbox.offer("said", tag(number), number, 0)
    ear.inbox.offer("said", tag(1, session=8), 3, 0)
    ear.inbox.offer("said", tag(2), 2, 0)
    assert ear.heard == [1, 2, 3]


def test_a_receipt_meant_for_an_earlier_life_of_the_sender_says_nothing() -> None:
    outbox = Outbox("mouth", 7, {"said": ORDERED})
    outbox.add("said", [b"1"], 0)
    outbox.take(Receipt("a", 0, 6, (Settled("said", 2),)), 0)
    assert not outbox.is_empty
    outbox.take(Receipt("a", 0, 7, (Settled("said", 2),)), 0)
    assert outbox.is_empty


def test_silence_is_answered_after_a_tenth_of_a_second_then_more_and_more_slowly_until_the_lifespan_ends() -> None:
    told: list[tuple[str, str, str]] = []
    outbox = Outbox("mouth", 7, {"said": Terms(("a", "b"), LIFESPAN_S, HOLD_S)}, lambda *what: told.append(what))
    outbox.add("said", [b"1"], 0)
    outbox.take(Receipt("b", 0, 7, (Settled("said", 2),)), 0)
    tried_ms = []
    while (next_ns := outbox.next_ns()) is not None:
        tried_ms += [next_ns // MS for one in outbox.due(next_ns) if one.receiver == "a"]
    assert tried_ms == [100, 300, 700, 1500, 2500, 3500, 4500]
    assert told == [("said", "a", "lifespan")]
    assert outbox.is_empty


def test_the_outbox_forgets_what_it_kept_for_longest_and_says_so() -> None:
    outbox = Outbox("mouth", 7, {"said": ORDERED})
    tags = [outbox.add("said", [b"1"], 0) for _ in range(MOST_KEPT + 5)]
    assert outbox.unacknowledged == {("said", "a", "outbox full"): 5}
    assert (tags[-1].number, tags[-1].first) == (MOST_KEPT + 5, 6)
    outbox.add("said", [bytes(MOST_BYTES)], 0)
    assert outbox.unacknowledged["said", "a", "outbox full"] == MOST_KEPT + 5


def test_one_dead_receiver_costs_the_others_nothing() -> None:
    outbox = Outbox("mouth", 7, {"said": Terms(("a", "dead"), LIFESPAN_S, HOLD_S)})
    ear = Ear("a")
    for number in range(1, 2 * MOST_KEPT):
        ear.inbox.offer("said", outbox.add("said", [b"1"], number), number, number)
    assert ear.heard == list(range(1, 2 * MOST_KEPT))


def test_a_topic_that_nobody_acknowledges_is_not_kept() -> None:
    outbox = Outbox("mouth", 7, {"said": Terms((), LIFESPAN_S, HOLD_S)})
    assert outbox.add("said", [b"1"], 0).number == 1
    assert outbox.add("said", [b"1"], 0).first == 2
    assert outbox.is_empty
    assert outbox.next_ns() is None


@given(st.binary(max_size=80))
def test_no_bytes_are_taken_for_a_tag_or_a_receipt_by_mistake(data: bytes) -> None:
    with pytest.raises(CodecError):
        read_tag(b"said", data)
    try:
        read_receipt(data)
    except CodecError:
        pass


@given(st.integers(0, 8 * 30))
def test_one_flipped_bit_in_a_tag_is_noticed(bit: int) -> None:
    data = bytearray(write_tag(b"said", tag(3)))
    data[bit // 8 % len(data)] ^= 1 << bit % 8
    with pytest.raises(CodecError):
        read_tag(b"said", bytes(data))


def test_tags_and_receipts_survive_the_wire() -> None:
    assert read_tag(b"said", write_tag(b"said", tag(3))) == tag(3)
    with pytest.raises(CodecError, match="damaged"):
        read_tag(b"heard", write_tag(b"said", tag(3)))
    with pytest.raises(CodecError, match="cannot stand beside"):
        read_tag(b"said", write_tag(b"said", tag(MOST_KEPT + 1)))
    receipt = Receipt("a", 5, 7, (Settled("said", 9, ((3, 5),)),))
    assert read_receipt(write_receipt(receipt)) == receipt
