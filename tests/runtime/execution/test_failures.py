"""What the log says of handlers that raise."""

import logging
from contextlib import suppress

import pytest

from runtime.clock import NS_PER_S, SystemClock
from runtime.execution.failures import Failures


class HandClock(SystemClock):
    """Time as the test says."""

    def __init__(self) -> None:
        self.time_ns = 5 * NS_PER_S

    def now_ns(self) -> int:
        return self.time_ns


def raised(problem: Exception) -> Exception:
    with suppress(type(problem)):
        raise problem
    return problem


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def failures(clock: HandClock) -> Failures:
    return Failures(logging.getLogger("arm"), clock)


def test_a_handler_that_fails_at_20_hz_is_told_whole_once_and_then_in_a_line_a_second(
    clock: HandClock, failures: Failures, caplog: pytest.LogCaptureFixture
) -> None:
    for tick in range(61):
        clock.time_ns = 5 * NS_PER_S + tick * NS_PER_S // 20
        failures.tell("tick", raised(ValueError(f"no cup at {tick}")))
    assert failures.count == 61
    whole = [record for record in caplog.records if record.exc_info]
    assert [record.getMessage() for record in whole] == ["handler tick failed"]
    lines = [record.getMessage() for record in caplog.records if not record.exc_info]
    assert len(lines) == 3
    assert lines[-1].startswith("handler tick failed 20 times more, the last time at test_failures.py:")
    assert lines[-1].endswith(": ValueError: no cup at 60")


def test_another_failure_of_the_same_handler_is_told_whole_at_once(
    failures: Failures, caplog: pytest.LogCaptureFixture
) -> None:
    failures.tell("tick", raised(ValueError("one")))
    failures.tell("tick", raised(KeyError("two")))
    failures.tell("hear", raised(ValueError("one")))
    assert len([record for record in caplog.records if record.exc_info]) == 3


def test_what_fails_once_more_much_later_is_a_line(
    clock: HandClock, failures: Failures, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        failures.tell("tick", raised(ValueError("one")))
        clock.time_ns += 100 * NS_PER_S
    assert caplog.records[-1].getMessage().startswith("handler tick failed again, the last time at test_failures.py:")


def test_a_node_with_ever_new_failures_does_not_fill_the_log(
    failures: Failures, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(1000):
        failures.tell("tick", raised(type(f"Odd{number}", (Exception,), {})()))
    assert failures.count == 1000
    assert len(caplog.records) == 32
