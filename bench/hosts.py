"""Ages and bandwidth over a bad link: 20 Mbit/s, 2 % of segments lost, 20 ms each way; with and without images.

Two gateways over CURVE with a relay between them: a 640x480 camera at 15 fps one way, commands at 20 Hz the other way
and robot states at 50 Hz beside the images.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import zmq
from msgspec.structs import replace

from bench.result import Result, percentile
from bridges.gateway_images import JpegImages
from nodes.hosts.admission import Traffic
from nodes.hosts.gateway import Gateway
from nodes.hosts.sockets import Doors
from nodes.msgs import Image, JointCommand, RobotState
from runtime.clock import SystemClock, to_ns
from runtime.hosts.hosts_table import Host, HostPair
from runtime.message import Envelope, Message, Stamped
from tests.support.ports import free_ports

ROOT = Path(__file__).resolve().parent.parent
MBIT, LOSS, DELAY_S = 20.0, 0.02, 0.02
FOR_S, WARM_UP_S = 8.0, 3.0
ZERO = (0.0,) * 8
IMAGE, STATE, COMMAND = "head/image", "robot/state", "command"


class Stream:
    """One topic: what was sent when, and what was how old when it came."""

    def __init__(self) -> None:
        self.sent_ns: dict[int, int] = {}
        self.ages_ms: list[float] = []


def measure() -> list[Result]:
    """Ages in ms; megabits per second."""
    logging.getLogger().addHandler(logging.NullHandler())  # the gateways' words are for people
    alone, _, _ = _run(with_images=False)
    beside, images, mbit = _run(with_images=True)
    link = f"{MBIT:g} Mbit/s, {LOSS:.0%} loss, {DELAY_S * 1e3:g} ms"
    return [
        Result(
            "hosts: age of commands beside images, p99",
            "ms",
            percentile(beside.ages_ms, 99),
            percentile(alone.ages_ms, 99),
            f"the same without images; {link}",
            goal=1.2,
            allowance=30.0,
        ),
        Result("hosts: age of images, p50", "ms", percentile(images.ages_ms, 50), DELAY_S * 1e3, "delay alone", None),
        Result("hosts: age of images, p99", "ms", percentile(images.ages_ms, 99), DELAY_S * 1e3, "delay alone", None),
        Result(
            "hosts: images that came", "fps", len(images.ages_ms) / FOR_S, 15.0, "the camera", None, more_is_better=True
        ),
        Result("hosts: bandwidth used", "Mbit/s", mbit, MBIT, "the link", 1.0),
    ]


def _run(*, with_images: bool) -> tuple[Stream, Stream, float]:
    """Commands, images and the bandwidth of one run."""
    with ExitStack() as stack:
        port, outer = free_ports(2), free_ports(2)
        (robot_public, robot_secret), (desktop_public, desktop_secret) = (_keys(), _keys())
        robot = Host("robot", "127.0.0.1", port, robot_public)
        here = HostPair(robot, Host("desktop", key=desktop_public), port)
        stack.enter_context(_relay(outer, port))
        streams = {topic: Stream() for topic in (IMAGE, STATE, COMMAND)}
        down: dict[str, type[Message]] = {IMAGE: Image, STATE: RobotState}
        up: dict[str, type[Message]] = {COMMAND: JointCommand}
        near = stack.enter_context(_end("robot", here, robot_secret, down, up, streams))
        far = stack.enter_context(_end("desktop", replace(here, port=outer), desktop_secret, up, down, streams))
        return _drive(near, far, streams, with_images=with_images)


def _drive(
    near: Gateway, far: Gateway, streams: dict[str, Stream], *, with_images: bool
) -> tuple[Stream, Stream, float]:
    clock, seq = SystemClock(), dict.fromkeys(streams, 0)
    rgb = np.random.default_rng(0).integers(0, 255, (30, 40, 3), dtype=np.uint8).repeat(16, 0).repeat(16, 1)
    # A picture with a textured half is about as hard on JPEG as a kitchen.
    rgb[:, 320:] = np.random.default_rng(1).normal(128, 12, (480, 320, 3)).clip(0, 255).astype(np.uint8)

    def send(gateway: Gateway, topic: str, message: Message) -> None:
        seq[topic] += 1
        now_ns = clock.now_ns()
        streams[topic].sent_ns[seq[topic]] = now_ns
        gateway.from_here(Stamped(message, Envelope(topic, "node", seq[topic], now_ns)))

    state = RobotState(
        read_ns=1, position=ZERO, velocity=ZERO, effort=ZERO,
        base_x_m=0.0, base_y_m=0.0, base_heading_rad=0.0, base_v_mps=0.0, base_w_radps=0.0,
    )  # fmt: skip
    command = JointCommand(position=ZERO, base_v_mps=0.0, base_w_radps=0.0)
    start_ns = clock.now_ns()
    due = {IMAGE: 0, STATE: 0, COMMAND: 0}
    every = {IMAGE: 1 / 15, STATE: 1 / 50, COMMAND: 1 / 20}
    bytes_before, is_warm = 0, False
    while (passed_ns := clock.now_ns() - start_ns) < to_ns(WARM_UP_S + FOR_S):
        if not is_warm and passed_ns > to_ns(WARM_UP_S):
            is_warm, bytes_before = True, near.bytes_sent
            for stream in streams.values():
                stream.ages_ms.clear()
        for topic, gateway, message in ((STATE, near, state), (COMMAND, far, command)):
            if passed_ns >= due[topic]:
                due[topic] += to_ns(every[topic])
                send(gateway, topic, message)
        if with_images and passed_ns >= due[IMAGE]:
            due[IMAGE] += to_ns(every[IMAGE])
            send(near, IMAGE, Image(camera="head", captured_ns=clock.now_ns(), rgb=rgb))
        clock.block(0.001)
    return streams[COMMAND], streams[IMAGE], (near.bytes_sent - bytes_before) * 8 / 1e6 / FOR_S


@contextmanager
def _end(
    name: str,
    pair: HostPair,
    secret: str,
    sends: dict[str, type[Message]],
    receives: dict[str, type[Message]],
    streams: dict[str, Stream],
) -> Iterator[Gateway]:
    clock = SystemClock()

    def came(envelope: Envelope, message: Message) -> None:
        stream = streams.get(envelope.topic)
        if stream is not None:
            stream.ages_ms.append((clock.now_ns() - stream.sent_ns[envelope.seq]) / 1e6)

    doors = Doors(pair, name, secret)
    gateway = Gateway(
        doors,
        Traffic(sends, receives, dict.fromkeys(receives, ("node",))),
        own=name,
        other=pair.other(name).name,
        graph="bench",
        publish=came,
        finish=lambda ok, reason: None,
        codecs={Image: JpegImages()},
    )
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(gateway.run(stop)))
    thread.start()
    try:
        yield gateway
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
        doors.close()


@contextmanager
def _relay(port: int, target: int) -> Iterator[None]:
    places = [f"127.0.0.1:{port}", f"127.0.0.1:{target}", "--ports", "2"]
    shape = ["--delay-s", str(DELAY_S), "--loss", str(LOSS), "--mbit", str(MBIT)]
    command = [sys.executable, "-m", "bench.relay", *places, *shape]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as relay:
        assert relay.stdout is not None
        relay.stdout.readline()
        try:
            yield
        finally:
            relay.kill()


def _keys() -> tuple[str, str]:
    public, secret = zmq.curve_keypair()
    return public.decode(), secret.decode()
