"""`SubscriberThread`: a reader with a thread of its own, for what a process hears and no control loop has for
itself."""

from __future__ import annotations

import threading

from runtime.clock import SystemClock, to_ns
from runtime.os_realtime import ask_for_fifo
from runtime.transport.zeromq.reader import Reader

_PER_TURN = 256  # messages, then look whether to stop


class SubscriberThread(Reader):
    """A reader with a thread of its own."""

    def start(self, priority: int = 0) -> None:
        """Start reading. `priority`: real-time priority of the thread; 0 leaves it ordinary."""
        self._is_stopped = False
        self._thread = threading.Thread(target=self._read, args=(priority,), name="zeromq-inlet")
        self._thread.start()

    def finish(self, timeout_s: float) -> bool:
        """Go on reading until every publisher has closed and all that it sent is delivered; False where time is over.

        Needs `watches_ends`. Only `close` may follow.
        """
        assert self._ends is not None
        end_ns = SystemClock().now_ns() + to_ns(timeout_s)
        left = [ends for ends in self._ends if not ends.wait(end_ns)]
        self._is_stopped = True
        self.wake()
        self._thread.join()
        while self.drain(_PER_TURN):
            pass
        return not left

    def close(self) -> None:
        """Stop reading and close."""
        thread: threading.Thread | None = getattr(self, "_thread", None)
        if thread is not None:
            self._is_stopped = True
            self.wake()
            thread.join()
        super().close()

    def _read(self, priority: int) -> None:
        if priority:
            ask_for_fifo(priority)
        while not self._is_stopped:
            if not self.drain(_PER_TURN):
                self.wait(None)
