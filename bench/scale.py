"""How a run grows: with its nodes, each in a process of its own, with its topics, and with who hears an image.

All that a run uses counts: the supervisor and, where there is one, the recorder. A message is one that was published
and handled.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench import image_peers, images
from bench.measure import PLAIN
from bench.process_tree import descendants, usage
from bench.result import Result

HZ = 10
_ROOT = Path(__file__).resolve().parent.parent
_READY_S = 120.0


class Run(NamedTuple):
    """What a run of so many nodes took."""

    start_s: float
    cpu_us: float  # for each message
    pss_mb: float  # of each process
    threads: float  # of each process


def ring(number: int) -> str:
    """A launch file of nodes of which each hears the one before."""
    tables = []
    for index in range(number):
        topics = f'{{ own = "m{index}", other = "m{(index - 1) % number}" }}'
        tables.append(f'[nodes.n{index}]\nuse = "bench.scale_nodes:Member"\nremap = {topics}\n')
    return "\n".join(tables)


def wide(number: int) -> str:
    """A launch file of nodes with a hundred topics each."""
    tables = []
    for index in range(number):
        renamed = ", ".join(f'mark_{topic} = "w{index}/mark_{topic}"' for topic in range(100))
        tables.append(f'[nodes.w{index}]\nuse = "bench.scale_nodes:Wide"\nremap = {{ {renamed} }}\n')
    return "\n".join(tables)


def run(text: str, messages_hz: float, seconds: float, *, is_recorded: bool = False) -> Run:
    """Run a launch file, and look at what it uses once all processes run. Raises RuntimeError where they do not."""
    with tempfile.TemporaryDirectory() as folder:
        if is_recorded:
            text += '\n[nodes.recorder]\nuse = "nodes.recording.recorder:Recorder"\n'
            text += f'params = {{ path = "{folder}/a.mcap" }}\n'
        file = Path(folder) / "scale.toml"
        file.write_text(text)
        began_s = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "runtime", "run", str(file)], cwd=_ROOT, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(_ROOT)},
        )  # fmt: skip
        try:
            assert process.stdout is not None
            wanted = text.count("[nodes.")
            for line in process.stdout:
                wanted -= line.rstrip().endswith("running")
                if not wanted or time.monotonic() - began_s > _READY_S:
                    break
            start_s = time.monotonic() - began_s
            if wanted:
                raise RuntimeError(f"{wanted} processes did not run within {_READY_S:g} s")
            time.sleep(1.0)
            pids = [process.pid, *descendants(process.pid)]
            before, before_s = usage(pids), time.monotonic()
            time.sleep(seconds)
            after, after_s = usage(pids), time.monotonic()
        finally:
            process.terminate()
            process.communicate()
    messages = messages_hz * (after_s - before_s)
    return Run(
        start_s,
        (after.cpu_s - before.cpu_s) * 1e6 / messages,
        after.pss_mb / after.processes,
        after.threads / after.processes,
    )


def measure(*, is_quick: bool = False) -> list[Result]:
    """Each size once; the smallest is the reference."""
    results: list[Result] = []
    seconds = 4.0 if is_quick else 10.0
    found = {number: run(ring(number), number * HZ, seconds) for number in ((10, 30) if is_quick else (10, 30, 100))}
    least = found[10]
    for number, figures in found.items():
        name, reference, how = f"{number} nodes of a topic each", "10 nodes", f"{HZ} Hz each, {seconds:g} s, once"
        goal = 1.5 if number == 100 else None
        results += [
            Result(f"{name}: CPU a message", "us", figures.cpu_us, least.cpu_us, reference, goal, how=how),
            Result(f"{name}: start", "s", figures.start_s, least.start_s, reference, None),
            Result(f"{name}: memory of a process", "MB", figures.pss_mb, least.pss_mb, reference, None),
            Result(f"{name}: threads of a process", "", figures.threads, 5.0, "5", 1.0),
        ]
    if is_quick:
        return results
    recorded = run(ring(30), 30 * HZ, seconds, is_recorded=True)
    results.append(
        Result("30 nodes and a recorder: CPU a message", "us", recorded.cpu_us, found[30].cpu_us, "without it", None)
    )
    topics = {number: run(wide(number), number * 100, seconds) for number in (1, 10)}
    results += [
        Result(
            "1,000 topics: CPU a message", "us", topics[10].cpu_us, topics[1].cpu_us, "100 topics", None,
            how="10 nodes of 100 topics at 1 Hz; nobody hears them",
        ),
        Result("1,000 topics: start", "s", topics[10].start_s, topics[1].start_s, "100 topics", None),
    ]  # fmt: skip
    for receivers in (1, 2, 4, 8, 16):
        told: dict[str, Any] = images.ours(PLAIN, 640, 480, receivers, images.COUNT)
        bare = image_peers.run("shm", 640, 480, receivers, images.COUNT)
        how = f"{image_peers.HZ} Hz, {image_peers.WARM_UP} to warm up, {images.COUNT} images, once"
        name = f"640x480 to {receivers} plain nodes: CPU an image"
        results.append(Result(name, "us", told["cpu"], bare["cpu"], images.REFERENCE, None, how=how))
    return results
