"""A lane on the asyncio loop leaves the loop to others in time."""

from __future__ import annotations

import asyncio
import os
import selectors
from types import SimpleNamespace
from typing import Any, cast

import pytest

from runtime.clock import SystemClock
from runtime.execution.runners import LoopRunner
from runtime.execution.straight_loop import StraightLoop, new_loop

MS = 1_000_000


class Busy:
    """A lane with work left, whose handlers each take `handler_ns` of the clock that this is as well."""

    style = "plain"
    is_busy = False
    timers = ()
    known_due_ns = None

    def __init__(self, handler_ns: int, works: int) -> None:
        self.handler_ns, self.left, self.ns = handler_ns, works, 0

    def now_ns(self) -> int:
        return self.ns

    def take(self, now_ns: int) -> object | None:
        return SimpleNamespace(handler="work") if self.left else None

    def handle(self, work: object, call: object) -> None:
        self.left -= 1
        self.ns += self.handler_ns


async def turns(busy: Busy) -> list[int]:
    """How much work is left after each turn of the loop that the lane takes."""
    bound = SimpleNamespace(
        call=lambda work: SimpleNamespace(view=None),
        run=busy.handle,
        slow=SimpleNamespace(tell=lambda *told: None),
        held_up=None,
        period_s=lambda handler: 0.0,
        has_worker=True,
    )
    lane: Any = busy
    runner = LoopRunner(cast(Any, bound), lane, cast(Any, busy), asyncio.get_running_loop())
    runner.start()
    left = [busy.left]
    while left[-1]:
        await asyncio.sleep(0)
        if busy.left < left[-1]:
            left.append(busy.left)
    runner.stop()
    return left


@pytest.mark.parametrize(
    ("handler_ns", "works", "left"),
    [(300 * MS, 4, [3, 2, 1, 0]), (2 * MS, 6, [3, 0]), (MS // 100, 60, [0]), (MS // 100, 100, [36, 0])],
)
def test_the_loop_looks_after_others_between_long_handlers_and_runs_short_ones_together(
    handler_ns: int, works: int, left: list[int]
) -> None:
    assert asyncio.run(turns(Busy(handler_ns, works))) == left


class Once:
    """Ticks once, 2 ms after it was made, and fails where it is to."""

    def __init__(self, told: list[str], name: str, *, fails: bool = False) -> None:
        self.due_ns: int | None = SystemClock.now_ns() + 2 * MS
        self.made_ns, self.ran_ns = SystemClock.now_ns(), 0
        self.told, self.name, self.fails = told, name, fails

    def tick(self) -> None:
        self.due_ns = None
        self.ran_ns = SystemClock.now_ns()
        self.told.append(self.name)
        if self.fails:
            raise ValueError(self.name)


@pytest.mark.skipif(not hasattr(selectors, "EpollSelector"), reason="no epoll")
def test_what_comes_straight_one_upon_the_other_is_one_turn_of_asyncio_until_something_of_asyncio_is_to_be_done() -> (
    None
):
    loop = new_loop()
    assert isinstance(loop, StraightLoop)
    straight, told, turns = os.pipe(), list[str](), list[int]()
    select, is_late = loop.straight.select, asyncio.Event()

    def counted(timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        turns.append(len(told))
        return select(timeout)

    def read() -> None:
        told.append("read")
        os.write(straight[1], os.read(straight[0], 1))  # there is more at once, without an end
        if len(told) == 100:
            loop.call_soon(told.append, "soon")
            loop.call_later(0.001, is_late.set)

    async def run() -> None:
        loop.add_reader(straight[0], read)
        loop.straight.calls[straight[0]] = read
        os.write(straight[1], b"s")
        await asyncio.wait_for(is_late.wait(), 10)
        loop.remove_reader(straight[0])

    loop.straight.select = counted  # type: ignore[method-assign]
    try:
        loop.run_until_complete(run())
    finally:
        loop.close()
        for fd in straight:
            os.close(fd)
    assert not [number for number in turns if 1 < number < 100], "asyncio had nothing to do"
    assert told.index("soon") == 100, "what a call schedules goes before the next one"


@pytest.mark.skipif(not hasattr(selectors, "EpollSelector"), reason="no epoll")
def test_a_loop_calls_what_is_straight_and_due_and_goes_on_after_a_failure() -> None:
    loop = new_loop()
    assert isinstance(loop, StraightLoop)
    told: list[str] = []
    problems: list[str] = []
    loop.set_exception_handler(lambda _, context: problems.append(str(context["exception"])))
    straight, usual = os.pipe(), os.pipe()
    ticking = [Once(told, "bad tick", fails=True), Once(told, "tick")]

    def read_straight() -> None:
        told.append(os.read(straight[0], 1).decode())
        loop.call_soon(told.append, "later")
        raise ValueError("bad read")

    async def until(word: str) -> None:
        async with asyncio.timeout(10):
            while word not in told:
                await asyncio.sleep(0.001)

    async def run() -> None:
        loop.add_reader(straight[0], lambda: told.append(os.read(straight[0], 1).decode()))
        loop.add_reader(usual[0], lambda: told.append(os.read(usual[0], 1).decode()))
        loop.straight.calls[straight[0]] = read_straight
        loop.straight.ticking += ticking
        os.write(straight[1], b"s")
        await until("later")
        os.write(usual[1], b"u")
        await until("u")
        loop.call_soon(told.append, "order")  # to stop, say: it goes before what is straight
        os.write(straight[1], b"x")
        await until("x")
        await until("tick")
        loop.remove_reader(straight[0])
        loop.remove_reader(usual[0])

    try:
        loop.run_until_complete(run())
    finally:
        loop.close()
        for fd in (*straight, *usual):
            os.close(fd)
    assert told.index("s") < told.index("later") < told.index("u") < told.index("order") < told.index("x")
    assert {"bad tick", "tick"} <= set(told)
    assert sorted(problems) == ["bad read", "bad tick"]
    assert all(one.ran_ns - one.made_ns >= 2 * MS for one in ticking)
