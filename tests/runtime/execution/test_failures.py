"""What the log says of handlers that raise."""

import asyncio
import gc
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from nodes import hello
from nodes.hello import Beat
from runtime import GoalHandle, Node, Publisher, ServiceClient, Stamped, Subscription
from runtime.clock import NS_PER_S, SystemClock
from runtime.errors import UserError
from runtime.execution.failures import Failures, remedy_of, tell_of_callbacks
from runtime.message import Envelope
from tests.support.sentences import sentence


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


def test_what_a_callback_raises_again_and_again_is_bounded_as_a_handlers_failures_are(
    clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    def pulled() -> None:
        raise ValueError("no")

    async def left() -> None:
        pulled()

    async def many() -> None:
        loop = asyncio.get_running_loop()
        tell_of_callbacks(loop, clock)
        for _ in range(1000):
            loop.call_soon(pulled)
        tasks = [asyncio.create_task(left()) for _ in range(10)]
        await asyncio.wait(tasks)
        tasks.clear()
        gc.collect()

    asyncio.run(many())
    told = sorted(record.getMessage().partition(" failed")[0].rpartition(".")[2] for record in caplog.records)
    assert told == ["left", "pulled"], "one of each, however often it comes"
    assert {record.name for record in caplog.records} == {"loop"}


def test_a_users_mistake_is_told_in_its_sentence_and_without_a_traceback(
    failures: Failures, caplog: pytest.LogCaptureFixture
) -> None:
    failures.tell("tick", raised(UserError("write it so")))
    assert [(one.getMessage(), one.exc_info) for one in caplog.records] == [("handler tick failed: write it so", None)]


def test_the_place_of_a_failure_is_the_users_own_line(failures: Failures) -> None:
    try:
        Publisher(Beat, "beat").publish(Envelope("beat", "talker", 1, 0))  # type: ignore[arg-type]
    except TypeError as problem:
        failures.tell("tick", problem)
    assert failures.last.startswith("tick: ")
    assert "test_failures.py:" in failures.last


async def later() -> Beat:
    return Beat(count=1)


class Waits:
    """A node's method of an early try: `latest` that nobody has filled."""

    def latest(self) -> Any:
        return None


class Hears(Node):
    heard = Subscription(Beat, "beat")


OUT, IN = Publisher(Beat, "beat"), Hears().heard
HEARD: Any = Stamped(Beat(count=1), Envelope("beat", "talker", 1, 0))
GOAL: Any = GoalHandle(Beat(count=1), print)
ASKS: Any = ServiceClient(Beat, Beat, "beats")
BEAT: Any = Beat(count=1)


def awaited_too_soon() -> None:
    call: Any = later()
    try:
        call.count  # noqa: B018  # what a beginner writes
    finally:
        call.close()


def awaited_in_vain() -> None:
    async def tick() -> None:
        await OUT.publish(BEAT)  # type: ignore[func-returns-value, misc]

    tick().send(None)


def looked_too_soon() -> None:
    Waits().latest().count  # noqa: B018


def changed() -> None:
    BEAT.count = 2


MISTAKES: list[tuple[Callable[[], object], str]] = [
    (awaited_too_soon, sentence("runtime.await_the_call")),
    (awaited_in_vain, sentence("runtime.leave_out_await")),
    (looked_too_soon, sentence("runtime.none_before_the_first")),
    (changed, sentence("runtime.never_changes")),
    (lambda: Beat(1), sentence("runtime.made_with_keywords")),  # type: ignore[call-arg]
    (lambda: Beat(count=1, cuont=2), sentence("runtime.no_such_field")),  # type: ignore[call-arg]
    (lambda: hello.Beat(), sentence("runtime.made_with_its_field")),  # type: ignore[call-arg]
    (lambda: OUT(BEAT), sentence("runtime.publish_by_self")),  # type: ignore[operator]
    (lambda: OUT.publish(count=1), sentence("runtime.give_it_a_message")),  # type: ignore[call-arg]
    (lambda: OUT.latest(), sentence("runtime.only_sends")),  # type: ignore[attr-defined]
    (lambda: IN(), sentence("runtime.read_the_newest")),  # type: ignore[operator]
    (lambda: IN.publish(BEAT), sentence("runtime.only_hears")),  # type: ignore[attr-defined]
    (lambda: IN.count, sentence("runtime.newest_message")),  # type: ignore[attr-defined]
    (lambda: ASKS(BEAT), sentence("runtime.ask_by_call")),
    (lambda: HEARD.count, sentence("runtime.in_the_message")),
    (lambda: GOAL.count, sentence("runtime.in_the_goal")),
]


@pytest.mark.parametrize(("mistake", "remedy"), MISTAKES)
def test_a_beginners_mistake_in_a_handler_is_told_with_its_remedy(
    mistake: Callable[[], object], remedy: str, failures: Failures, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises((AttributeError, TypeError)) as found:
        mistake()
    assert remedy_of(found.value).startswith(remedy)
    failures.tell("tick", found.value)
    assert caplog.records[-1].getMessage().startswith(f"handler tick failed: {remedy}")


@pytest.mark.parametrize(
    "problem",
    [
        AttributeError("its own"),
        TypeError("its own"),
        ValueError("'Publisher' object"),
        TypeError("Missing required argument 'x'"),
    ],
)
def test_for_any_other_failure_no_remedy_is_made_up(problem: Exception) -> None:
    assert remedy_of(raised(problem)) == ""
