"""`knock`: whether a listening host would admit this one; it sends nothing, so a link that is up is not disturbed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import zmq
from zmq.utils.monitor import parse_monitor_message

from runtime.clock import SystemClock, to_ns

Answer = Literal["in", "refused", "closed", "silent"]
"""Admitted; connected and not admitted; refused by the port or the network; no answer."""

_CONNECTIONS = zmq.EVENT_CONNECTED | zmq.EVENT_CONNECT_RETRIED
_ENDINGS = (
    zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
)


@dataclass(frozen=True, slots=True)
class ProbeIdentity:
    """The identity of the caller, with its keys as Z85; unencrypted without a secret key."""

    name: str
    public: str = ""
    secret: str = ""


def knock(address: str, server_key: str, caller: ProbeIdentity, within_s: float) -> Answer:
    """Connect to a "tcp://..." address, wait for the handshake's end, and leave. Raises ZMQError for no address."""
    clock = SystemClock()
    end_ns = clock.now_ns() + to_ns(within_s)
    context: zmq.Context[Any] = zmq.Context()
    socket = context.socket(zmq.DEALER)
    monitor = socket.get_monitor_socket(_CONNECTIONS | _ENDINGS)
    answer: Answer = "silent"
    try:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.IPV6, "[" in address)
        socket.setsockopt(zmq.ROUTING_ID, f"{caller.name}-doctor".encode())
        if caller.secret:
            socket.curve_secretkey = caller.secret.encode()
            socket.curve_publickey = caller.public.encode()
            socket.curve_serverkey = server_key.encode()
        socket.connect(address)
        while (left_ms := (end_ns - clock.now_ns()) // 1_000_000) > 0 and monitor.poll(left_ms):
            event = parse_monitor_message(monitor.recv_multipart())["event"]
            if event == zmq.EVENT_CONNECTED:
                answer = "refused"  # unless it says otherwise
            elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                return "in"
            elif event & _ENDINGS:
                return "refused"
            elif answer == "silent":
                return "closed"
        return answer
    finally:
        socket.disable_monitor()
        monitor.close()
        socket.close()
        context.term()
