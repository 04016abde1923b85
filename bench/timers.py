"""The 20 Hz loop beside a planner that hangs, against a bare timer loop under the same load in the same run."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from typing import Any

from bench.measure import run_nodes
from bench.result import Result, percentile

SECONDS = 5.0
_HOG = "while True: pass"


def bare_lateness_ms() -> list[float]:
    """Lateness of an absolute-deadline sleep at 20 Hz."""
    late = []
    start = time.monotonic()
    for number in range(int(SECONDS * 20)):
        due = start + number / 20
        time.sleep(max(0.0, due - time.monotonic()))
        late.append((time.monotonic() - due) * 1e3)
    return late


def measure() -> list[Result]:
    """Idle, and with every core busy."""
    results = []
    nodes: dict[str, dict[str, Any]] = {
        "metronome": {"use": "bench.load_nodes:Metronome", "params": {"seconds": SECONDS}},
        "planner": {"use": "bench.load_nodes:Blocker"},
    }
    for load, hogs in (("idle", 0), ("all cores busy", multiprocessing.cpu_count())):
        running = [subprocess.Popen([sys.executable, "-c", _HOG]) for _ in range(hogs)]
        try:
            bare = percentile(bare_lateness_ms(), 99)
            ours = run_nodes(nodes)
        finally:
            for hog in running:
                hog.kill()
                hog.wait()
        name = f"20 Hz beside a hung planner, {load}, p99 late"
        results.append(Result(name, "ms", ours["p99"], bare, "a bare timer loop, same load", 1.2, allowance=1.0))
        results.append(
            Result(f"20 Hz beside a hung planner, {load}, missed", "ticks", ours["missed"], 1, "one tick", 0.0)
        )
    return results
