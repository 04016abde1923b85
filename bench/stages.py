"""Where the time of one message goes: processor microseconds of each stage, in the thread that does it."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import zmq

from bench.load_nodes import Parcel, Sink, Source
from runtime.clock import SystemClock
from runtime.codec import decoder_of, encode_parts
from runtime.fence import FenceLine
from runtime.hosted import HostedNode, Send
from runtime.lane_runner import run_guarded
from runtime.message import Envelope, Stamped
from runtime.node import Node
from runtime.zeromq import Outlet, Reader

BATCH, ROUNDS = 50, 40
_PATIENCE_S = 20.0

Stages = dict[str, float]


def measure(size_bytes: int) -> Stages:
    """By stage, the microseconds for one message of that size; the median of many batches, caches warm."""
    return _raw(size_bytes) | _ours(size_bytes)


def table(sizes_bytes: tuple[int, ...] = (64, 4096)) -> str:
    """The stages as Markdown."""
    columns = [measure(size) for size in sizes_bytes]
    heads = " | ".join(f"{size} B" if size < 1024 else f"{size >> 10} KB" for size in sizes_bytes)
    rows = [f"| {stage} | " + " | ".join(f"{column[stage]:.1f}" for column in columns) + " |" for stage in columns[0]]
    return "\n".join(
        [f"| processor us in the thread that does it | {heads} |", f"|---|{'---:|' * len(columns)}", *rows]
    )


def _timed(stages: dict[str, list[float]], name: str, work: Callable[[], object]) -> None:
    start_ns = time.thread_time_ns()
    work()
    stages.setdefault(name, []).append((time.thread_time_ns() - start_ns) * 1e-3 / BATCH)


def _medians(stages: dict[str, list[float]]) -> Stages:
    return {name: statistics.median(values) for name, values in stages.items()}


def _raw(size_bytes: int) -> Stages:
    """What pyzmq alone takes, over the same kind of connection."""
    stages: dict[str, list[float]] = {}
    body = bytes(size_bytes)
    with (
        tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as folder,
        zmq.Context() as context,
        context.socket(zmq.PUB) as out,
        context.socket(zmq.SUB) as inward,
    ):
        out.bind(f"ipc://{folder}/raw")
        inward.setsockopt(zmq.SUBSCRIBE, b"")
        inward.connect(f"ipc://{folder}/raw")
        while not inward.poll(50):
            out.send(body)  # until the subscription has arrived
        while inward.poll(200):
            inward.recv()
        for _ in range(ROUNDS):
            _timed(stages, "pyzmq alone: send", lambda: [out.send(body) for _ in range(BATCH)])
            inward.poll(int(_PATIENCE_S * 1e3))
            time.sleep(0.005)  # the batch comes in
            _timed(stages, "pyzmq alone: receive", lambda: [inward.recv() for _ in range(BATCH)])
    return _medians(stages)


def _host(node: Node, send: Send) -> HostedNode:
    return HostedNode(
        node, name="bench", clock=SystemClock(), seed=0, send=send, fence=FenceLine(), finish=lambda *_: None
    )


def _ours(size_bytes: int) -> Stages:
    stages: dict[str, list[float]] = {}
    source, sink = Source(size_bytes=size_bytes), Sink(count=10**9)
    sent: list[tuple[Envelope, Parcel]] = []
    sender = _host(source, lambda envelope, message: sent.append((envelope, message)))  # type: ignore[arg-type]
    receiver = _host(sink, lambda envelope, message: None)
    lane, port = receiver.lanes[0], sink.parcel
    assert sender.lanes
    heard: list[Stamped[Parcel]] = []
    documents: list[bytes] = []
    decoder = decoder_of(Parcel)

    def publish() -> None:
        for _ in range(BATCH):
            source.parcel.publish(Parcel(sent_ns=0, body=source.body))

    def handle() -> None:
        for stamped in heard:
            port.push(stamped)
            work = lane.take(0)
            assert work is not None
            run_guarded(receiver, work)

    def hand_over() -> None:
        for envelope, message in sent:
            outlet.publish(envelope, message)

    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        folder = Path(name)
        outlet = Outlet(folder, "a")
        reader = Reader({"parcel": Parcel}, heard.append, lambda *_: None)
        reader.connect(folder, ["a"])
        try:
            _await_connection(outlet, reader, heard)
            for _ in range(ROUNDS):
                sent.clear()
                heard.clear()
                _timed(stages, "build, stamp an envelope, inherit age and cause", publish)
                _timed(stages, "encode", lambda: [encode_parts(*one) for one in sent])
                _timed(stages, "encode and hand to ZeroMQ", hand_over)
                time.sleep(0.005)  # the batch comes in
                _timed(stages, "receive, decode, count gaps", lambda: _drain(reader, heard))
                documents[:] = [encode_parts(*one)[0] for one in sent]
                _timed(stages, "of that, decode", lambda: [decoder.decode("parcel", one) for one in documents])
                _timed(stages, "queue, take, call the handler", handle)
        finally:
            reader.close()
            outlet.close()
    return _medians(stages)


def _await_connection(outlet: Outlet, reader: Reader, heard: list[Stamped[Parcel]]) -> None:
    end = time.monotonic() + _PATIENCE_S
    number = 0
    while not heard and time.monotonic() < end:
        number += 1
        outlet.publish(Envelope("parcel", "first", number, number), Parcel(sent_ns=0, body=b""))
        reader.wait(0.05)
        reader.drain(64)
    while reader.wait(0.2):
        reader.drain(64)


def _drain(reader: Reader, heard: list[Stamped[Parcel]]) -> None:
    end = time.monotonic() + _PATIENCE_S
    while len(heard) < BATCH and time.monotonic() < end:
        if not reader.drain(64):
            reader.wait(0.1)


if __name__ == "__main__":
    print(table())
