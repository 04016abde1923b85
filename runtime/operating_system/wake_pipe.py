"""`WakePipe`: ends the `select` or the poll of one thread from any other."""

from __future__ import annotations

import os


class WakePipe:
    """The waiting thread waits on `fd` among others, and calls `clear` before it looks for what it was woken for."""

    def __init__(self) -> None:
        self.fd, self._writer = os.pipe()
        for fd in (self.fd, self._writer):
            os.set_blocking(fd, False)
        self._is_woken = False

    def wake(self) -> None:
        """End the present wait, or the next one (any thread); nothing once it is closed."""
        if not self._is_woken:
            self._is_woken = True
            try:
                os.write(self._writer, b"w")
            except OSError:
                pass  # closed: nobody waits any more

    def clear(self) -> None:
        """Let the next wait be one (the waiting thread)."""
        try:
            os.read(self.fd, 64)
        except BlockingIOError:
            pass  # it was cleared already
        self._is_woken = False

    def close(self) -> None:
        """Close both ends; only `wake` may be called afterwards."""
        os.close(self.fd)
        os.close(self._writer)
        self._writer = -1  # else it would wake whoever has that number next
