"""`RealTime`: what a `[processes.NAME]` table of a launch file asks of the operating system for one process."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any

from msgspec import Meta

from runtime.errors import UserError, choices
from runtime.operating_system.real_time import HIGHEST_PRIORITY
from runtime.serialization.toml_errors import Table, convert

Priority = Annotated[
    int, Meta(ge=0, le=HIGHEST_PRIORITY, description=f"a priority from 1 to {HIGHEST_PRIORITY}, or 0 for none")
]
Core = Annotated[int, Meta(ge=0)]


class RealTime(Table, frozen=True):
    """What one process asks of the operating system.

    `fifo` is the SCHED_FIFO priority of its control loops; what brings them messages runs a little below. 0 means
    ordinary scheduling. None, the default, means real-time where a node is `realtime` and the system allows it. `cpus`
    are the cores that it may use, None any. `lock_memory` keeps all of it from being swapped out, or loaded from
    disk once it runs.
    """

    fifo: Priority | None = None
    cpus: Annotated[tuple[Core, ...], Meta(description="numbers of cores, like [1]")] | None = None
    lock_memory: bool = False


def parse_processes(tables: Any, known: Collection[str]) -> dict[str, RealTime]:
    """The `[processes.*]` tables. Raises UserError where one is wrong."""
    found = convert(tables, dict[str, RealTime], table="processes")
    for name in found:
        if name not in known:
            raise UserError(f"[processes.{name}] is no process of this file; known: {choices(known)}")
    return found
