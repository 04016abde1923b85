"""What the guard lets through to the driver of a real run, heard while it goes on."""

from __future__ import annotations

import threading
from itertools import pairwise
from types import TracebackType

from nodes.msgs import JointCommand
from runtime.clock import to_ns
from runtime.command_line.attach import StopSignal, hear
from runtime.serialization.codec import decode
from runtime.supervision.registry import find_runs
from tests.support.running import eventually

LESS_MPS = 1e-6
DROVE_MPS = 0.02
HAND = "human_policy"
PERIOD_MS = 50.0
"""So often the page of a person who drives says what is held down."""


class MotionWatch:
    """Hears `robot/command` and what people drive in a thread of its own, from `with` to its end."""

    def __init__(self, supervisor_pid: int) -> None:
        self._pid = supervisor_pid
        self._speeds: list[tuple[int, float]] = []  # when it was sent, base speed in m/s
        self._hands: list[int] = []  # when the console passed on what a person drives
        self._end = StopSignal()
        self._thread = threading.Thread(target=self._hear, name="motion watch")

    @property
    def speed_mps(self) -> float:
        """The base speed that is asked for now."""
        return self._speeds[-1][1] if self._speeds else 0.0

    def held_ms(self, after_ns: int) -> float:
        """From that moment until the guard's output had entered its braking profile; 0 where it was held already."""
        eventually(
            lambda: bool(self._speeds) and self._speeds[-1][0] > after_ns + to_ns(0.5), "commands go on", within_s=30.0
        )
        speeds = list(self._speeds)
        before = [speed for at_ns, speed in speeds if at_ns <= after_ns]
        if before[-1] < DROVE_MPS:  # on a machine too busy to bring commands the guard holds by itself
            return 0.0
        for (at_ns, speed), (_, last) in zip(speeds[1:], speeds, strict=False):
            if at_ns > after_ns and speed < last - LESS_MPS:
                return (at_ns - after_ns) * 1e-6
        return float("inf")

    def late_ms(self, since_ns: int, until_ns: int) -> float:
        """What this machine adds to the way from page to guard: how late the latest of the commands meanwhile was."""
        sent = [at_ns for at_ns in self._hands if since_ns < at_ns <= until_ns]
        gaps_ms = [(later - earlier) * 1e-6 for earlier, later in pairwise(sent)]
        return max([0.0, *(gap_ms - PERIOD_MS for gap_ms in gaps_ms)])

    def _hear(self) -> None:
        run = next(one for one in find_runs() if one.info.supervisor_pid == self._pid)
        for arrival in hear(run, ["robot/command", "command"], self._end):
            if arrival is None:
                continue
            if arrival.envelope.topic == "command":
                if arrival.envelope.source == HAND:
                    self._hands.append(arrival.envelope.published_ns)
            else:
                stamped = decode(arrival.frames, JointCommand)
                self._speeds.append((stamped.envelope.published_ns, stamped.message.base_v_mps))

    def __enter__(self) -> MotionWatch:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self._end.is_set = True
        self._thread.join(10.0)
