"""Other middleware that brings 4 KB from one Python process to another, each used as its own documents show it.

`python -m bench.latency_peers WAY send|receive PLACE` is one process of a peer; `ages_us` starts them. A peer that is
not installed is not measured: `pip install eclipse-zenoh dora-rs dora-rs-cli`. aact is in `latency_aact`.
"""

from __future__ import annotations

import importlib.util
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
from tests.support.ports import free_ports

COUNT, WARM_UP, HZ, SIZE = 300, 50, 200, 4096
SPARE = 50  # sent beside those that are waited for: a peer may lose some
_STARTS_S = 1.0
_LONGEST_S = 60.0
ROOT = Path(__file__).resolve().parent.parent


def available() -> list[str]:
    """The peers that can be measured here."""
    found = {
        "zenoh": importlib.util.find_spec("zenoh"),
        "dora": importlib.util.find_spec("dora") and _dora(),
        "aact": latency_aact.is_available(),
    }
    return [way for way, is_there in found.items() if is_there]


def ages_us(way: str) -> list[float]:
    """How old the messages are when the receiver has them in its hands; none where the peer failed, which is told."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return {"zenoh": _by_zenoh, "dora": _by_dora, "aact": latency_aact.ages_us}[way](Path(folder))
        except (OSError, subprocess.SubprocessError) as problem:
            print(f"{way} gave no figure: {problem}", file=sys.stderr)
            return []


def _stamps() -> Iterator[bytes]:
    """The messages, in time; the first 8 bytes of each say when it was sent."""
    body = bytes(SIZE)
    start = time.monotonic()
    for number in range(COUNT + WARM_UP + SPARE):
        time.sleep(max(0.0, start + number / HZ - time.monotonic()))
        yield time.monotonic_ns().to_bytes(8, "little") + body


def _age_us(data: bytes, now_ns: int) -> float:
    return (now_ns - int.from_bytes(data[:8], "little")) * 1e-3


def _tell(path: str, ages: list[float]) -> None:
    Path(path).write_text(json.dumps(ages[WARM_UP:]))


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "bench.latency_peers", *arguments]


# zenoh: two peers, one of which listens


def _by_zenoh(folder: Path) -> list[float]:
    place = f"{folder}/ages {free_ports(1)}"
    with subprocess.Popen(_command("zenoh", "receive", place), cwd=ROOT, stdout=subprocess.PIPE) as receiver:
        try:
            assert receiver.stdout is not None
            receiver.stdout.readline()  # it listens
            subprocess.run(_command("zenoh", "send", place), cwd=ROOT, check=True, timeout=_LONGEST_S)
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
        for data in _stamps():
            publisher.put(data)


def _zenoh_receive(place: str) -> None:
    path, port = place.split()
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
    beside = Path(sys.executable).with_name("dora")
    return str(beside) if beside.exists() else shutil.which("dora")


def _by_dora(folder: Path) -> list[float]:
    def node(name: str, verb: str, rest: dict[str, Any]) -> dict[str, Any]:
        arguments = f"-m bench.latency_peers dora {verb} {folder}/ages"
        return {"id": name, "path": sys.executable, "args": arguments, "env": {"PYTHONPATH": str(ROOT)}, **rest}

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
    for data in _stamps():
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
    _tell(place, ages)


_PARTS: dict[tuple[str, str], Callable[[str], None]] = {
    ("zenoh", "send"): _zenoh_send,
    ("zenoh", "receive"): _zenoh_receive,
    ("dora", "send"): _dora_send,
    ("dora", "receive"): _dora_receive,
}


if __name__ == "__main__":
    _PARTS[sys.argv[1], sys.argv[2]](sys.argv[3])
