"""Images from one process to one and to four others, against bare shared memory with a ZeroMQ notification.

Peers that are installed (iceoryx2) are measured beside them, in the same rounds.
"""

from __future__ import annotations

from typing import Any

from bench import image_peers
from bench.measure import run_nodes
from bench.result import Result, percentile

SIZES = {"640x480": (640, 480), "1080p": (1920, 1080)}
COUNT = 40


def ours(width_px: int, height_px: int, receivers: int) -> dict[str, float]:
    """The same figures as `image_peers.run` gives."""
    size = {"width_px": width_px, "height_px": height_px}
    nodes: dict[str, dict[str, Any]] = {
        "source": {"use": "bench.image_nodes:ImageSource", "params": {**size, "receivers": receivers, "count": COUNT}}
    }
    for number in range(receivers):
        nodes[f"sink{number}"] = {"use": "bench.image_nodes:ImageSink", "params": {"count": COUNT}}
    told = run_nodes(nodes)
    return {
        "p50": percentile(told["ages_us"], 50),
        "p99": percentile(told["ages_us"], 99),
        "cpu": told["cpu"],
    }


def measure(rounds: int = 2, *, is_quick: bool = False) -> list[Result]:
    """Interleaved rounds; the best of each, which other load on the machine disturbed least."""
    results = []
    for name, (width_px, height_px) in SIZES.items():
        for receivers in (1, 4):
            told: dict[str, list[dict[str, float]]] = {}
            for number in range(1 if is_quick else rounds):
                for way in image_peers.available() if number == 0 else ("shm",):  # peers are told, no goal needs them
                    told.setdefault(way, []).append(image_peers.run(way, width_px, height_px, receivers, COUNT))
                told.setdefault("ours", []).append(ours(width_px, height_px, receivers))
            best = {
                way: {figure: min(one[figure] for one in rounds_) for figure in ("p50", "p99", "cpu")}
                for way, rounds_ in told.items()
            }
            goals = (("p50", "one way, p50", 1.3), ("p99", "one way, p99", None), ("cpu", "CPU an image", 1.3))
            for figure, words, goal in goals:
                peers = {way: figures[figure] for way, figures in best.items() if way not in ("ours", "shm")}
                results.append(
                    Result(
                        f"{name} to {receivers}: {words}",
                        "us",
                        best["ours"][figure],
                        best["shm"][figure],
                        "bare shared memory + ZeroMQ notification",
                        goal,
                        peers=peers,
                    )
                )
    return results
