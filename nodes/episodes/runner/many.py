"""`side_by_side`: one thing done for many, so many at a time, on one loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from runtime.errors import PolyrhythmError

One = TypeVar("One")


async def side_by_side(jobs: int, each: Iterable[One], do: Callable[[One], Awaitable[None]]) -> None:
    """Do it for each, `jobs` at a time, begun in order. The first error of ours ends all, and is raised as it is."""
    waiting = iter(each)

    async def work() -> None:
        for one in waiting:
            await do(one)
            await asyncio.sleep(0)

    try:
        async with asyncio.TaskGroup() as group:
            for number in range(max(1, jobs)):
                group.create_task(work(), name=f"side-by-side-{number}")
    except BaseExceptionGroup as problem:
        ours = problem.subgroup(PolyrhythmError)
        if ours is not None and problem.split(PolyrhythmError)[1] is None:
            raise _first(ours) from None
        raise


def _first(group: BaseExceptionGroup[PolyrhythmError]) -> PolyrhythmError:
    one = group.exceptions[0]
    return _first(one) if isinstance(one, BaseExceptionGroup) else one
