"""Runs a few nodes as processes and returns the figures with which one of them ended the run."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.result import percentile
from runtime.launch.file import resolve
from runtime.operating_system.machine import NATIVE
from runtime.supervision.supervisor import Supervisor
from runtime.supervision.view import SilentView

ROUNDS = 3
_HOG = "while True: pass"
FOR_P99 = 1000
"""Samples, from which on a p99 is told."""


@dataclass(frozen=True, slots=True)
class Way:
    """How nodes of a measurement run: `prefix` of their classes, SCHED_FIFO (None: where granted), the lane in C."""

    name: str
    prefix: str = ""
    fifo: int | None = None
    is_native: bool = True


PLAIN = Way("plain nodes")
PYTHON = Way("plain nodes, lane in Python", is_native=False)
LOOP = Way("control loops, SCHED_FIFO", "Realtime")
ORDINARY = Way("control loops, ordinary scheduling", "Realtime", fifo=0)


def run_nodes(nodes: dict[str, dict[str, Any]], way: Way = PLAIN) -> dict[str, Any]:
    """Run these [nodes.*] tables until a node finishes; its reason is JSON."""
    tables: dict[str, Any] = {"nodes": nodes, "run": {"frozen_s": 60.0}}
    if way.fifo is not None:
        tables["processes"] = {name: {"fifo": way.fifo} for name in nodes}
    with tempfile.TemporaryDirectory() as folder, _variant(is_native=way.is_native):
        launch = resolve(tables, path=Path("bench"))
        supervisor = Supervisor(launch, folder=Path(folder), seed=0, run_info={}, view=SilentView())
        outcome = asyncio.run(supervisor.run(120.0))
    if outcome is None or not outcome[0]:
        raise RuntimeError(f"the benchmark did not finish: {outcome}")
    figures: dict[str, Any] = json.loads(outcome[1])
    return figures


@contextmanager
def _variant(*, is_native: bool) -> Iterator[None]:
    """What is started meanwhile takes the lane in C, or the one in Python."""
    before = os.environ.get(NATIVE)
    if not is_native:
        os.environ[NATIVE] = "0"
    try:
        yield
    finally:
        if not is_native:
            del os.environ[NATIVE]
            if before is not None:
                os.environ[NATIVE] = before


@contextmanager
def busy(hogs: int) -> Iterator[None]:
    """So many programs compute meanwhile."""
    running = [subprocess.Popen([sys.executable, "-c", _HOG]) for _ in range(hogs)]
    try:
        yield
    finally:
        for hog in running:
            hog.kill()
            hog.wait()


class Ages:
    """How old messages were, round by round."""

    def __init__(self) -> None:
        self._rounds_us: list[list[float]] = []

    def add(self, ages_us: Sequence[float]) -> None:
        """One round."""
        self._rounds_us.append(list(ages_us))

    @property
    def is_there(self) -> bool:
        """Whether any round gave figures."""
        return bool(self._rounds_us)

    @property
    def p50_us(self) -> float:
        """The median of the rounds' medians."""
        return statistics.median(percentile(one, 50) for one in self._rounds_us)

    @property
    def p99_us(self) -> float | None:
        """Of all samples together; None where they are too few to tell."""
        samples = [age_us for one in self._rounds_us for age_us in one]
        return percentile(samples, 99) if len(samples) >= FOR_P99 else None

    @property
    def words(self) -> str:
        """How many samples there are, in words."""
        return f"{len(self._rounds_us)} x {min(map(len, self._rounds_us))}"
