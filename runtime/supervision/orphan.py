"""What a process does when whoever started it is dead: it ends, politely or not.

Who is started without orders, to do one thing, may still end with its starter: `end_with`.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

from runtime.operating_system.processes import FAMILY, end_families

GRACE_S = 1.5
"""After the supervisor's death a process has this long to stop by itself, s."""
_LONG_GRACE_S = 15.0  # and one that ends others first, so long


def end_with(pipe_fd: int) -> None:
    """End this process as by SIGTERM once nobody holds the other end of this pipe; starts a thread."""

    def watch() -> None:
        with os.fdopen(pipe_fd, "rb") as pipe:
            pipe.read()
        end_orphan(lambda: os.kill(os.getpid(), signal.SIGTERM), _LONG_GRACE_S)

    threading.Thread(target=watch, name="end-with", daemon=True).start()


def end_orphan(stop: Callable[[], None], grace_s: float) -> None:
    """Whoever started this process is gone. Stop politely; whatever blocks the loop does not keep it alive."""
    stop()
    threading.Event().wait(grace_s)
    if run := os.environ.get(FAMILY, "").partition("/")[2]:
        end_families({os.getpid()}, run)
    os._exit(1)
