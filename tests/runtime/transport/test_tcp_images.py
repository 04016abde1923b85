"""Shared memory crosses no network: over real TCP sockets an image travels inside its message, and arrives equal."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodes.hosts.admission import Traffic
from nodes.msgs import Image
from runtime.message import Envelope, Stamped
from runtime.transport.shared_memory import FOLDER, Views, is_available
from runtime.transport.zeromq import PublisherSockets, Reader, SubscriberThread
from tests.support.gateway_ends import DESKTOP_SECRET, ROBOT_SECRET, end, meeting
from tests.support.ports import free_ports
from tests.support.running import eventually

pytestmark = [pytest.mark.processes, pytest.mark.skipif(not is_available(), reason="needs /dev/shm")]

LUCK = np.random.default_rng(7)


@pytest.fixture
def folders() -> Iterator[tuple[Path, Path]]:
    """One for each host, short enough for sockets."""
    with (
        tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as one,
        tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as other,
    ):
        yield Path(one), Path(other)


def picture() -> Image:
    """One that no compression makes small, with depth."""
    rgb = LUCK.integers(0, 256, (240, 320, 3), np.uint8)
    return Image(camera="head", captured_ns=5, rgb=rgb, depth_m=LUCK.random((240, 320), np.float32))


def is_equal(one: Image, other: Image) -> bool:
    assert one.depth_m is not None
    assert other.depth_m is not None
    return np.array_equal(one.rgb, other.rgb) and np.array_equal(one.depth_m, other.depth_m)


def segments() -> list[str]:
    return [file.name for file in FOLDER.glob(f"polyrhythm-{os.getuid()}-{os.getpid()}-*")]


def ignore(topic: str, reason: str, number: int, why: str) -> None:
    """Losses are no subject here."""


def test_a_reader_over_tcp_that_shares_no_memory_with_the_camera_sees_the_very_image(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = free_ports(2)
    ports = {"event": first, "state": first + 1}
    for module in ("sockets", "reader"):
        monkeypatch.setattr(
            f"runtime.transport.zeromq.{module}.endpoint",
            lambda folder, process, kind: f"tcp://127.0.0.1:{ports[kind]}",
        )
    outlet = PublisherSockets(folders[0], "camera")
    heard: list[Stamped[Any]] = []
    reader = Reader({"head/image": Image}, heard.append, ignore)
    reader.elsewhere.views = Views(folders[1])  # another machine's memory
    reader.connect(folders[1], ["camera"])
    try:
        assert asyncio.run(outlet.await_subscribers({"head/image": 1}, 60.0, asyncio.Event())) == []
        image = picture()

        def comes() -> bool:
            outlet.publish(Envelope("head/image", "camera", len(sent) + 1, len(sent) + 1), image)
            sent.append(1)
            outlet.send_late_join()  # it asks for whole messages after some that it could not fetch
            return reader.poll(16) and bool(heard)

        sent: list[int] = []
        eventually(comes, "an image comes whole")
        assert segments(), "those of this machine go through its memory"
        assert is_equal(heard[0].message, image)
    finally:
        reader.close()
        outlet.close()


def test_an_image_in_shared_memory_crosses_to_another_host_inside_its_message(folders: tuple[Path, Path]) -> None:
    down = Traffic({"head/image": Image}, {}, {})
    up = Traffic({}, {"head/image": Image}, {"head/image": ("camera",)})
    port = free_ports(2)
    with (
        end("robot", meeting(port), ROBOT_SECRET, down, shrinks=False) as robot,
        end("desktop", meeting(port), DESKTOP_SECRET, up, shrinks=False) as desktop,
    ):
        outlet = PublisherSockets(folders[0], "camera")
        inlet = SubscriberThread({"head/image": Image}, robot.gateway.from_here, ignore)
        inlet.connect(folders[0], ["camera"])
        inlet.start()
        try:
            assert asyncio.run(outlet.await_subscribers({"head/image": 1}, 60.0, asyncio.Event())) == []
            image = picture()
            assert image.depth_m is not None

            def crosses() -> bool:  # the link takes a moment
                sent.append(1)
                now_ns = robot.gateway.clock.now_ns()
                outlet.publish(Envelope("head/image", "camera", len(sent), now_ns), image)
                return bool(desktop.of("head/image"))

            sent: list[int] = []
            eventually(crosses, "an image crosses")
            assert segments(), "on the camera's host it lay in shared memory"
            assert is_equal(desktop.of("head/image")[0].message, image)
            assert robot.gateway.bytes_sent > image.rgb.nbytes + image.depth_m.nbytes
        finally:
            inlet.close()
            outlet.close()
