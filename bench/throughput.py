"""64 B messages through typed handlers as fast as they go, against bare pyzmq; neither side may lose one."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from typing import Any

from bench.measure import run_nodes
from bench.result import Result

COUNT, WINDOW, SIZE = 60_000, 2000, 64

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


def _ours(*, is_at_once: bool) -> dict[str, float]:
    """Messages a second through typed handlers, and how many were lost."""
    size: dict[str, Any] = {"count": COUNT, "window": WINDOW}
    flood = {**size, "size_bytes": SIZE, "is_at_once": is_at_once}
    return run_nodes(
        {
            "flood": {"use": "bench.load_nodes:Flood", "params": flood},
            "tally": {"use": "bench.load_nodes:Tally", "params": size},
        }
    )


def measure(rounds: int = 3) -> list[Result]:
    """Interleaved rounds; the best of each."""
    one_by_one: list[float] = []
    at_once: list[float] = []
    bare, lost = [], 0.0
    for _ in range(rounds):
        bare.append(bare_hz())
        for found, figures in ((one_by_one, _ours(is_at_once=False)), (at_once, _ours(is_at_once=True))):
            found.append(figures["hz"])
            lost += figures["lost"]
    reference = "bare pyzmq PUB/SUB, same bytes, same window"
    name = "64 B through typed handlers"
    return [
        Result(f"{name}, publish_all", "1/s", max(at_once), max(bare), reference, 1 / 3, more_is_better=True),
        Result(f"{name}, publish one by one", "1/s", max(one_by_one), max(bare), reference, 1 / 3, more_is_better=True),
        Result(f"{name}, lost", "messages", lost, 1, "one message", 0.0),
    ]
