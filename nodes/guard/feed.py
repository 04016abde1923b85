"""`WatchdogFeed`: what the guard tells the watchdog of its run at each tick, and whether that answers.

The watchdog is a program of its own (`nodes/guard/watchdog.py`), and checks what is told by itself. Each word
is a datagram of JSON behind its checksum. Nothing here waits.
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from nodes.guard.lasting_faults import CommandedMotion
from nodes.guard.watchdog import ECHO, FEED
from nodes.msgs import RobotState
from runtime.clock import to_ns, to_s

SILENT_NS = to_ns(1.0)
"""A watchdog that answers nothing for so long is no second channel, and the robot is stopped."""
_NOTHING = [[0.0] * 3, [0.0] * 7, [], []]


class WatchdogFeed:
    """Speaks to the watchdog of the run in that folder, from the first word on."""

    def __init__(self, folder: Path, now_ns: int) -> None:
        self._echo = folder / ECHO
        self._echo.unlink(missing_ok=True)
        self._socket = self._bound()
        self._place, self._counter, self._heard_ns = str(folder / FEED), 0, now_ns

    def tell(self, mode: str, asked: CommandedMotion, state: RobotState | None, now_ns: int) -> bool:
        """Tell it what the guard does; returns whether it has answered lately.

        The robot may move while `asked` has joints; a guard that has let go of it is not watched.
        """
        numbers: list[list[float]] = _NOTHING
        if asked.joints and state is not None:
            wheels = [asked.base_v_mps, asked.base_vy_mps, asked.base_w_radps]
            pose = [state.base_x_m, state.base_y_m, state.base_heading_rad]
            speed = [state.base_v_mps, state.base_vy_mps, state.base_w_radps]
            targets = [joint.position for joint in asked.joints]
            numbers = [wheels, [to_s(state.read_ns), *pose, *speed], list(state.position), targets]
        self._counter += 1
        body = json.dumps([os.getpid(), self._counter, mode, bool(asked.joints), *numbers]).encode()
        if not self._echo.exists():  # somebody has tidied the run's folder
            with suppress(OSError):
                self._socket, old = self._bound(), self._socket
                old.close()
        with suppress(OSError):  # it is not there, or its room is full: its silence is what counts
            self._socket.connect(self._place)  # each time: it may be another one; nobody else may answer
            self._socket.send(b"%x %b" % (crc32(body), body))
        with suppress(OSError):
            while True:
                answer = self._socket.recv(64)
                if answer.isdigit() and 0 < int(answer) <= self._counter:
                    self._heard_ns = now_ns
        return now_ns - self._heard_ns <= SILENT_NS

    def _bound(self) -> socket.socket:
        found = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        found.setblocking(False)
        found.bind(str(self._echo))
        return found

    def close(self, now_ns: int) -> None:
        """Tell it that this guard ends, in order: its silence is no fault from now on."""
        self.tell("ended", CommandedMotion((), 0.0, 0.0), None, now_ns)
        self._socket.close()
