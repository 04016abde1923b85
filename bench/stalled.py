"""A subscriber that is stopped while 30 MB/s are meant for it: what its publisher keeps, and how soon it is back."""

from __future__ import annotations

from typing import Any

from bench.measure import run_nodes
from bench.result import Result
from bench.stalled_nodes import LIFESPAN_S

PAUSE_S, QUICK_PAUSE_S = 60.0, 6.0


def measure(*, is_quick: bool = False) -> list[Result]:
    """Limits, not ratios: the reference is the limit."""
    pause_s = QUICK_PAUSE_S if is_quick else PAUSE_S
    nodes: dict[str, dict[str, Any]] = {
        "driver": {"use": "bench.stalled_nodes:Driver", "params": {"pause_s": pause_s}},
        "sleeper": {"use": "bench.stalled_nodes:Sleeper"},
    }
    figures = run_nodes(nodes)
    name = f"subscriber stopped for {pause_s:g} s at 30 MB/s"
    return [
        Result(f"{name}: publisher grows", "MB", figures["growth_mb"], 64.0, "64 MB", 1.0),
        Result(f"{name}: heard anew after", "s", figures["recovery_s"], 1.0, "1 s", 1.0),
        Result(f"{name}: oldest command handled", "s", figures["oldest_order_s"], LIFESPAN_S, "its lifespan", 1.0),
        Result(f"{name}: publishing, p99", "ms", figures["publish_p99_ms"], 1.0, "1 ms", None),
    ]
