"""Other middleware that brings 4 KB from one Python process to another, each used as its own documents show it.

`python -m bench.latency_peers WAY send|receive PLACE` is one process of a peer; `ages_us` starts them. A peer that is
not installed is not measured: `make bench FULL=1` installs them into .peers. aact is in `latency_aact`.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench import latency_aact
from bench.peers_python import free_port, peers_python, with_peers

COUNT, WARM_UP, HZ, SIZE = 300, 50, 200, 4096
SPARE = 50  # sent beside those that are waited for: a peer may lose some
_STARTS_S = 1.0
_LONGEST_S = 60.0
ROOT = Path(__file__).resolve().parent.parent


def available() -> list[str]:
    """The peers that can be measured here."""
    found = dict.fromkeys(with_peers("iceoryx2", "zenoh", "dora", "lcm"), True)
    return [
        way
        for way in ("iceoryx2", "zenoh", "dora", "lcm", "aact")
        if (latency_aact.is_available() if way == "aact" else found.get(way, False) and (way != "dora" or _dora()))
    ]


def ages_us(way: str, size_bytes: int = SIZE) -> list[float]:
    """How old the messages are when the receiver has them in its hands; none where the peer failed, which is told."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            if way == "aact":
                return latency_aact.ages_us(Path(folder), size_bytes)
            if way == "dora":
                return _by_dora(Path(folder), size_bytes)
            return _by_two(way, Path(folder), size_bytes)
        except (OSError, subprocess.SubprocessError) as problem:
            print(f"{way} gave no figure: {problem}", file=sys.stderr)
            return []


def _stamps(size_bytes: int) -> Iterator[bytes]:
    """The messages, in time; the first 8 bytes of each say when it was sent."""
    body = bytes(size_bytes)
    start = time.monotonic()
    for number in range(COUNT + WARM_UP + SPARE):
        time.sleep(max(0.0, start + number / HZ - time.monotonic()))
        yield time.monotonic_ns().to_bytes(8, "little") + body


def _age_us(data: bytes, now_ns: int) -> float:
    return (now_ns - int.from_bytes(data[:8], "little")) * 1e-3


def _tell(path: str, ages: list[float]) -> None:
    Path(path).write_text(json.dumps(ages[WARM_UP:]))


def _command(*arguments: str) -> list[str]:
    return [peers_python(), "-m", "bench.latency_peers", *arguments]


# zenoh: two peers, one of which listens


def _by_two(way: str, folder: Path, size_bytes: int) -> list[float]:
    """One process that listens, and one that sends."""
    place = f"{folder}/ages {free_port()} {size_bytes}"
    with subprocess.Popen(_command(way, "receive", place), cwd=ROOT, stdout=subprocess.PIPE) as receiver:
        try:
            assert receiver.stdout is not None
            receiver.stdout.readline()  # it listens
            subprocess.run(_command(way, "send", place), cwd=ROOT, check=True, timeout=_LONGEST_S)
            receiver.wait(timeout=_STARTS_S)
        finally:
            receiver.kill()
    return list(json.loads(Path(folder, "ages").read_text()))


def _zenoh_session(port: str, *, listens: bool) -> Any:
    import zenoh

    config = zenoh.Config()
    address = json.dumps([f"tcp/127.0.0.1:{port}"])
    for key, value in {
        "mode": '"peer"',
        "scouting/multicast/enabled": "false",
        "listen/endpoints": address if listens else "[]",
        "connect/endpoints": "[]" if listens else address,
    }.items():
        config.insert_json5(key, value)
    return zenoh.open(config)


def _zenoh_send(place: str) -> None:
    import zenoh

    with _zenoh_session(place.split()[1], listens=False) as session:
        block = zenoh.CongestionControl.BLOCK
        publisher = session.declare_publisher("bench/ages", express=True, congestion_control=block)
        time.sleep(_STARTS_S)  # until each knows of the other
        for data in _stamps(int(place.split()[2])):
            publisher.put(data)


def _zenoh_receive(place: str) -> None:
    path, port, _ = place.split()
    with _zenoh_session(port, listens=True) as session:
        subscriber = session.declare_subscriber("bench/ages")
        print("listening", flush=True)
        ages = []
        for _ in range(COUNT + WARM_UP):
            data = subscriber.recv().payload.to_bytes()
            ages.append(_age_us(data, time.monotonic_ns()))
    _tell(path, ages)


# dora: a dataflow of two nodes


def _dora() -> str | None:
    beside = Path(peers_python()).with_name("dora")
    return str(beside) if beside.exists() else shutil.which("dora")


def _by_dora(folder: Path, size_bytes: int) -> list[float]:
    def node(name: str, verb: str, rest: dict[str, Any]) -> dict[str, Any]:
        arguments = f"-m bench.latency_peers dora {verb} {folder}/ages,0,{size_bytes}"
        return {"id": name, "path": peers_python(), "args": arguments, "env": {"PYTHONPATH": str(ROOT)}, **rest}

    flow = [
        node("source", "send", {"outputs": ["data"]}),
        node("sink", "receive", {"inputs": {"data": {"source": "source/data", "queue_size": COUNT + WARM_UP}}}),
    ]
    file = folder / "flow.yml"  # YAML, of which JSON is a part
    file.write_text(json.dumps({"nodes": flow}))
    dora = _dora()
    assert dora is not None
    subprocess.run([dora, "run", str(file)], cwd=folder, check=True, timeout=_LONGEST_S, capture_output=True)
    return list(json.loads(Path(folder, "ages").read_text()))


def _dora_send(place: str) -> None:
    import pyarrow as arrow
    from dora import Node

    node = Node()
    time.sleep(_STARTS_S)
    for data in _stamps(int(place.split()[2])):
        node.send_output("data", arrow.array([data], type=arrow.binary()))


def _dora_receive(place: str) -> None:
    from dora import Node

    ages: list[float] = []
    for event in Node():
        if event["type"] == "INPUT":
            data = event["value"][0].as_buffer().to_pybytes()
            ages.append(_age_us(data, time.monotonic_ns()))
        if len(ages) == COUNT + WARM_UP:
            break
    _tell(place.split()[0], ages)


# lcm: multicast on this host; its library has no other way


def _lcm_send(place: str) -> None:
    import lcm

    bus = lcm.LCM("udpm://239.255.76.67:7667?ttl=0")
    time.sleep(_STARTS_S)
    for data in _stamps(int(place.split()[2])):
        bus.publish("ages", data)


def _lcm_receive(place: str) -> None:
    import lcm

    bus, ages = lcm.LCM("udpm://239.255.76.67:7667?ttl=0"), list[float]()
    bus.subscribe("ages", lambda channel, data: ages.append(_age_us(data, time.monotonic_ns())))
    print("listening", flush=True)
    while len(ages) < COUNT + WARM_UP:
        bus.handle()
    _tell(place.split()[0], ages)


# iceoryx2: a publisher, and an event that wakes the subscriber


def _iceoryx2_service(place: str) -> tuple[Any, Any, Any]:
    import iceoryx2 as iox

    iox.set_log_level(iox.LogLevel.Error)
    node, name = iox.NodeBuilder.new().create(iox.ServiceType.Ipc), place.split()[0].replace("/", "_")
    builder = node.service_builder(iox.ServiceName.new(name)).publish_subscribe(iox.Slice[ctypes.c_uint8])
    return node, builder.open_or_create(), node.service_builder(iox.ServiceName.new(name)).event().open_or_create()


def _iceoryx2_send(place: str) -> None:
    kept = _iceoryx2_service(place)
    publisher = kept[1].publisher_builder().initial_max_slice_len(int(place.split()[2]) + 8).create()
    notifier = kept[2].notifier_builder().create()
    time.sleep(_STARTS_S)
    for data in _stamps(int(place.split()[2])):
        sample = publisher.loan_slice_uninit(len(data))
        ctypes.memmove(sample.payload_ptr, data, len(data))
        sample.assume_init().send()
        notifier.notify()


def _iceoryx2_receive(place: str) -> None:
    kept = _iceoryx2_service(place)
    subscriber, listener = kept[1].subscriber_builder().create(), kept[2].listener_builder().create()
    print("listening", flush=True)
    ages: list[float] = []
    size = int(place.split()[2]) + 8
    while len(ages) < COUNT + WARM_UP:
        listener.blocking_wait()
        while (sample := subscriber.receive()) is not None:
            data = ctypes.string_at(sample.payload_ptr, size)
            ages.append(_age_us(data, time.monotonic_ns()))
    _tell(place.split()[0], ages[: COUNT + WARM_UP])


_PARTS: dict[tuple[str, str], Callable[[str], None]] = {
    ("zenoh", "send"): _zenoh_send,
    ("zenoh", "receive"): _zenoh_receive,
    ("dora", "send"): _dora_send,
    ("dora", "receive"): _dora_receive,
    ("lcm", "send"): _lcm_send,
    ("lcm", "receive"): _lcm_receive,
    ("iceoryx2", "send"): _iceoryx2_send,
    ("iceoryx2", "receive"): _iceoryx2_receive,
}


if __name__ == "__main__":
    _PARTS[sys.argv[1], sys.argv[2]](sys.argv[3].replace(",", " "))
