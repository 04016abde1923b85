"""Free TCP ports for tests, and whether this machine has IPv6."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as tried:
            tried.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6: ::1 cannot be bound")


def free_ports(number: int, address: str = "127.0.0.1") -> int:
    """The first of that many ports in a row that are free on loopback."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    while True:
        with ExitStack() as stack:
            first = stack.enter_context(socket.socket(family))
            first.bind((address, 0))
            port: int = first.getsockname()[1]
            try:
                for step in range(1, number):
                    stack.enter_context(socket.socket(family)).bind((address, port + step))
            except (OSError, OverflowError):
                continue
            return port
