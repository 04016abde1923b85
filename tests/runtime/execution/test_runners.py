"""A lane on the asyncio loop leaves the loop to others in time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from runtime.execution.runners import LoopRunner

MS = 1_000_000


class Busy:
    """A lane with work left, whose handlers each take `handler_ns` of the clock that this is as well."""

    style = "plain"
    is_busy = False
    timers = ()

    def __init__(self, handler_ns: int, works: int) -> None:
        self.handler_ns, self.left, self.ns = handler_ns, works, 0

    def now_ns(self) -> int:
        return self.ns

    def take(self, now_ns: int) -> object | None:
        return SimpleNamespace(handler="work") if self.left else None

    def next_due_ns(self) -> None:
        return None

    def handle(self, work: object, call: object) -> None:
        self.left -= 1
        self.ns += self.handler_ns


async def turns(busy: Busy) -> list[int]:
    """How much work is left after each turn of the loop that the lane takes."""
    bound = SimpleNamespace(
        call=lambda work: SimpleNamespace(view=None),
        run=busy.handle,
        slow=SimpleNamespace(tell=lambda *told: None),
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
