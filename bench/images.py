"""Images from one process to one and to four others, against bare shared memory with a ZeroMQ notification.

Plain nodes first, as users write them; control loops beside them, and peers that are installed, in the same run.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from bench import image_peers
from bench.measure import LOOP, ORDINARY, PLAIN, PYTHON, Ages, Way, run_nodes
from bench.result import Result

SIZES = {"640x480": (640, 480), "1080p": (1920, 1080)}
ROUNDS = 9
"""Processor time of one round and of the next differ by a third on a shared machine, ours and the reference's alike."""
COUNT = 40
FULL_COUNT = 350  # three rounds of them are enough for a p99
REFERENCE = "bare shared memory + ZeroMQ notification"
_P50 = {PLAIN: 1.4, LOOP: 1.3, PYTHON: 1.8}
_CPU = {PLAIN: 1.5, LOOP: 1.5, PYTHON: 2.3}


def ours(way: Way, width_px: int, height_px: int, receivers: int, count: int) -> dict[str, Any]:
    """The same figures as `image_peers.run` gives."""
    size = {"width_px": width_px, "height_px": height_px}
    source = {**size, "receivers": receivers, "count": count}
    nodes: dict[str, dict[str, Any]] = {
        "source": {"use": f"bench.image_nodes:{way.prefix}ImageSource", "params": source}
    }
    for number in range(receivers):
        nodes[f"sink{number}"] = {"use": f"bench.image_nodes:{way.prefix}ImageSink", "params": {"count": count}}
    return run_nodes(nodes, way)


def median_round(ours_us: Sequence[float], reference_us: Sequence[float]) -> tuple[float, float]:
    """Ours and the reference of the round that has the median ratio: both were measured at one speed of the machine."""
    by_ratio = sorted(zip(ours_us, reference_us, strict=True), key=lambda pair: pair[0] / pair[1])
    return by_ratio[len(by_ratio) // 2]


def measure(rounds: int = ROUNDS, *, is_quick: bool = False) -> list[Result]:
    """In turns, round after round; medians. Quick: fewer sizes, ways and images."""
    results = []
    count = COUNT if is_quick else FULL_COUNT
    for name, (width_px, height_px) in SIZES.items():
        for receivers in (1, 4):
            if is_quick and name == "1080p" and receivers == 4:
                continue
            ways = (
                [PLAIN, LOOP] if is_quick and (name, receivers) != ("640x480", 1) else [PLAIN, PYTHON, LOOP, ORDINARY]
            )
            others = image_peers.available() if not is_quick or receivers == 1 else ["shm"]
            all_ways: list[Way | str] = [*ways, *others]
            ages = {way: Ages() for way in all_ways}
            cpu: dict[Way | str, list[float]] = {way: [] for way in all_ways}
            for _ in range(rounds):
                for way in ages:
                    told = (
                        image_peers.run(way, width_px, height_px, receivers, count)
                        if isinstance(way, str)
                        else ours(way, width_px, height_px, receivers, count)
                    )
                    ages[way].add(told["ages_us"])
                    cpu[way].append(told["cpu"])
            peers = [way for way in others if way != "shm"]
            for way in ways:
                words = f"{name} to {receivers}, {way.name}"
                how = f"{image_peers.HZ} Hz, {image_peers.WARM_UP} to warm up, {ages[way].words} of all receivers"
                told_peers = {peer: ages[peer].p50_us for peer in peers} if way is PLAIN else {}
                results.append(
                    Result(
                        f"{words}: p50", "us", ages[way].p50_us, ages["shm"].p50_us, REFERENCE, _P50.get(way),
                        peers=told_peers, how=how,
                    )
                )  # fmt: skip
                mine, bare = ages[way].p99_us, ages["shm"].p99_us
                if mine is not None and bare is not None:
                    results.append(Result(f"{words}: p99", "us", mine, bare, REFERENCE, None, how=how))
                told_peers = {peer: statistics.median(cpu[peer]) for peer in peers} if way is PLAIN else {}
                used, least = median_round(cpu[way], cpu["shm"])
                how = f"the median round of {rounds}, by its ratio"
                results.append(
                    Result(
                        f"{words}: CPU an image", "us", used, least, REFERENCE, _CPU.get(way), peers=told_peers,
                        how=how,
                    )
                )  # fmt: skip
    return results
