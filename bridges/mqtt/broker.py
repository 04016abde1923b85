"""A broker in this process: the only file that imports amqtt."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from amqtt.broker import Broker
from amqtt.contexts import BrokerConfig, ListenerConfig
from amqtt.errors import BrokerError
from amqtt.plugins.base import BaseAuthPlugin
from amqtt.session import Session

from runtime.errors import TransportError

MOST_CONNECTIONS = 100
SESSION_S = 600
"""A client that asked to be remembered and does not come back is forgotten after this, with what waits for it."""
FAREWELL_S = 1.0


@asynccontextmanager
async def broker_at(address: str, port: int, certificate: str = "", key: str = "") -> AsyncIterator[None]:
    """Be a broker that listens there until the end of the block. Raises TransportError where it cannot."""
    for chatty in ("amqtt", "transitions"):
        logging.getLogger(chatty).setLevel(logging.CRITICAL)  # each client that comes and goes would be news
    listener = ListenerConfig(
        bind=f"[{address}]:{port}" if ":" in address else f"{address}:{port}",
        max_connections=MOST_CONNECTIONS,
        ssl=bool(certificate),
        certfile=certificate or None,
        keyfile=key or None,
    )
    config = BrokerConfig(
        listeners={"default": listener},
        session_expiry_interval=SESSION_S,
        plugins={f"{__name__}.{Doorkeeper.__name__}": {}},
    )
    broker = Broker(config)
    try:
        await broker.start()
    except BrokerError as problem:
        raise TransportError(f"there can be no broker at {address}:{port}: {problem.__cause__ or problem}") from problem
    try:
        yield
    finally:
        try:
            await asyncio.wait_for(broker.shutdown(), FAREWELL_S)
        except TimeoutError:
            pass  # a client that does not let go; the end of the process closes its connection


class Doorkeeper(BaseAuthPlugin):  # type: ignore[misc]  # amqtt ships no types
    """Decides who is let in: everybody or, where the environment has a name and a password, who says these."""

    async def authenticate(self, *, session: Session) -> bool:
        """Whether this client may come in."""
        session.is_anonymous = not any(login())
        return is_let_in(session.username, session.password)


def login() -> tuple[str, str]:
    """Return the name and the password that a client has to know; ("", "") where there are none."""
    return os.environ.get("MQTT_USERNAME", ""), os.environ.get("MQTT_PASSWORD", "")


def is_let_in(username: str | None, password: str | None) -> bool:
    """Return whether these are the name and the password of the environment; True where it has none."""
    name, word = login()
    if not name and not word:
        return True
    said = f"{username or ''}\0{password or ''}"
    return hmac.compare_digest(said.encode(), f"{name}\0{word}".encode())
