"""Where the time of one message goes: processor microseconds of each stage, in the thread that does it."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import zmq

from bench.load_nodes import Parcel, Sink, Source
from runtime.clock import SystemClock
from runtime.coordination.fence import PreemptionEpochs
from runtime.execution.bound_node import BoundNode, NodeOutput
from runtime.execution.runners import run_guarded
from runtime.message import Envelope, Stamped
from runtime.node import Node
from runtime.serialization.codec import decoder_of, encode_parts
from runtime.transport.zeromq import PublisherSockets, Reader

ROUNDS = 40
_PATIENCE_S = 20.0


class Way(NamedTuple):
    """How messages come: their size, how many at a time, and after which rest of the thread."""

    name: str
    size_bytes: int
    batch: int = 50
    rest_s: float = 0.0


WAYS = (
    Way("64 B, 50 at a time", 64),
    Way("4 KB, 50 at a time", 4096),
    Way("4 KB, one after 33 ms of rest", 4096, batch=1, rest_s=0.033),
)


class Stages:
    """The processor time of each stage, for one message, round by round."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._found_us: dict[str, list[float]] = {}

    def time(self, name: str, work: Callable[[], object]) -> None:
        """Do the work of one batch, and note what it took."""
        if self._way.rest_s:
            time.sleep(self._way.rest_s)
        start_ns = time.thread_time_ns()
        work()
        self._found_us.setdefault(name, []).append((time.thread_time_ns() - start_ns) * 1e-3 / self._way.batch)

    def medians_us(self) -> dict[str, float]:
        """By stage, in the order in which they were first timed."""
        return {name: statistics.median(values) for name, values in self._found_us.items()}


def measure(way: Way) -> dict[str, float]:
    """By stage, the microseconds for one message; the median of many rounds."""
    stages = Stages(way)
    _raw(way, stages)
    _ours(way, stages)
    return stages.medians_us()


def table(ways: Sequence[Way] = WAYS) -> str:
    """The stages as Markdown."""
    columns = [measure(way) for way in ways]
    heads = " | ".join(way.name for way in ways)
    rows = [f"| {stage} | " + " | ".join(f"{column[stage]:.1f}" for column in columns) + " |" for stage in columns[0]]
    return "\n".join(
        [f"| processor us in the thread that does it | {heads} |", f"|---|{'---:|' * len(columns)}", *rows]
    )


def _raw(way: Way, stages: Stages) -> None:
    """What pyzmq alone takes, over the same kind of connection."""
    body = bytes(way.size_bytes)
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
            stages.time("pyzmq alone: send", lambda: [out.send(body) for _ in range(way.batch)])
            inward.poll(int(_PATIENCE_S * 1e3))
            time.sleep(0.005)  # the batch comes in
            stages.time("pyzmq alone: receive", lambda: [inward.recv() for _ in range(way.batch)])


class Kept(NodeOutput):
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[Envelope, Any]] = []

    def send(self, envelope: Envelope, message: Any) -> None:
        self.sent.append((envelope, message))


def _bound(node: Node, output: NodeOutput) -> BoundNode:
    return BoundNode(node, name="bench", clock=SystemClock(), seed=0, output=output, fence=PreemptionEpochs())


def _ours(way: Way, stages: Stages) -> None:
    source, sink = Source(size_bytes=way.size_bytes), Sink(count=10**9)
    kept = Kept()
    sent: list[tuple[Envelope, Parcel]] = kept.sent
    sender, receiver = _bound(source, kept), _bound(sink, Kept())
    lane, port = receiver.lanes[0], sink.parcel
    assert sender.lanes
    heard: list[Stamped[Parcel]] = []
    documents: list[bytes] = []
    decoder = decoder_of(Parcel)

    def publish() -> None:
        for _ in range(way.batch):
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
        outlet = PublisherSockets(folder, "a")
        reader = Reader({"parcel": Parcel}, heard.append, lambda *_: None)
        reader.connect(folder, ["a"])
        try:
            _await_connection(outlet, reader, heard)
            for _ in range(ROUNDS):
                sent.clear()
                heard.clear()
                stages.time("build, stamp an envelope, inherit age and cause", publish)
                stages.time("encode", lambda: [encode_parts(*one) for one in sent])
                stages.time("encode and hand to ZeroMQ", hand_over)
                time.sleep(0.005)  # the batch comes in
                stages.time("receive, decode, count gaps", lambda: _drain(reader, heard, way.batch))
                documents[:] = [encode_parts(*one)[0] for one in sent]
                stages.time("of that, decode", lambda: [decoder.decode("parcel", one) for one in documents])
                stages.time("queue, take, call the handler", handle)
        finally:
            reader.close()
            outlet.close()


def _await_connection(outlet: PublisherSockets, reader: Reader, heard: list[Stamped[Parcel]]) -> None:
    end = time.monotonic() + _PATIENCE_S
    number = 0
    while not heard and time.monotonic() < end:
        number += 1
        outlet.publish(Envelope("parcel", "first", number, number), Parcel(sent_ns=0, body=b""))
        reader.wait(0.05)
        reader.poll(64)
    while reader.wait(0.2):
        reader.poll(64)


def _drain(reader: Reader, heard: list[Stamped[Parcel]], number: int) -> None:
    end = time.monotonic() + _PATIENCE_S
    while len(heard) < number and time.monotonic() < end:
        if not reader.poll(64):
            reader.wait(0.1)


if __name__ == "__main__":
    print(table())
