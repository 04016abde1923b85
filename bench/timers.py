"""Timers against a bare timer loop under the same load in the same run: a 20 Hz loop beside a planner that hangs, plain
timers without any rights, and a timer beside a blocking handler that reads a large value.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from typing import Any

from bench.measure import LOOP, ORDINARY, ROUNDS, busy, run_nodes
from bench.result import Result, lateness_ms, percentile

SECONDS = 5.0
MOST = 95  # a p99 would be the worst of a hundred ticks
PLAIN_S = 4.0
VALUES_MB = (1, 50, 200)


def bare_moments_ns(hz: int, seconds: float) -> list[int]:
    """When an absolute-deadline sleep returns; what it is a period late for is left out, as ours is."""
    moments_ns, start, tick = [], time.monotonic(), 0
    while tick < int(seconds * hz):
        time.sleep(max(0.0, start + tick / hz - time.monotonic()))
        moments_ns.append(time.monotonic_ns())
        tick = max(tick + 1, int((time.monotonic() - start) * hz) + 1)
    return moments_ns


def bare_lateness_ms() -> list[float]:
    """Lateness of such a loop at 20 Hz, counted as ours is."""
    return lateness_ms(bare_moments_ns(20, SECONDS), 50_000_000)


def measure() -> list[Result]:
    """Idle, and with every core busy; with SCHED_FIFO where it is granted, and without."""
    results = []
    nodes: dict[str, dict[str, Any]] = {
        "metronome": {"use": "bench.load_nodes:Metronome", "params": {"seconds": SECONDS}},
        "planner": {"use": "bench.load_nodes:Blocker"},
    }
    for load, hogs in (("idle", 0), ("all cores busy", multiprocessing.cpu_count())):
        with busy(hogs):
            bare = percentile(bare_lateness_ms(), MOST)
            told = {way: run_nodes(nodes, way) for way in (LOOP, ORDINARY)}
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
    return [*results, *_plain(), *_beside_values()]


def _plain() -> list[Result]:
    """The 50 Hz timer of a plain node, in turns with the bare loop; missed: those that the bare loop keeps."""
    results = []
    nodes: dict[str, dict[str, Any]] = {
        "metronome": {"use": "bench.load_nodes:PlainMetronome", "params": {"seconds": PLAIN_S}}
    }
    how = f"50 Hz, {ROUNDS} x {PLAIN_S:g} s in turns"
    for load, hogs, percent in (("idle", 0, 50), ("beside 2 hogs", 2, 99)):
        ours: list[list[int]] = []
        bare: list[list[int]] = []
        with busy(hogs):
            for _ in range(ROUNDS):
                bare.append(bare_moments_ns(50, PLAIN_S))
                ours.append(run_nodes(nodes)["moments_ns"])
        late = [
            percentile([one for some in of for one in lateness_ms(some, 20_000_000)], percent) for of in (ours, bare)
        ]
        missed = [sum(max(0, int(PLAIN_S * 50) - len(some)) for some in of) for of in (ours, bare)]
        name, against = f"50 Hz timer of a plain node, {load}", "a bare sleep loop, same load"
        allowed_ms = 0.1 if percent == 50 else 1.0
        results += [
            Result(f"{name}: p{percent} late", "ms", late[0], late[1], against, 1.2, allowance=allowed_ms, how=how),
            Result(f"{name}: missed", "ticks", missed[0], missed[1], against, 1.0, how=how),
        ]
    return results


def _beside_values() -> list[Result]:
    """The worst gap of a 100 Hz timer beside a blocking handler, in turns with one that reads nothing."""
    asked = [(0, "nothing"), *((mb, "one") for mb in VALUES_MB), (VALUES_MB[-1], "all")]
    gaps_ms: dict[tuple[int, str], list[float]] = {one: [] for one in asked}
    for _ in range(ROUNDS):
        for mb, reads in asked:
            table = {"use": "bench.load_nodes:Holder", "params": {"mb": mb, "reads": reads}}
            gaps_ms[mb, reads].append(run_nodes({"holder": table})["worst_gap_ms"])
    worst_ms = {one: statistics.median(some) for one, some in gaps_ms.items()}
    name = "100 Hz timer beside a blocking handler that reads"
    return [
        Result(
            f"{name} {'one number' if reads == 'one' else 'all'} of {mb} MB: worst gap",
            "ms",
            worst_ms[mb, reads],
            worst_ms[0, "nothing"],
            "the same, which reads nothing",
            2.0 if reads == "one" else None,
            how=f"median of {ROUNDS} x 3 s",
        )
        for mb, reads in asked[1:]
    ]
