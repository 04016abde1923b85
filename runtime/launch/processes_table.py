"""`RealTime`: what a `[processes.NAME]` table of a launch file asks of the operating system for one process."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from runtime.errors import UserError, choices
from runtime.os_realtime import HIGHEST_PRIORITY

PROCESS_KEYS = ("fifo", "cpus", "lock_memory")


class RealTime(msgspec.Struct, frozen=True):
    """Settings of one process.

    `fifo`: SCHED_FIFO priority of its control loops, with what brings them messages a little below; 0: ordinary
    scheduling; None: as always, real-time where a node is `realtime` and the system allows it. `cpus`: the cores that
    it may use; () any. `lock_memory`: nothing of it is swapped out, or fetched from disk once it runs.
    """

    fifo: int | None = None
    cpus: tuple[int, ...] = ()
    lock_memory: bool = False


def parse_processes(tables: Any, known: Collection[str]) -> dict[str, RealTime]:
    """The `[processes.*]` tables. Raises UserError in words where one is not understood."""
    if not isinstance(tables, Mapping):
        raise UserError(f"processes is {tables!r}; expected tables like [processes.robot]")
    return {name: _parse(name, table, known) for name, table in tables.items()}


def _parse(name: str, table: Any, known: Collection[str]) -> RealTime:
    place = f"[processes.{name}]"
    if name not in known:
        raise UserError(f"{place} is no process of this file; known: {choices(known)}")
    if not isinstance(table, Mapping):
        raise UserError(f"{place} is {table!r}; expected a table with some of: {', '.join(PROCESS_KEYS)}")
    for key in table:
        if key not in PROCESS_KEYS:
            raise UserError(f"{place} unknown key {key!r}; known: {', '.join(PROCESS_KEYS)}")
    fifo, cpus, lock_memory = table.get("fifo"), table.get("cpus", []), table.get("lock_memory", False)
    if fifo is not None and not (_is_number(fifo) and fifo <= HIGHEST_PRIORITY):
        raise UserError(f"{place} fifo is {fifo!r}; expected a priority from 1 to {HIGHEST_PRIORITY}, or 0 for none")
    if not isinstance(cpus, list) or not all(_is_number(cpu) for cpu in cpus):
        raise UserError(f"{place} cpus is {cpus!r}; expected numbers of cores, like [1]")
    if not isinstance(lock_memory, bool):
        raise UserError(f"{place} lock_memory is {lock_memory!r}; expected true or false")
    return RealTime(fifo, tuple(cpus), lock_memory)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
