"""64 B messages through typed handlers as fast as they go, against bare pyzmq; neither side may lose one."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from bench.measure import LOOP, ORDINARY, PLAIN, ROUNDS, Way, run_nodes
from bench.result import Result

COUNT, WINDOW, SIZE = 60_000, 2000, 64
NEAR_WINDOW = 64
"""Within a process: as many as the port's queue holds."""
FRAMES = 600
CHECKED_ROUNDS = 7
"""Of a second each. What is measured is a twentieth of the whole, and rounds differ by a hundredth."""

_SENDER = """
import sys, zmq
context = zmq.Context()
out = context.socket(zmq.XPUB)  # a PUB that can be asked whether the subscription has arrived
out.set_hwm(0)
out.bind(sys.argv[1])
credit = context.socket(zmq.PULL)
credit.bind(sys.argv[1] + "-credit")
out.recv()
credit.recv()
body = bytes({size})
for number in range({count}):
    if number % {half} == 0 and number >= {window}:
        credit.recv()
    out.send(body)
credit.recv()
"""


def bare_hz() -> float:
    """Messages a second over PUB/SUB, where the receiver allows a window of so many on their way."""
    import zmq

    half = WINDOW // 2
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
    with tempfile.TemporaryDirectory() as folder:
        address = f"ipc://{folder}/bare"
        script = _SENDER.format(size=SIZE, count=COUNT, window=WINDOW, half=half)
        sender = subprocess.Popen([sys.executable, "-c", script, address])
        socket = context.socket(zmq.SUB)
        socket.set_hwm(0)
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        socket.connect(address)
        credit = context.socket(zmq.PUSH)
        credit.connect(address + "-credit")
        credit.send(b"")
        socket.recv()
        start = time.monotonic()
        for number in range(1, COUNT):
            socket.recv()
            if (number + 1) % half == 0:
                credit.send(b"")
        taken_s = time.monotonic() - start
        sender.wait()
        socket.close()
        credit.close(linger=0)
    return (COUNT - 1) / taken_s


def _ours(way: Way, *, is_at_once: bool) -> dict[str, float]:
    """Messages a second through typed handlers, and how many were lost."""
    size: dict[str, Any] = {"count": COUNT, "window": WINDOW}
    flood = {**size, "size_bytes": SIZE, "is_at_once": is_at_once}
    return run_nodes(
        {
            "flood": {"use": f"bench.load_nodes:{way.prefix}Flood", "params": flood},
            "tally": {"use": f"bench.load_nodes:{way.prefix}Tally", "params": size},
        },
        way,
    )


def _checked() -> dict[str, float]:
    """Messages a second within one process, where the check of the fields weighs most: with it, and past it."""
    size = {"count": COUNT, "window": NEAR_WINDOW // 2, "size_bytes": SIZE}
    return run_nodes(
        {
            "flood": {"use": "bench.load_nodes:UncheckedFlood", "params": size, "process": "one"},
            "tally": {
                "use": "bench.load_nodes:Tally",
                "params": {"count": 2 * COUNT, "window": NEAR_WINDOW},
                "process": "one",
            },
        }
    )


def measure(rounds: int = ROUNDS, *, is_quick: bool = False) -> list[Result]:
    """In turns, round after round; medians. Beside other work control loops with SCHED_FIFO have a core, others not."""
    ways = [(PLAIN, False), (LOOP, False), *([] if is_quick else [(PLAIN, True), (LOOP, True), (ORDINARY, False)])]
    told: dict[tuple[Way, bool], list[dict[str, float]]] = {way: [] for way in ways}
    bare = []
    for _ in range(rounds):
        bare.append(bare_hz())
        for (way, is_at_once), found in told.items():
            found.append(_ours(way, is_at_once=is_at_once))
    reference, how = (
        "bare pyzmq PUB/SUB, same bytes, same window",
        f"{COUNT} messages, {WINDOW} on their way, {rounds} x",
    )
    results = []
    for (way, is_at_once), found in told.items():
        name = f"64 B through typed handlers, {'publish_all' if is_at_once else 'one by one'}, {way.name}"
        hz, goal = statistics.median(one["hz"] for one in found), None if way is ORDINARY else 1 / 3
        results.append(Result(name, "1/s", hz, statistics.median(bare), reference, goal, more_is_better=True, how=how))
        results.append(Result(f"{name}: lost", "messages", max(one["lost"] for one in found), 1, "one message", 0.0))
    checks = [_checked() for _ in range(CHECKED_ROUNDS)]
    results.append(
        Result(
            "64 B within a process, fields checked against their types",
            "1/s",
            statistics.median(one["checked_hz"] for one in checks),
            statistics.median(one["unchecked_hz"] for one in checks),
            "the same, sent past the check",
            0.95,
            more_is_better=True,
            how=f"{COUNT} messages, the two in turns of {NEAR_WINDOW // 2}, {CHECKED_ROUNDS} x",
        )
    )
    film = run_nodes(
        {
            "film": {"use": "bench.load_nodes:Film", "params": {"count": FRAMES}},
            "screen": {"use": "bench.load_nodes:Screen", "params": {"count": FRAMES}},
        }
    )
    name = f"640x480 at full speed, 8 on their way, {PLAIN.name}"
    return [
        *results,
        Result(name, "1/s", film["hz"], 30.0, "a camera's 30", None, more_is_better=True, how=f"{FRAMES} images, once"),
        Result(f"{name}: lost", "images", film["lost"], 1, "one image", 0.0),
    ]
