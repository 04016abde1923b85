"""The laptop graph in virtual time, cameras and recording included: seconds of it per second of one core, and where
that core's time goes.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.result import Result
from runtime.execution.bound_node import BoundNode
from runtime.launch.file import find, load
from runtime.virtual.simulation import Simulation
from runtime.virtual.trace import MessageTrace

SEED, WARM_UP_S, PART_S, PARTS = 7, 2.0, 5.0, 6
ROWS = 12
ROOT = Path(__file__).resolve().parent.parent
REST = "between the handlers: scheduling, delivery, trace, health"


@dataclass(frozen=True, slots=True)
class Speed:
    """Half a minute of the graph; the better half of its parts, since what else a machine does is not measured."""

    per_cpu_s: float  # simulated seconds per second of processor time: good under load too
    per_wall_s: float
    used_s: dict[str, float]  # processor time by handler, of all parts
    calls: dict[str, int]
    total_s: float


def _cpu_ns() -> int:
    """The processor time of this process, not by a clock: a virtual run stops whoever reads one in a handler."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return round((used.ru_utime + used.ru_stime) * 1e9)


class Meter:
    """Adds up the processor time of each handler of a simulation."""

    def __init__(self, simulation: Simulation) -> None:
        self.used_ns: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        for bound in simulation.bound_nodes.values():
            bound.run = self._metered(bound, bound.run)  # type: ignore[method-assign]  # to measure is all it adds

    def _metered(self, bound: BoundNode, run: Callable[..., Any]) -> Callable[..., Any]:
        def metered(work: Any, call: Any) -> Any:
            start_ns = _cpu_ns()
            try:
                return run(work, call)
            finally:
                name = f"{bound.name}.{work.handler}"
                self.used_ns[name] += _cpu_ns() - start_ns
                self.calls[name] += 1

        return metered


def speed(parts: int = PARTS, part_s: float = PART_S) -> Speed:
    """Measure the shipped laptop graph as `run --virtual` runs it, without its closing pictures.

    The faster half of the parts counts, which other load on the machine disturbed least.
    """
    launch = load(find("laptop"))
    with tempfile.TemporaryDirectory() as folder:
        simulation = Simulation(
            *launch.graph.nodes.values(),
            seed=SEED,
            health_hz=1.0,
            links=launch.links,
            seats=launch.seats,
            trace=MessageTrace(),
        )
        simulation.run_info.update({"folder": folder, "seed": SEED})
        try:
            simulation.run(WARM_UP_S)
            meter = Meter(simulation)
            cpu_s, wall_s = [], []
            for _ in range(parts):
                began_s, began_cpu_s = time.perf_counter(), time.process_time()
                simulation.run(part_s)
                wall_s.append(time.perf_counter() - began_s)
                cpu_s.append(time.process_time() - began_cpu_s)
        finally:
            simulation.close()
    better = max(1, parts // 2)
    return Speed(
        per_cpu_s=part_s * better / sum(sorted(cpu_s)[:better]),
        per_wall_s=part_s * better / sum(sorted(wall_s)[:better]),
        used_s={name: used_ns * 1e-9 for name, used_ns in meter.used_ns.most_common()},
        calls=dict(meter.calls),
        total_s=sum(cpu_s),
    )


def shares(measured: Speed) -> str:
    """Where the time goes, as a table in Markdown: the heaviest handlers, the other ones together, and the rest."""
    simulated_s = PART_S * PARTS
    rows = [(name, used_s, measured.calls[name]) for name, used_s in measured.used_s.items()]
    others = rows[ROWS:]
    shown = [
        *rows[:ROWS],
        (f"{len(others)} more handlers", sum(row[1] for row in others), sum(row[2] for row in others)),
    ]
    shown.append((REST, measured.total_s - sum(measured.used_s.values()), 0))
    lines = ["| what | share | ms per simulated s | calls/s |", "|---|---|---|---|"]
    for name, used_s, calls in shown:
        lines.append(
            f"| {name} | {used_s / measured.total_s:.1%} | {used_s / simulated_s * 1e3:.1f} | "
            f"{f'{calls / simulated_s:.0f}' if calls else ''} |"
        )
    return "\n".join(lines)


def as_typed(seconds: float) -> tuple[float, float]:
    """Wall and processor time of `polyrhythm run laptop --virtual`, its start and its closing pictures included."""
    with tempfile.TemporaryDirectory() as folder:
        before, began_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        command = [sys.executable, "-m", "runtime", "run", "laptop", "--virtual", "--for", str(seconds)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True, timeout=600)
        wall_s = time.perf_counter() - began_s
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(*, is_quick: bool = False) -> list[Result]:
    """Against real time; the table goes to stderr."""
    name = "laptop graph in virtual time"
    typed_s = 10.0 if is_quick else 60.0
    wall_s, cpu_s = as_typed(typed_s)
    how = f"{typed_s:g} simulated s, start and pictures included, once"
    results = [
        Result(
            f"{name}, as typed: wall", "s/s", typed_s / wall_s, 1.0, "real time", None, more_is_better=True, how=how
        ),
        Result(
            f"{name}, as typed: CPU", "s/s", typed_s / cpu_s, 1.0, "real time, per s of CPU", None,
            more_is_better=True, how=how,
        ),
    ]  # fmt: skip
    if is_quick:
        return results
    measured = speed()
    print(shares(measured), file=sys.stderr)
    how = "simulation alone, the better half of half a minute"
    return [
        *results,
        Result(
            f"{name}: CPU", "s/s", measured.per_cpu_s, 1.0, "real time, per s of CPU", 5.0, more_is_better=True, how=how
        ),
        Result(f"{name}: wall", "s/s", measured.per_wall_s, 1.0, "real time", 0.0, more_is_better=True, how=how),
    ]
