"""One MQTT connection: the only file that imports aiomqtt. What goes wrong is a sentence without the password."""

from __future__ import annotations

import dataclasses
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiomqtt

from runtime.errors import TransportError

KEEPALIVE_S = 15
CONNECT_S = 5.0
MOST_WAITING = 100
STRANGER = "polyrhythm-login-check"
REFUSED = 0x80
"""The lowest code of a SUBACK that grants nothing, in MQTT 3.1.1 and 5."""


@dataclass(frozen=True, slots=True)
class Broker:
    """Where the broker is, and how to be let in."""

    address: str
    port: int
    username: str = ""
    password: str = ""
    is_tls: bool = False
    ca_file: str = ""


@dataclass(frozen=True, slots=True)
class Incoming:
    """One message from the broker."""

    topic: str
    payload: bytes
    is_retained: bool


class BrokerConnection:
    """An open connection."""

    def __init__(self, client: aiomqtt.Client) -> None:
        self._client = client

    async def publish(self, topic: str, payload: bytes, *, qos: int, retain: bool = False) -> None:
        """Publish a message; with QoS 1, return once the broker has it."""
        with _in_words():
            await self._client.publish(topic, payload, qos=qos, retain=retain, timeout=CONNECT_S)

    async def subscribe(self, topic: str) -> bool:
        """Subscribe to a topic, at QoS 1; returns whether the broker grants it (a SUBACK below 0x80)."""
        with _in_words():
            granted = await self._client.subscribe(topic, qos=1, timeout=CONNECT_S)
        return all((code if isinstance(code, int) else code.value) < REFUSED for code in granted)

    async def incoming(self) -> AsyncIterator[Incoming]:
        """Yield what comes in, until the connection breaks."""
        with _in_words():
            async for message in self._client.messages:
                payload = message.payload if isinstance(message.payload, bytes) else b""
                yield Incoming(str(message.topic), payload, bool(message.retain))


@asynccontextmanager
async def connect(
    broker: Broker, *, identifier: str, will: tuple[str, bytes] | None = None
) -> AsyncIterator[BrokerConnection]:
    """Connect, where wanted with a retained last will (topic and payload). Raises TransportError, here and later."""
    try:
        context = ssl.create_default_context(cafile=broker.ca_file or None) if broker.is_tls else None
    except (OSError, ssl.SSLError) as problem:
        raise TransportError(f"the CA file {broker.ca_file!r} cannot be used: {problem}") from problem
    client = aiomqtt.Client(
        broker.address,
        broker.port,
        username=broker.username or None,
        password=broker.password or None,
        identifier=identifier,
        will=None if will is None else aiomqtt.Will(*will, qos=1, retain=True),
        keepalive=KEEPALIVE_S,
        timeout=CONNECT_S,
        tls_context=context,
        max_queued_incoming_messages=MOST_WAITING,
    )
    with _in_words(f"the MQTT broker {broker.address}:{broker.port}"):
        async with client:
            yield BrokerConnection(client)


async def lets_anyone_in(broker: Broker) -> bool:
    """Whether the broker admits a client that shows no login. Raises TransportError where it cannot be asked."""
    stranger = dataclasses.replace(broker, username="", password="")
    try:
        async with connect(stranger, identifier=STRANGER):
            return True
    except TransportError as problem:
        if isinstance(problem.__cause__, aiomqtt.MqttCodeError):
            return False
        raise


class _in_words:  # noqa: N801  # reads as a word in `with`
    """Turns aiomqtt's errors into ours."""

    def __init__(self, whose: str = "the MQTT broker") -> None:
        self._whose = whose

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, aiomqtt.MqttError | OSError) and not isinstance(problem, TransportError):
            raise TransportError(f"{self._whose} {_in_plain_words(str(problem))}") from problem


def _in_plain_words(text: str) -> str:
    if "uthorized" in text or "ser name" in text:
        return f"does not let us in ({text}); check MQTT_USERNAME and MQTT_PASSWORD"
    if "refused" in text:
        return f"cannot be reached ({text}): no broker listens there (polyrhythm run mqtt-broker is one)"
    if "CERTIFICATE" in text or "SSL" in text:
        return f"shows a certificate that is not trusted ({text}); name its authority with ca_file"
    return f"fails: {text}"
