"""The 20 Hz loop beside a planner that hangs, against a bare timer loop under the same load in the same run."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from typing import Any

from bench.measure import LOOP, ORDINARY, run_nodes
from bench.result import Result, lateness_ms, percentile

SECONDS = 5.0
MOST = 95  # a p99 would be the worst of a hundred ticks
_HOG = "while True: pass"


def bare_lateness_ms() -> list[float]:
    """Lateness of an absolute-deadline sleep at 20 Hz, counted as ours is."""
    moments_ns = []
    start = time.monotonic()
    for number in range(int(SECONDS * 20)):
        due = start + number / 20
        time.sleep(max(0.0, due - time.monotonic()))
        moments_ns.append(time.monotonic_ns())
    return lateness_ms(moments_ns, 50_000_000)


def measure() -> list[Result]:
    """Idle, and with every core busy; with SCHED_FIFO where it is granted, and without."""
    results = []
    nodes: dict[str, dict[str, Any]] = {
        "metronome": {"use": "bench.load_nodes:Metronome", "params": {"seconds": SECONDS}},
        "planner": {"use": "bench.load_nodes:Blocker"},
    }
    for load, hogs in (("idle", 0), ("all cores busy", multiprocessing.cpu_count())):
        running = [subprocess.Popen([sys.executable, "-c", _HOG]) for _ in range(hogs)]
        try:
            bare = percentile(bare_lateness_ms(), MOST)
            told = {way: run_nodes(nodes, way) for way in (LOOP, ORDINARY)}
        finally:
            for hog in running:
                hog.kill()
                hog.wait()
        for way, figures in told.items():
            name = f"20 Hz beside a hung planner, {load}, {way.name}"
            goal = 1.2 if way is LOOP else None
            results += [
                Result(
                    f"{name}: p{MOST} late", "ms", percentile(figures["late_ms"], MOST), bare,
                    "a bare timer loop, no SCHED_FIFO, same load", goal, allowance=1.0, how=f"{SECONDS:g} s, once",
                ),
                Result(f"{name}: missed", "ticks", figures["missed"], 1, "one tick", 0.0 if way is LOOP else None),
            ]  # fmt: skip
    return results
