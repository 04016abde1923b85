"""`polyrhythm guard estop`, from Enter to held, against the limits that are promised of an idle machine."""

from __future__ import annotations

import time

from bench.faults.attacks import ENTER, at_terminal
from bench.faults.measures import AT_REST
from bench.faults.rig import Rig
from bench.result import Result, percentile

P50_MS, P99_MS, REST_MS = 150.0, 300.0, 1500.0


def measure(rounds: int = 100, *, is_quick: bool = False) -> list[Result]:
    """One press after the other of a robot at 0.3 m/s, each re-armed."""
    rig = Rig()
    try:
        found = []
        for _ in range(10 if is_quick else rounds):
            found.append(at_terminal(rig))
            time.sleep(0.1)
    finally:
        rig.close()
    enter, rest = ([one[name] for one in found] for name in (ENTER, AT_REST))
    name = f"guard estop at a terminal, {len(found)} times"
    return [
        Result(f"{name}: Enter to held, p50", "ms", percentile(enter, 50), P50_MS, "150 ms", 1.0),
        Result(f"{name}: Enter to held, p99", "ms", percentile(enter, 99), P99_MS, "300 ms", 1.0),
        Result(f"{name}: Enter to at rest, p99", "ms", percentile(rest, 99), REST_MS, "1.5 s", 1.0),
    ]
