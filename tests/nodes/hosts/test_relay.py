"""The relay of benches and tests: all that is sent arrives, late, and no more of it than the link carries."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from bench.relay import Relay, Shape, relayed
from runtime.clock import NS_PER_S, SystemClock

TEXT = bytes(range(256)) * 400  # about 70 segments


@contextmanager
def echo_server() -> Iterator[int]:
    """Sends back what it reads, and then closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            there, _ = server.accept()
            with there:
                heard = b""
                while len(heard) < len(TEXT):
                    heard += there.recv(65536)
                with suppress(OSError):  # who asked may be content with less
                    there.sendall(heard)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join(10.0)


def there_and_back(relay: Relay) -> float:
    """How long the text took, in seconds; it comes back whole."""
    clock = SystemClock()
    start_ns = clock.now_ns()
    with socket.create_connection(("127.0.0.1", relay.port), timeout=20.0) as here:
        here.sendall(TEXT)
        heard = b""
        while data := here.recv(65536):
            heard += data
    assert heard == TEXT
    return (clock.now_ns() - start_ns) / NS_PER_S


@pytest.mark.processes
@pytest.mark.parametrize(
    ("shape", "least_s"),
    [
        (Shape(), 0.0),
        (Shape(delay_s=0.1), 0.2),
        (Shape(mbit=4.0), 2 * (len(TEXT) - 64_000) * 8 / 4e6),
        (Shape(loss=0.05, retransmit_s=0.2), 0.2),
    ],
)
def test_all_arrives_and_no_sooner_than_the_link_allows(shape: Shape, least_s: float) -> None:
    with echo_server() as port, relayed(Relay(target=("127.0.0.1", port), shape=shape)) as relay:
        assert there_and_back(relay) >= least_s
        assert (relay.lost > 0) is (shape.loss > 0)


@pytest.mark.processes
def test_a_frozen_relay_lets_nothing_out_until_it_thaws() -> None:
    with echo_server() as port, relayed(Relay(target=("127.0.0.1", port))) as relay:
        relay.is_frozen = True
        with socket.create_connection(("127.0.0.1", relay.port), timeout=0.3) as here:
            here.sendall(TEXT)
            with pytest.raises(TimeoutError):
                here.recv(1)
            relay.is_frozen = False
            here.settimeout(20.0)
            assert here.recv(1) == TEXT[:1]


@pytest.mark.processes
def test_where_nobody_answers_the_relay_hangs_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with (
        relayed(Relay(target=("127.0.0.1", port))) as relay,
        socket.create_connection(("127.0.0.1", relay.port), timeout=20.0) as here,
    ):
        assert here.recv(1) == b""
