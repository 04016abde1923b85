"""Free TCP ports for tests."""

from __future__ import annotations

import socket
from contextlib import ExitStack


def free_ports(number: int) -> int:
    """The first of that many ports in a row that are free on loopback."""
    while True:
        with ExitStack() as stack:
            first = stack.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            try:
                for step in range(1, number):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port + step))
            except (OSError, OverflowError):
                continue
            return port
