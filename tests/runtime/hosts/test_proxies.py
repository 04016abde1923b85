"""No part of the product asks this machine through a proxy: each on a real socket, beside a proxy that records."""

from __future__ import annotations

import asyncio
import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest

from bridges.ros2.rosbridge import RosbridgeLink
from bridges.telemetry.otlp import Collector, metrics_request
from nodes.models.answers import ChatSettings
from nodes.models.realtime import RealtimeConnection
from nodes.policy.onnx.inputs import Felt
from nodes.policy.remote.openpi import OpenPiSession
from runtime.errors import PolyrhythmError, UserError
from runtime.hosts.proxies import is_here, open_url

pytestmark = pytest.mark.processes

HOSTS = ("127.0.0.1", "localhost")


class Listener:
    """Takes connections, remembers the first line of each, and hangs up."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._heard = threading.Condition()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.settimeout(5.0)
                line = connection.recv(4096).partition(b"\r\n")[0].decode("latin-1")
                with self._heard:
                    self.lines.append(line)
                    self._heard.notify_all()

    def was_asked(self) -> bool:
        """Whether somebody came, within a bound."""
        with self._heard:
            return self._heard.wait_for(lambda: bool(self.lines), 10.0)

    def close(self) -> None:
        # A thread in accept() wakes up for a shutdown only.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10.0)


@pytest.fixture
def listeners(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Listener, Listener]]:
    """A server, and a proxy that the whole environment names."""
    server, proxy = Listener(), Listener()
    for name in ("http_proxy", "https_proxy", "all_proxy", "ws_proxy", "wss_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv(name.upper(), f"http://127.0.0.1:{proxy.port}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield server, proxy
    server.close()
    proxy.close()


def realtime(host: str, port: int) -> None:
    async def opens() -> None:
        connection = RealtimeConnection(ChatSettings(base_url=f"http://{host}:{port}/v1", model="m"))
        while connection.state == "opening":
            await asyncio.sleep(0.01)
        await connection.close()

    asyncio.run(asyncio.wait_for(opens(), 20.0))


def otlp(host: str, port: int) -> None:
    collector = Collector(f"http://{host}:{port}")
    collector.send("/v1/metrics", metrics_request("run", [], 1, 0))
    collector.close()


def openpi(host: str, port: int) -> None:
    names = {"image": "", "wrist": "", "joints": "observation/state", "text": "prompt"}
    session = OpenPiSession(f"ws://{host}:{port}", names, size_px=2, within_s=5.0)
    with suppress(PolyrhythmError):
        session.run({"image": np.zeros((2, 2, 3), np.uint8)}, Felt((0.0,) * 8, text="pick"))
    session.close()


def rosbridge(host: str, port: int) -> None:
    link = RosbridgeLink(f"ws://{host}:{port}", lambda code, text: None)
    with suppress(UserError):
        link.open()
    link.close()


def plain(host: str, port: int) -> None:
    with suppress(OSError):
        open_url(urllib.request.Request(f"http://{host}:{port}/"), 5.0)


ASKERS = {one.__name__: one for one in (realtime, otlp, openpi, rosbridge, plain)}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", ASKERS)
def test_this_machine_is_asked_without_the_proxy_of_the_environment(
    listeners: tuple[Listener, Listener], name: str, host: str
) -> None:
    server, proxy = listeners
    ASKERS[name](host, server.port)
    assert server.was_asked()
    assert server.lines[0].split(" ")[0] in ("GET", "POST")
    assert proxy.lines == []


@pytest.mark.parametrize("name", ASKERS)
def test_another_machine_is_asked_through_it(listeners: tuple[Listener, Listener], name: str) -> None:
    server, proxy = listeners
    ASKERS[name]("robot.test", 80)
    assert proxy.was_asked()
    assert "robot.test" in proxy.lines[0]
    assert server.lines == []


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1", "http://127.8.8.8", "ws://localhost:9090", "http://LOCALHOST./v1", "ws://[::1]:8000",
     "http://0.0.0.0:8000/v1", "http://model.localhost:1", f"http://{socket.gethostname()}:1"],
)  # fmt: skip
def test_what_is_on_this_machine_is_known_by_each_of_its_names(url: str) -> None:
    assert is_here(url)


@pytest.mark.parametrize("url", ["http://10.0.0.5:1", "http://localhost.example.com", "https://api.openai.com/v1", ""])
def test_other_machines_are_not_taken_for_this_one(url: str) -> None:
    assert not is_here(url)
