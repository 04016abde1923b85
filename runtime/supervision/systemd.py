"""Tells systemd, where it started the run, that the run is ready, lives, and ends (`sd_notify`)."""

from __future__ import annotations

import os
import socket

VARIABLE = "NOTIFY_SOCKET"


class Systemd:
    """Notifies systemd where it named a socket, and does nothing elsewhere; child processes do not inherit the name."""

    def __init__(self) -> None:
        self._address = os.environ.pop(VARIABLE, "")

    def tell(self, word: str) -> None:
        """Send READY=1, WATCHDOG=1 or STOPPING=1 without waiting; a service manager that is gone is ignored."""
        if not self._address:
            return
        place = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.setblocking(False)
            try:
                told.sendto(word.encode(), place)
            except OSError:
                pass  # it is restarted, or has no room: the next word comes in a moment
