"""`Failures`: tells the log what handlers raise: whole where it is new, in a line a second where it goes on."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from traceback import walk_tb

from runtime.clock import NS_PER_S, Clock
from runtime.extras import lacking

_MOST_KNOWN = 32
"""Kinds of failure of one node that are told whole."""


class Failures:
    """What the handlers of one node raised so far, and what of it the log knows; for any thread."""

    def __init__(self, log: logging.Logger, clock: Clock) -> None:
        self.count = 0
        self.last = ""
        """The last one, with its handler and place."""
        self._log = log
        self._clock = clock
        self._known: set[tuple[str, str, str]] = set()
        self._untold: dict[str, int] = {}  # by handler, since its last line
        self._told_ns: dict[str, int] = {}
        self._lock = threading.Lock()

    def tell(self, handler: str, problem: BaseException) -> None:
        """Count it, and say it where it is new or nothing of that handler was said for a second."""
        name, place = type(problem).__name__, _place(problem)
        with self._lock:
            self.count += 1
            self.last = f"{handler} at {place}: {name}: {problem}"
            now_ns = self._clock.now_ns()
            is_new = (handler, name, place) not in self._known and len(self._known) < _MOST_KNOWN
            if is_new:
                self._known.add((handler, name, place))
                self._told_ns[handler] = now_ns
            else:
                number = self._untold[handler] = self._untold.get(handler, 0) + 1
                if now_ns - self._told_ns.get(handler, 0) < NS_PER_S:
                    return
                self._untold[handler], self._told_ns[handler] = 0, now_ns
        if is_new:
            extra = lacking(problem)
            why = f": {extra}" if extra else ""
            self._log.error("handler %s failed%s", handler, why, exc_info=None if extra else problem)
        else:
            times = "again" if number == 1 else f"{number} times more"
            self._log.error("handler %s failed %s, the last time at %s: %s: %s", handler, times, place, name, problem)


def _place(problem: BaseException) -> str:
    """The file and line that raised it."""
    frames = list(walk_tb(problem.__traceback__))
    if not frames:
        return "an unknown place"
    frame, line = frames[-1]
    return f"{Path(frame.f_code.co_filename).name}:{line}"
