"""Images on a link: the newest of each topic, few on their way, a budget, and quality that follows the link."""

from __future__ import annotations

import numpy as np

from nodes.hosts.image_throttle import BEST, IN_FLIGHT, WORST, Bulk
from nodes.msgs import Image
from runtime.clock import NS_PER_S, to_ns
from runtime.message import Envelope, Stamped


def image(number: int, topic: str = "head/image") -> Stamped[Image]:
    message = Image(camera="head", captured_ns=number, rgb=np.zeros((1, 1, 3), np.uint8))
    return Stamped(message, Envelope(topic, "camera", number, number))


def test_an_older_image_that_still_waits_is_dropped_and_counted() -> None:
    bulk = Bulk(ways=3)
    for number in (1, 2, 3):
        bulk.offer(image(number))
    sent = bulk.next(0)
    assert sent is not None
    assert sent.envelope.seq == 3
    assert bulk.dropped == {"overwritten": 2}
    assert bulk.next(0) is None


def test_no_more_are_on_their_way_than_were_acknowledged() -> None:
    bulk, numbers = Bulk(ways=3), []
    for number in range(IN_FLIGHT):
        bulk.offer(image(number))
        assert bulk.next(0) is not None
        numbers.append(bulk.sent(1000, 0)[0])
    bulk.offer(image(9))
    assert bulk.next(0) is None
    bulk.acknowledged(numbers[0], 0)
    assert bulk.next(0) is not None


def test_an_image_that_is_never_acknowledged_does_not_block_for_good() -> None:
    bulk = Bulk(ways=3)
    for number in range(IN_FLIGHT):
        bulk.offer(image(number))
        bulk.next(0)
        bulk.sent(1000, 0)
    bulk.offer(image(9))
    assert bulk.next(to_ns(1.1)) is not None
    assert bulk.dropped["not acknowledged"] == IN_FLIGHT


def test_one_that_waits_for_a_lost_packet_does_not_hold_up_the_next() -> None:
    bulk, way_of = Bulk(ways=3), {}
    for number in range(2):
        bulk.offer(image(number))
        bulk.next(0)
        stuck, way_of[number] = bulk.sent(1000, 0)
        bulk.acknowledged(stuck, to_ns(0.05))
    bulk.offer(image(2))
    assert bulk.next(to_ns(0.1)) is not None
    _, stuck_way = bulk.sent(1000, to_ns(0.1))  # never acknowledged
    ways = set()
    for at in range(2, 9):
        now_ns = to_ns(at / 10)
        bulk.offer(image(at, "wrist/image"))
        assert bulk.next(now_ns) is not None
        number, way = bulk.sent(1000, now_ns)
        ways.add(way)
        bulk.acknowledged(number, now_ns + to_ns(0.05))
    assert ways
    assert stuck_way not in ways


def test_two_that_are_late_leave_the_third_connection_free() -> None:
    bulk = Bulk(ways=3)
    for number in range(2):
        bulk.offer(image(number))
        bulk.next(0)
        bulk.sent(1000, 0)
    bulk.offer(image(2))
    assert bulk.next(to_ns(0.09)) is None  # they are on their way
    assert bulk.next(to_ns(0.2)) is not None
    assert bulk.sent(1000, to_ns(0.2)) == (3, 2)
    bulk.offer(image(3))
    assert bulk.next(to_ns(0.5)) is None  # each connection has one


def test_a_connection_that_took_nothing_comes_last() -> None:
    bulk = Bulk(ways=2)
    bulk.offer(image(1))
    bulk.next(to_ns(1))
    number, way = bulk.sent(1000, to_ns(1))
    bulk.acknowledged(number, to_ns(1))
    bulk.offer(image(2))
    bulk.next(to_ns(2))
    number, again = bulk.sent(1000, to_ns(2))
    assert again == way  # the one that answered last
    bulk.refused(number)
    bulk.offer(image(3))
    bulk.next(to_ns(3))
    _, other = bulk.sent(1000, to_ns(3))
    assert other != way
    bulk.refused(99)  # nothing of that number is on its way


def test_topics_take_turns() -> None:
    bulk, order = Bulk(ways=3), []
    for number in range(6):
        bulk.offer(image(number, "head/image"))
        bulk.offer(image(number, "wrist/image"))
        sent = bulk.next(number)
        assert sent is not None
        bulk.acknowledged(bulk.sent(1000, number)[0], number)
        order.append(sent.envelope.topic)
    assert order.count("head/image") == order.count("wrist/image") == 3


def test_the_budget_is_kept_over_a_second() -> None:
    bulk, sent_bytes = Bulk(8.0, ways=3), 0
    for ms in range(1000):
        bulk.offer(image(ms))
        if bulk.next(to_ns(ms / 1000)) is not None:
            bulk.acknowledged(bulk.sent(10_000, to_ns(ms / 1000))[0], to_ns(ms / 1000))
            sent_bytes += 10_000
    assert 0.9e6 < sent_bytes < 1.15e6  # a megabyte, and the burst at its start


def test_quality_falls_while_images_are_overwritten_and_rises_when_the_link_keeps_up() -> None:
    bulk = Bulk(ways=3)
    for number in range(50):
        bulk.offer(image(number))
    assert bulk.quality == WORST
    for number in range(100):
        bulk.next(number)
        bulk.acknowledged(bulk.sent(1000, number)[0], number)
        bulk.offer(image(number))
        bulk.next(number)
        bulk.acknowledged(bulk.sent(1000, number)[0], number)
    assert WORST < bulk.quality <= BEST


def test_a_link_that_was_cut_forgets_what_waited() -> None:
    bulk = Bulk(ways=3)
    bulk.offer(image(1))
    bulk.forget()
    assert bulk.next(NS_PER_S) is None
    assert bulk.dropped["link down"] == 1
