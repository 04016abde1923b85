"""How often a gateway says one thing."""

import logging

import pytest

from nodes.hosts.gateway import LogLimiter
from runtime.clock import NS_PER_S, SystemClock


class HandClock(SystemClock):
    """Time as the test says."""

    def __init__(self) -> None:
        self.at_s = 0

    def now_ns(self) -> int:
        return self.at_s * NS_PER_S


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def words(clock: HandClock) -> LogLimiter:
    return LogLimiter(logging.getLogger("gateway-robot"), clock)


def test_that_the_other_host_is_not_there_is_told_ever_less_often_until_it_comes(
    words: LogLimiter, clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    def told_s(begin_s: int, end_s: int) -> list[int]:
        found = []
        for clock.at_s in range(begin_s, end_s):
            caplog.clear()
            words.silence("no word from robot yet")
            if caplog.records:
                found.append(clock.at_s - begin_s)
        return found

    assert told_s(0, 1300) == [0, 5, 15, 35, 75, 155, 315, 615, 915, 1215]
    words.heard()
    assert told_s(1300, 1320) == [0, 5, 15]


def test_the_same_is_said_again_after_5_s_and_another_at_once(
    words: LogLimiter, clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    for clock.at_s in range(11):
        words.say("one")
    words.say("two")
    assert caplog.messages == ["one", "one", "one", "two"]


def test_ever_new_sentences_cost_no_memory(words: LogLimiter) -> None:
    for number in range(1000):
        words.say(str(number))
    assert len(words.said_ns) <= 101
