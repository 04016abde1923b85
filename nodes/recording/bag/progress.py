"""How far a command has got through a recording, told to a person at a terminal and to nobody else."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nodes.mcap.record import BagMessage
from runtime.clock import SystemClock

if TYPE_CHECKING:
    from rich.progress import Progress

SOON_S = 0.5
"""What takes less is not told."""
_EVERY = 32  # messages


class _Terminal:
    """Of this process: whether somebody watches, and the one bar that is shown."""

    is_watched = False
    bar: Progress | None = None


@contextmanager
def told_at_terminal(*, is_wanted: bool) -> Iterator[None]:
    """What is gone through meanwhile is told on standard error, where that is a terminal."""
    before, _Terminal.is_watched = _Terminal.is_watched, is_wanted and sys.stderr.isatty()
    try:
        yield
    finally:
        _Terminal.is_watched = before
        _end_bar()


def with_progress(messages: Iterable[BagMessage], doing: str, total: int | None = None) -> Iterator[BagMessage]:
    """The same messages; `total`: how many there will be, where that is known."""
    if not _Terminal.is_watched:
        yield from messages
        return
    clock = SystemClock()
    soon_s = clock.now_s() + SOON_S
    bar: Progress | None = None
    try:
        for number, message in enumerate(messages, start=1):
            yield message
            if number % _EVERY:
                continue
            if bar is not None:
                bar.update(bar.task_ids[0], completed=number)
            elif _Terminal.bar is None and clock.now_s() >= soon_s:  # of two at once, the first
                bar = _Terminal.bar = _bar(doing, total)
    finally:
        if bar is not None and bar is _Terminal.bar:
            _end_bar()


def _bar(doing: str, total: int | None) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("messages")
    bar = Progress(*columns, TimeRemainingColumn(), console=Console(file=sys.stderr), transient=True)
    bar.add_task(doing, total=total)
    bar.start()
    return bar


def _end_bar() -> None:
    bar, _Terminal.bar = _Terminal.bar, None
    if bar is not None:
        bar.stop()
