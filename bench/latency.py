"""Small messages from node to node, in two processes, against the same bytes over bare pyzmq PUB/SUB.

Plain nodes first, as users write them; control loops beside them, and peers that are installed, in the same run. Events
of plain nodes at the rate of a usual loop besides, on the machine as it is and beside programs that compute.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import tempfile
import time
from typing import Any

from bench import latency_peers
from bench.load_nodes import WARM_UP
from bench.measure import LOOP, ORDINARY, PLAIN, PYTHON, ROUNDS, Ages, Way, busy, run_nodes
from bench.result import Result

COUNT, FULL_COUNT, HZ = 300, 600, 200
EVENTS, EVENTS_HZ = 300, 100
SIZES = {"64 B": 64, "4 KB": 4096}
REFERENCE = "bare pyzmq PUB/SUB, same bytes"

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


def bare_ages_us(size_bytes: int, count: int, hz: int = HZ) -> list[float]:
    """How old the bytes are when a blocking receive returns them, after as many to warm up as ours have."""
    import zmq

    with tempfile.TemporaryDirectory() as folder:
        address = f"ipc://{folder}/bare"
        socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.SUB)
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        socket.connect(address)
        script = _SENDER.format(size=size_bytes, count=WARM_UP + count, hz=hz)
        sender = subprocess.Popen([sys.executable, "-c", script, address])
        ages = []
        for _ in range(WARM_UP + count):
            frame = socket.recv()
            ages.append((time.monotonic_ns() - int.from_bytes(frame[:8], "little")) * 1e-3)
        sender.terminate()
        sender.wait()
        socket.close()
    return ages[WARM_UP:]


def _ours(kind: str, way: Way, size_bytes: int, count: int, hz: int = HZ) -> list[float]:
    prefix = f"{way.prefix}{'State' if kind == 'state' else ''}"
    nodes: dict[str, dict[str, Any]] = {
        "source": {"use": f"bench.load_nodes:{prefix}Source", "params": {"size_bytes": size_bytes}, "hz": {"send": hz}},
        "sink": {"use": f"bench.load_nodes:{prefix}Sink", "params": {"count": count}},
    }
    ages_us: list[float] = run_nodes(nodes, way)["ages_us"]
    return ages_us


def measure(rounds: int = ROUNDS, *, is_quick: bool = False) -> list[Result]:
    """In turns, round after round; medians. Quick: fewer ways and messages."""
    results = []
    count = COUNT if is_quick else FULL_COUNT
    for name, size_bytes in SIZES.items():
        ways = [("state", PLAIN), ("event", PLAIN), ("state", LOOP)]
        if not is_quick:
            ways += [("state", PYTHON), ("state", ORDINARY), ("event", LOOP), ("event", ORDINARY)]
        bare = Ages()
        ours = {way: Ages() for way in ways}
        peers = {way: Ages() for way in latency_peers.available() if not is_quick or size_bytes == SIZES["4 KB"]}
        for number in range(rounds):
            bare.add(bare_ages_us(size_bytes, count))
            for (kind, way), ages in ours.items():
                ages.add(_ours(kind, way, size_bytes, count))
            for peer, ages in peers.items() if number == 0 or not is_quick else ():
                if found := latency_peers.ages_us(peer, size_bytes):
                    ages.add(found)
        told = {peer: ages.p50_us for peer, ages in peers.items() if ages.is_there}
        for (kind, way), ages in ours.items():
            words, how = f"{name} {kind}, {way.name}", f"{HZ} Hz, {WARM_UP} to warm up, {ages.words}"
            goal = 1.15 if (kind, way) == ("state", PLAIN) else None
            beside = told if way is PLAIN else {}
            results.append(
                Result(f"{words}: p50", "us", ages.p50_us, bare.p50_us, REFERENCE, goal, peers=beside, how=how)
            )
            if ages.p99_us is not None and bare.p99_us is not None:
                results.append(Result(f"{words}: p99", "us", ages.p99_us, bare.p99_us, REFERENCE, None, how=how))
        best = ours["state", PLAIN].p50_us
        results += [
            Result(f"{name} state, plain nodes: p50, beside {peer}", "us", best, figure, peer, 1.0)
            for peer, figure in told.items()
        ]
    return [*results, *_events(rounds)]


def _events(rounds: int) -> list[Result]:
    """64 B events of plain nodes at 100 Hz, in turns with the bare reference."""
    results = []
    for load, hogs in (("idle machine", 0), ("busy machine", multiprocessing.cpu_count())):
        ours, bare = Ages(), Ages()
        with busy(hogs):
            for _ in range(rounds):
                bare.add(bare_ages_us(SIZES["64 B"], EVENTS, EVENTS_HZ))
                ours.add(_ours("event", PLAIN, SIZES["64 B"], EVENTS, EVENTS_HZ))
        name, how = f"64 B event, plain nodes, {load}: p50", f"{EVENTS_HZ} Hz, {WARM_UP} to warm up, {ours.words}"
        results.append(Result(name, "us", ours.p50_us, bare.p50_us, REFERENCE, 1.15, how=how))
    return results
