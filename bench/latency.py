"""A 4 KB message from node to node, in two processes, against the same bytes over bare pyzmq PUB/SUB.

Peers that are installed (zenoh, dora, aact) are measured beside them, in the same rounds.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from typing import Any

from bench import latency_peers
from bench.measure import run_nodes
from bench.result import Result, percentile

COUNT, HZ, SIZE = 300, 200, 4096

_SENDER = """
import struct, sys, time, zmq
socket = zmq.Context().socket(zmq.XPUB)  # a PUB that can be asked whether the subscription has arrived
socket.bind(sys.argv[1])
socket.recv()
body = bytes({size})
start = time.monotonic()
for number in range({count} + 100):
    time.sleep(max(0, start + number / {hz} - time.monotonic()))
    socket.send(struct.pack("<q", time.monotonic_ns()) + body)
"""


def bare_ages_us() -> list[float]:
    """How old the bytes are when a blocking receive returns them."""
    import zmq

    with tempfile.TemporaryDirectory() as folder:
        address = f"ipc://{folder}/bare"
        socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.SUB)
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        socket.connect(address)
        script = _SENDER.format(size=SIZE, count=COUNT, hz=HZ)
        sender = subprocess.Popen([sys.executable, "-c", script, address])
        ages = []
        for _ in range(COUNT):
            frame = socket.recv()
            ages.append((time.monotonic_ns() - int.from_bytes(frame[:8], "little")) * 1e-3)
        sender.terminate()
        sender.wait()
        socket.close()
    return ages


def measure(rounds: int = 2) -> list[Result]:
    """Interleaved rounds; the best of each, which other load on the machine disturbed least."""
    ours, bare = [], []
    peers: dict[str, list[float]] = {way: [] for way in latency_peers.available()}
    nodes: dict[str, dict[str, Any]] = {
        "source": {"use": "bench.load_nodes:Source", "params": {"size_bytes": SIZE}},
        "sink": {"use": "bench.load_nodes:Sink", "params": {"count": COUNT}},
    }
    for _ in range(rounds):
        bare.append(percentile(bare_ages_us(), 50))
        ours.append(percentile(run_nodes(nodes)["ages_us"], 50))
        for way, found in peers.items():
            if ages := latency_peers.ages_us(way):
                found.append(percentile(ages, 50))
    name, best = "4 KB node to node, p50", min(ours)
    return [
        Result(name, "us", best, min(bare), "bare pyzmq PUB/SUB, same bytes", 2.0),
        *(Result(f"{name}, beside {way}", "us", best, min(found), way, 1.0) for way, found in peers.items() if found),
    ]
