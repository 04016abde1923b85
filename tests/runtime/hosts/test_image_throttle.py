"""Images on a link: the newest of each topic, few on their way, a budget, and quality that follows the link."""

from __future__ import annotations

import numpy as np

from runtime.clock import NS_PER_S, to_ns
from runtime.hosts.image_throttle import BEST, IN_FLIGHT, WORST, Bulk
from runtime.message import Envelope, Stamped
from runtime.msgs import Image


def image(number: int, topic: str = "head/image") -> Stamped[Image]:
    message = Image(camera="head", captured_ns=number, rgb=np.zeros((1, 1, 3), np.uint8))
    return Stamped(message, Envelope(topic, "camera", number, number))


def test_an_older_image_that_still_waits_is_dropped_and_counted() -> None:
    bulk = Bulk()
    for number in (1, 2, 3):
        bulk.offer(image(number))
    sent = bulk.next(0)
    assert sent is not None
    assert sent.envelope.seq == 3
    assert bulk.dropped == {"overwritten": 2}
    assert bulk.next(0) is None


def test_no_more_are_on_their_way_than_were_acknowledged() -> None:
    bulk, numbers = Bulk(), []
    for number in range(IN_FLIGHT):
        bulk.offer(image(number))
        assert bulk.next(0) is not None
        numbers.append(bulk.sent(1000, 0))
    bulk.offer(image(9))
    assert bulk.next(0) is None
    bulk.acknowledged(numbers[0])
    assert bulk.next(0) is not None


def test_an_image_that_is_never_acknowledged_does_not_block_for_good() -> None:
    bulk = Bulk()
    for number in range(IN_FLIGHT):
        bulk.offer(image(number))
        bulk.next(0)
        bulk.sent(1000, 0)
    bulk.offer(image(9))
    assert bulk.next(to_ns(1.1)) is not None
    assert bulk.dropped["not acknowledged"] == IN_FLIGHT


def test_topics_take_turns() -> None:
    bulk, order = Bulk(), []
    for number in range(6):
        bulk.offer(image(number, "head/image"))
        bulk.offer(image(number, "wrist/image"))
        sent = bulk.next(number)
        assert sent is not None
        bulk.acknowledged(bulk.sent(1000, number))
        order.append(sent.envelope.topic)
    assert order.count("head/image") == order.count("wrist/image") == 3


def test_the_budget_is_kept_over_a_second() -> None:
    bulk, sent_bytes = Bulk(budget_mbit=8.0), 0
    for ms in range(1000):
        bulk.offer(image(ms))
        if bulk.next(to_ns(ms / 1000)) is not None:
            bulk.acknowledged(bulk.sent(10_000, to_ns(ms / 1000)))
            sent_bytes += 10_000
    assert 0.9e6 < sent_bytes < 1.15e6  # a megabyte, and the burst at its start


def test_quality_falls_while_images_are_overwritten_and_rises_when_the_link_keeps_up() -> None:
    bulk = Bulk()
    for number in range(50):
        bulk.offer(image(number))
    assert bulk.quality == WORST
    for number in range(100):
        bulk.next(number)
        bulk.acknowledged(bulk.sent(1000, number))
        bulk.offer(image(number))
        bulk.next(number)
        bulk.acknowledged(bulk.sent(1000, number))
    assert WORST < bulk.quality <= BEST


def test_a_link_that_was_cut_forgets_what_waited() -> None:
    bulk = Bulk()
    bulk.offer(image(1))
    bulk.forget()
    assert bulk.next(NS_PER_S) is None
    assert bulk.dropped["link down"] == 1
