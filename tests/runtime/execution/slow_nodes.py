"""Handlers that hold up their process, never return, or fail, for tests of what a run says of them."""

from __future__ import annotations

import threading
import time

from runtime import Node, every


class Sleepy(Node):
    """Its first two ticks of five a second take longer than their period."""

    left = 2

    @every(hz=5)
    def tick(self) -> None:
        if self.left:
            self.left -= 1
            time.sleep(0.3)  # a user's mistake


class Stuck(Node):
    @every(hz=5, blocking=True)
    def wait(self) -> None:
        threading.Event().wait()


class Failing(Node):
    @every(hz=5)
    def tick(self) -> None:
        raise ZeroDivisionError("by zero")


class Ending(Failing):
    """Fails, and calls the run a success all the same."""

    @every(hz=5, phase=0.5)
    def end(self) -> None:
        self.finish(ok=True, reason="done")


class Sleeper(Node):
    """Each tick takes seven periods, so that the next one is due when it ends."""

    @every(hz=5)
    def tick(self) -> None:
        time.sleep(1.4)  # a user's mistake
        self.log.info("tick ends")


class Endless(Node):
    @every(hz=5)
    def tick(self) -> None:
        while True:  # a user's mistake
            pass


class EndlessLoop(Endless):
    """The same in the control loop of a thread."""

    realtime = True


class Slumber(Node):
    """Waits for long where others of its process wait with it."""

    @every(hz=5)
    async def tick(self) -> None:
        time.sleep(60)  # a user's mistake
