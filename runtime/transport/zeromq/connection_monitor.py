"""`ConnectionMonitor`: whether anybody is still connected to a subscribing socket."""

from __future__ import annotations

import zmq
from zmq.utils.monitor import recv_monitor_message

from runtime.clock import SystemClock


class ConnectionMonitor:
    """Who is connected to a subscribing socket: ZeroMQ tells of an end after all that came before it was taken in."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket
        self._events = socket.get_monitor_socket(int(zmq.EVENT_CONNECTED | zmq.EVENT_DISCONNECTED))
        self._connected: set[int] = set()  # file descriptors

    def wait(self, end_ns: int) -> bool:
        """Wait until nobody is connected, at most until that time; whether it is so."""
        clock = SystemClock()
        while True:
            left_ms = (end_ns - clock.now_ns()) // 1_000_000 if self._connected else 0
            if not self._events.poll(max(0, left_ms)):
                return not self._connected
            event = recv_monitor_message(self._events)
            if event["event"] == zmq.EVENT_CONNECTED:
                self._connected.add(int(event["value"]))
            else:
                self._connected.discard(int(event["value"]))

    def close(self) -> None:
        """Stop watching."""
        self._socket.disable_monitor()
        self._events.close()
