"""Two ends of a link between hosts, each in a thread, over real sockets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import zmq

from bridges.gateway_images import JpegImages
from nodes.hosts.admission import Traffic
from nodes.hosts.gateway import Gateway
from nodes.hosts.sockets import Doors
from nodes.msgs import EStop, Image, Utterance
from runtime.clock import SystemClock
from runtime.coordination.health import GatewayHealth
from runtime.hosts.hosts_table import Host, HostPair
from runtime.message import Envelope, Message, Stamped
from runtime.transport.reliable.tag import Terms
from tests.support.running import eventually

ROBOT_PUBLIC, ROBOT_SECRET = (key.decode() for key in zmq.curve_keypair())
DESKTOP_PUBLIC, DESKTOP_SECRET = (key.decode() for key in zmq.curve_keypair())
OTHER_PUBLIC, OTHER_SECRET = (key.decode() for key in zmq.curve_keypair())
CLOCK = SystemClock()


@dataclass
class End:
    """One end of a link, running in a thread."""

    gateway: Gateway
    doors: Doors
    came: list[Stamped[Any]]
    endings: list[tuple[bool, str]] = field(default_factory=list)

    def of(self, topic: str) -> list[Stamped[Any]]:
        return [stamped for stamped in self.came if stamped.envelope.topic == topic]

    def send(self, topic: str, message: Message, seq: int = 1, source: str = "vlm") -> None:
        self.gateway.from_here(Stamped(message, Envelope(topic, source, seq, CLOCK.now_ns())))

    @property
    def health(self) -> GatewayHealth | None:
        found = [stamped.message for stamped in self.came if isinstance(stamped.message, GatewayHealth)]
        return found[-1] if found else None


def meeting(port: int, is_encrypted: bool = True, address: str = "127.0.0.1") -> HostPair:
    robot = Host("robot", address, port, ROBOT_PUBLIC if is_encrypted else "")
    return HostPair(robot, Host("desktop", key=DESKTOP_PUBLIC if is_encrypted else ""), port)


@contextmanager
def end(
    name: str,
    pair: HostPair,
    secret: str,
    traffic: Traffic,
    *,
    graph: str = "same",
    clock: SystemClock = CLOCK,
    shrinks: bool = True,
    reliable: Mapping[str, Terms] | None = None,
) -> Iterator[End]:
    """A gateway that runs until the block ends, and says goodbye with the outcome in `endings`, if there is one."""
    came: list[Stamped[Any]] = []
    endings: list[tuple[bool, str]] = []
    doors = Doors(pair, name, secret)
    gateway = Gateway(
        doors,
        traffic,
        own=name,
        other=pair.other(name).name,
        graph=graph,
        publish=lambda envelope, message: came.append(Stamped(message, envelope)),
        finish=lambda ok, reason: endings.append((ok, reason)),
        codecs={Image: JpegImages()} if shrinks else None,
        others=frozenset({f"{name}_node"}),
        reliable=reliable,
        clock=clock,
    )
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(gateway.run(stop)))
    thread.start()
    try:
        yield End(gateway, doors, came, endings)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
        gateway.leave((True, "all done") if name == "robot" else None)
        doors.close()


DOWN = Traffic({"estop": EStop, "head/image": Image}, {"heard": Utterance}, {"heard": ("vlm",)})
UP = Traffic(
    {"heard": Utterance}, {"estop": EStop, "head/image": Image}, {"estop": ("button",), "head/image": ("camera",)}
)


@contextmanager
def link(port: int, address: str = "127.0.0.1", **desktop: Any) -> Iterator[tuple[End, End]]:
    with ExitStack() as stack:
        pair = meeting(port, address=address)
        robot = stack.enter_context(end("robot", pair, ROBOT_SECRET, DOWN))
        yield robot, stack.enter_context(end("desktop", pair, DESKTOP_SECRET, UP, **desktop))


def until_it_crosses(sender: End, receiver: End, topic: str, message: Message, source: str) -> None:
    """Send it again and again until the link is up."""
    numbers = iter(range(1, 10_000))

    def crossed() -> bool:
        sender.send(topic, message, seq=next(numbers), source=source)
        return bool(receiver.of(topic))

    eventually(crossed, f"{topic} crosses the link", 20.0)


def logged(caplog: pytest.LogCaptureFixture, words: str) -> Callable[[], bool]:
    return lambda: any(words in record.getMessage() for record in caplog.records)
