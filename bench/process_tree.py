"""What a process and all that it started use: processor time, memory, threads. Linux only."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """Of all of them together."""

    processes: int
    threads: int
    cpu_s: float
    pss_mb: float  # proportional set sizes: what is shared counts once


def descendants(pid: int) -> list[int]:
    """The processes that this one started, and those that they started."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += map(int, task.read_text().split())
            except OSError:
                continue  # it has ended
    return found[1:]


def usage(pids: list[int]) -> Usage:
    """What these use, or have used; whoever has ended counts as nothing."""
    processes = threads = 0
    cpu_s = pss_kb = 0.0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        processes += 1
        cpu_s += (int(fields[11]) + int(fields[12])) / _TICKS
        threads += int(fields[17])
        pss_kb += int(next(line for line in rollup.splitlines() if line.startswith("Pss:")).split()[1])
    return Usage(processes, threads, cpu_s, pss_kb / 1024)
