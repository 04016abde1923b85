"""`MqttBroker`: an MQTT broker inside a run, for those who have none.

A node like any other: in a process of its own, started again where it dies, gone with the run. What it retains lives
in its memory; the bridge tells everything anew to a broker that came back. For a desk, not for a fleet.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import socket
from pathlib import Path

from runtime import Node, every, needs_real_time
from runtime.extras import install

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class MqttBroker(Node):
    """Listens on this machine only, unless it has a certificate and MQTT_USERNAME, MQTT_PASSWORD of the environment.

    Where the environment has these two, nobody is let in without them. With `certificate` and `key` (PEM) it speaks
    TLS and nothing else.
    """

    def __init__(self, address: str = "127.0.0.1", port: int = 1883, certificate: str = "", key: str = "") -> None:
        self.place = (address, port, certificate, key)

    def problems(self) -> list[str]:
        """What is missing or taken, and what would be open to everybody on the network."""
        address, port, certificate, key = self.place
        problems = []
        if importlib.util.find_spec("amqtt") is None:
            problems.append(f"amqtt is not installed; the broker needs it: {install('bridges[broker]')}")
        for name, file in (("certificate", certificate), ("key", key)):
            if file and not Path(file).is_file():
                problems.append(f"{name} is {file!r}: there is no such file")
        if bool(certificate) != bool(key):
            problems.append("certificate and key belong together: give both or neither")
        has_login = os.environ.get("MQTT_USERNAME") and os.environ.get("MQTT_PASSWORD")
        if address not in LOOPBACK and not (certificate and has_login):
            problems.append(f"at {address} others reach it: give certificate, key and MQTT_USERNAME, MQTT_PASSWORD")
        if not 0 < port < 65536:
            problems.append(f"port is {port}; expected 1 to 65535")
        elif why := _why_not_free(address, port):
            problems.append(why)
        return problems

    def on_start(self) -> None:
        """Raises ParameterError in virtual time."""
        needs_real_time(self, "a broker", "without this node")

    @every(hz=1)
    async def serve(self) -> None:
        """Be the broker for as long as the node lives."""
        from bridges.mqtt.broker import broker_at

        async with broker_at(*self.place):
            address, port, *_ = self.place
            self.log.info("MQTT at %s:%d", address, port)
            await asyncio.Event().wait()


def _why_not_free(address: str, port: int) -> str:
    """Why nobody could listen there now, in a sentence; "" where one could."""
    try:
        family, kind, _, _, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as problem:
        why = f"it cannot listen at {address}:{port} ({problem.strerror})"
        return f"{why}; does a broker run there already? Use that one without this node, or give this one another port"
    return ""
