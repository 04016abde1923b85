"""How soon an interrupt is handled beside a flood of 1080p images between the same two processes."""

from __future__ import annotations

from typing import Any

from bench.measure import run_nodes
from bench.result import Result


def measure(rounds: int = 2) -> list[Result]:
    """The same two processes with the flood and without it, in turns; the best of each."""
    figures: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    for _ in range(rounds):
        for is_flooded, told in figures.items():
            nodes: dict[str, dict[str, Any]] = {
                "sender": {"use": "bench.urgent_nodes:Sender", "params": {"floods": is_flooded}},
                "receiver": {"use": "bench.urgent_nodes:Receiver"},
            }
            told.append(run_nodes(nodes))
    flooded, alone = (
        {key: min(one[key] for one in figures[kind]) for key in ("p50", "p99", "images_hz")} for kind in (True, False)
    )
    name = f"interrupt beside {flooded['images_hz']:.0f} 1080p images a second"
    reference = "the same without images"
    return [
        Result(f"{name}, p50", "ms", flooded["p50"], alone["p50"], reference, None),
        Result(f"{name}, p99", "ms", flooded["p99"], alone["p99"], reference, 3.0, allowance=10.0),
    ]
