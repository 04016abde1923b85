"""Other ways to bring an image from one process to others, each as bare as it can be, for comparison.

`python -m bench.image_peers WAY send|receive PLACE WIDTH HEIGHT COUNT` is one process; `run` starts them and reads
what they print. Receivers do not read the pixels, ours neither.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.peers_python import peers_python, with_peers

HZ = 30
FRAMES = 8
SLOTS = 8
WARM_UP = 40  # images, until each slot that is kept for a second has been touched
_CONNECT_S = 1.0
Send = Callable[[np.ndarray[Any, np.dtype[np.uint8]]], None]


def frames(width_px: int, height_px: int) -> list[np.ndarray[Any, np.dtype[np.uint8]]]:
    """The pictures that are sent in turn: as with a camera, each lies elsewhere and holds other pixels."""
    chance = np.random.default_rng(0)
    return [chance.integers(0, 256, (height_px, width_px, 3), np.uint8) for _ in range(FRAMES)]


def available() -> list[str]:
    """The ways that can be measured here: the reference, and the peers that are installed."""
    return ["shm", *with_peers("iceoryx2", "zenoh")]


def run(way: str, width_px: int, height_px: int, receivers: int, count: int) -> dict[str, Any]:
    """One-way ages in us over all receivers, and the processor time of all processes in us for each image."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        arguments = [f"{folder}/place", str(width_px), str(height_px), str(count)]
        python = sys.executable if way == "shm" else peers_python()
        command = [python, "-m", "bench.image_peers", way]
        sinks = [
            subprocess.Popen([*command, "receive", *arguments], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
            for _ in range(receivers)
        ]
        for sink in sinks:
            assert sink.stdout is not None
            sink.stdout.readline()  # it listens
        sender = subprocess.run([*command, "send", *arguments], stdout=subprocess.PIPE, check=True)
        told = [json.loads(sender.stdout), *(json.loads(sink.communicate(timeout=60)[0]) for sink in sinks)]
    return {
        "ages_us": [age_us for one in told for age_us in one["ages_us"]],
        "cpu": sum(one["cpu_us"] for one in told),
    }


def _shm_sender(place: str, size: int) -> Send:
    import zmq

    memory = _memory(place, size, is_writer=True)
    slots = [np.frombuffer(memory, np.uint8, size, slot * size) for slot in range(SLOTS)]
    socket = zmq.Context().socket(zmq.PUB)
    socket.bind(f"ipc://{place}.socket")
    time.sleep(_CONNECT_S)
    state = {"slot": 0}

    def send(image: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        stamp_ns = time.monotonic_ns()
        slot = state["slot"] = (state["slot"] + 1) % SLOTS
        slots[slot][:] = image
        socket.send(slot.to_bytes(8, "little") + stamp_ns.to_bytes(8, "little"))

    return send


def _shm_ages(place: str, size: int, shape: tuple[int, int, int]) -> Iterator[float]:
    import zmq

    memory = _memory(place, size, is_writer=False)
    socket = zmq.Context().socket(zmq.SUB)
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.connect(f"ipc://{place}.socket")
    while True:
        note = socket.recv()
        image = np.frombuffer(memory, np.uint8, size, int.from_bytes(note[:8], "little") * size).reshape(shape)
        assert image.shape == shape
        yield (time.monotonic_ns() - int.from_bytes(note[8:], "little")) * 1e-3


def _memory(place: str, size: int, *, is_writer: bool) -> mmap.mmap:
    with Path(place).open("a+b") as file:
        file.truncate(size * SLOTS)
        return mmap.mmap(file.fileno(), size * SLOTS, prot=mmap.PROT_READ | (mmap.PROT_WRITE if is_writer else 0))


def _iceoryx2_service(place: str) -> tuple[Any, Any, Any]:
    import iceoryx2 as iox

    iox.set_log_level(iox.LogLevel.Error)
    node = iox.NodeBuilder.new().create(iox.ServiceType.Ipc)
    name = place.replace("/", "_")
    service = (
        node.service_builder(iox.ServiceName.new(name))
        .publish_subscribe(iox.Slice[ctypes.c_uint8])
        .max_subscribers(8)
        .open_or_create()
    )
    event = node.service_builder(iox.ServiceName.new(name)).event().open_or_create()
    return node, service, event


def _iceoryx2_sender(place: str, size: int) -> Send:
    kept = _iceoryx2_service(place)
    _, service, event = kept
    publisher = service.publisher_builder().initial_max_slice_len(size + 8).create()
    notifier = event.notifier_builder().create()
    time.sleep(_CONNECT_S)

    def send(image: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        stamp_ns = time.monotonic_ns()
        sample = publisher.loan_slice_uninit(size + 8)
        address = sample.payload_ptr
        ctypes.memmove(address, stamp_ns.to_bytes(8, "little"), 8)
        ctypes.memmove(address + 8, image.ctypes.data, size)
        sample.assume_init().send()
        notifier.notify()
        assert kept

    return send


def _iceoryx2_ages(place: str, size: int, shape: tuple[int, int, int]) -> Iterator[float]:
    kept = _iceoryx2_service(place)
    _, service, event = kept
    subscriber = service.subscriber_builder().create()
    listener = event.listener_builder().create()
    while True:
        listener.blocking_wait()
        while (sample := subscriber.receive()) is not None:
            address = sample.payload_ptr
            stamp_ns = ctypes.c_int64.from_address(address).value
            image = np.frombuffer(memoryview((ctypes.c_uint8 * size).from_address(address + 8)), np.uint8).reshape(
                shape
            )
            assert image.shape == shape
            yield (time.monotonic_ns() - stamp_ns) * 1e-3


def _zenoh_session(place: str, *, listens: bool) -> Any:
    import zenoh

    config = zenoh.Config()
    address = json.dumps([f"unixsock-stream/{place}.zenoh"])
    for key, value in {
        "mode": '"peer"',
        "scouting/multicast/enabled": "false",
        "listen/endpoints": address if listens else "[]",
        "connect/endpoints": "[]" if listens else address,
    }.items():
        config.insert_json5(key, value)
    return zenoh.open(config)


def _zenoh_sender(place: str, size: int) -> Send:
    session = _zenoh_session(place, listens=True)
    publisher = session.declare_publisher("bench/image")
    time.sleep(2 * _CONNECT_S)  # until the receivers are there

    def send(image: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        assert session
        publisher.put(time.monotonic_ns().to_bytes(8, "little") + image.tobytes())

    return send


def _zenoh_ages(place: str, size: int, shape: tuple[int, int, int]) -> Iterator[float]:
    while not Path(f"{place}.zenoh").exists():
        time.sleep(0.01)
    with _zenoh_session(place, listens=False) as session:
        subscriber = session.declare_subscriber("bench/image")
        while True:
            data = subscriber.recv().payload.to_bytes()
            image = np.frombuffer(data, np.uint8, size, 8).reshape(shape)
            assert image.shape == shape
            yield (time.monotonic_ns() - int.from_bytes(data[:8], "little")) * 1e-3


_SENDERS: dict[str, Callable[[str, int], Send]] = {
    "shm": _shm_sender,
    "iceoryx2": _iceoryx2_sender,
    "zenoh": _zenoh_sender,
}
_RECEIVERS: dict[str, Callable[[str, int, tuple[int, int, int]], Iterator[float]]] = {
    "shm": _shm_ages,
    "iceoryx2": _iceoryx2_ages,
    "zenoh": _zenoh_ages,
}


def main() -> None:
    """One process: send at HZ, or receive and print what was measured."""
    way, part, place, *numbers = sys.argv[1:]
    width_px, height_px, count = map(int, numbers)
    size = width_px * height_px * 3
    ages_us: list[float] = []
    before_s = 0.0
    if part == "send":
        pictures = [picture.reshape(-1) for picture in frames(width_px, height_px)]
        send = _SENDERS[way](place, size)
        start = time.monotonic()
        for number in range(WARM_UP + count):
            if number == WARM_UP:
                before_s = time.process_time()
            time.sleep(max(0.0, start + number / HZ - time.monotonic()))
            send(pictures[number % FRAMES])
    else:
        ages = _RECEIVERS[way](place, size, (height_px, width_px, 3))
        print("listens", flush=True)
        for number, age_us in enumerate(ages, start=1):
            if number == WARM_UP:
                before_s = time.process_time()
            elif number > WARM_UP:
                ages_us.append(age_us)
            if number >= WARM_UP + count - 5:
                break
    measured = count if part == "send" else len(ages_us)
    cpu_us = (time.process_time() - before_s) * 1e6 / measured
    print(json.dumps({"ages_us": ages_us, "cpu_us": cpu_us}), flush=True)


if __name__ == "__main__":
    main()
