"""`knock`: whether a host that waits would let this one in; nothing is said, so that a link that is up goes on."""

from __future__ import annotations

from typing import Any, Literal

import zmq
from zmq.utils.monitor import parse_monitor_message

from runtime.clock import SystemClock, to_ns
from runtime.hosts.table import Pair

Answer = Literal["in", "refused", "closed", "silent"]
"""Let in; connected and not let in; the port or the network says no; nothing came back."""

_CONNECTIONS = zmq.EVENT_CONNECTED | zmq.EVENT_CONNECT_RETRIED
_ENDINGS = (
    zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
)


def knock(meeting: Pair, secret: str, within_s: float) -> Answer:
    """Connect as the host that calls, wait for the handshake's end, and leave."""
    clock = SystemClock()
    end_ns = clock.now_ns() + to_ns(within_s)
    context: zmq.Context[Any] = zmq.Context()
    caller = context.socket(zmq.DEALER)
    monitor = caller.get_monitor_socket(_CONNECTIONS | _ENDINGS)
    answer: Answer = "silent"
    try:
        caller.setsockopt(zmq.LINGER, 0)
        caller.setsockopt(zmq.ROUTING_ID, f"{meeting.client.name}-doctor".encode())
        if secret:
            caller.curve_secretkey = secret.encode()
            caller.curve_publickey = meeting.client.key.encode()
            caller.curve_serverkey = meeting.server.key.encode()
        caller.connect(f"tcp://{meeting.server.ip}:{meeting.port}")
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
        caller.disable_monitor()
        monitor.close()
        caller.close()
        context.term()
